"""The experiments of Sheffet (2015), rerun: ``python -m experiments.sheffet2015`` or ``make reproduce``."""
