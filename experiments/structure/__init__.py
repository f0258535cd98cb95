"""Partial correlations from a release: coverage of their intervals, and false edges of the graphical lasso."""
