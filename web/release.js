// The release as it is embedded in the page, ready to compute with.

// Embedded is the lower half of the matrix, which is symmetric.
export function readRelease(data) {
  const d = data.gram.length;
  const gram = data.gram.map((row) => {
    const whole = new Float64Array(d);
    whole.set(row);
    return whole;
  });
  for (let i = 0; i < d; i++) for (let j = i + 1; j < d; j++) gram[i][j] = gram[j][i];
  return { ...data, gram };
}
