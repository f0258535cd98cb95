"""Mean errors of every estimator of coefficients, against the paper's repairs and others: ``make errors`` runs it."""
