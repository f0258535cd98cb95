"""The whitened release against single releases, on simulated and real tables: ``python -m experiments.whitened`` runs it."""
