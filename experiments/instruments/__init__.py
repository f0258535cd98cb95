"""Regressions with instruments: coverage of confidence sets, and a published table from one private release."""
