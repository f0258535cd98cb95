"""Attacks on the mechanisms: their real release code, run many times on the worst neighbours. docs/audits.md says more."""
