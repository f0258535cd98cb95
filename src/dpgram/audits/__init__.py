"""Attacks on the mechanisms: their real release code, run many times on the neighbours that are hardest to hide. docs/audits.md says more."""
