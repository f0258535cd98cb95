// The release as it is embedded in the page, ready to compute with.

// Embedded are the lower halves of matrices that are symmetric.
export function readRelease(data) {
  const release = { ...data, gram: whole(data.gram) };
  if (data.rounds) {
    const turn = data.rounds.turn.map((row) => Float64Array.from(row));
    release.rounds = { ...data.rounds, there: whole(data.rounds.there), repaired: whole(data.rounds.repaired), turn };
  }
  return release;
}

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
