"""What audits know of each mechanism: one file for each, as in mechanisms/; registry.py lists them."""
