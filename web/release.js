// The release as it is embedded in the page, ready to compute with.

// Embedded are the lower halves of matrices that are symmetric.
export function readRelease(data) {
  const { alone, together, tails, weighed, repaired, byNoise, spectrum } = data.evidence;
  const inference = view(alone);
  return {
    ...data,
    evidence: {
      ...data.evidence,
      alone: inference,
      together: together === null ? inference : view(together),
      tails: tails && { ...tails, first: whole(tails.first), outer: tails.outer.map(whole), clear: tails.clear.map((half) => half && whole(half)), through: rows(tails.through) },
      weighed: { matrix: whole(weighed.matrix), turn: weighed.turned ? inference.turn : null },
      repaired: whole(repaired),
      byNoise: rows(byNoise),
      spectrum: { ...spectrum, edge: spectrum.edge ?? Infinity },
    },
  };
}

// A matrix, the law of its noise, and T: the regression of T y on T X with this matrix is that of y on X with the Gram. Null is the identity.
const view = ({ matrix, law, turn }) => ({ matrix: whole(matrix), law, turn: rows(turn) });

const rows = (matrix) => matrix && matrix.map((row) => Float64Array.from(row));

function whole(half) {
  const d = half.length;
  const found = half.map((row) => {
    const filled = new Float64Array(d);
    filled.set(row);
    return filled;
  });
  for (let i = 0; i < d; i++) for (let j = i + 1; j < d; j++) found[i][j] = found[j][i];
  return found;
}
