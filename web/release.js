// The release as it is embedded in the page, ready to compute with.

// Embedded are the lower halves of matrices that are symmetric.
export function readRelease(data) {
  const release = { ...data, gram: whole(data.gram) };
  if (data.rounds) {
    const { together, repaired, weighed_gram: weighed } = data.rounds;
    release.rounds = {
      ...data.rounds, ...look(data.rounds), together: look(together), repaired: whole(repaired), weighedGram: whole(weighed),
    };
  }
  return release;
}

// The last round, or all of them together, as additive noise in other coordinates.
const look = ({ there, noise, turn }) => ({ there: whole(there), noise, turn: turn.map((row) => Float64Array.from(row)) });

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
