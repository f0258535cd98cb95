"""A declared cell to numbers in [-1, 1], and back. Code without data: it is handed cells and keeps none."""
