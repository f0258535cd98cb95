// The eigenvalues of the released matrix, and the edge up to which noise alone reaches.

import { addToDiagonal, inverse } from "./linalg.js";
import { eigenvalues } from "./eigen.js";

// { values, edge, hidden, words }: values from the largest down, with the public shift taken off; hidden[i] where noise alone could have
// made the i-th one. Edges are those of large random matrices: a few per cent of play at a dozen columns.
export function spectrum(release) {
  const { noise, rounds } = release;
  const gram = rounds ? rounds.there : release.gram;
  const d = gram.length;
  if (noise.shape === "noisy-inverse") {
    const edge = 1 / (2 * noise.sd_off_diagonal_of_inverse * Math.sqrt(d));
    const values = Array.from(eigenvalues(inverse(gram)), (value) => 1 / value);
    values.sort((a, b) => b - a);
    return {
      values,
      edge,
      hidden: values.map((value) => value < 0 || value > edge),
      words: "Noise was added to the inverse, so it hides what is large: eigenvalues above the edge, or below zero, may be anything above it.",
    };
  }
  if (rounds) {
    const edge = 2 * rounds.noise.sd_off_diagonal * Math.sqrt(d);
    const values = Array.from(eigenvalues(gram)).reverse();
    return {
      values,
      edge,
      hidden: values.map((value) => value <= edge),
      words: "These are eigenvalues in whitened coordinates, where noise is even and rows vary about as much in every direction: "
        + "what lies below the edge may hold nothing but noise.",
    };
  }
  const edge = {
    "symmetric-gaussian": () => 2 * noise.sd_off_diagonal * Math.sqrt(d), // Wigner's semicircle
    "wishart-sample": () => noise.floor * (1 + Math.sqrt(d / noise.degrees_of_freedom)) ** 2 - noise.shift, // Marchenko and Pastur
    "inverse-wishart-sample": () => {
      const gap = Math.sqrt(noise.degrees_of_freedom) - Math.sqrt(d);
      return gap > 0 ? (noise.floor * noise.multiple) / gap ** 2 - noise.shift : Infinity;
    },
  }[noise.shape]();
  const values = Array.from(eigenvalues(addToDiagonal(gram, -noise.shift))).reverse();
  return {
    values,
    edge,
    hidden: values.map((value) => value <= edge),
    words: "Directions below the edge may hold nothing but noise; a regression that needs one of them is not identified.",
  };
}
