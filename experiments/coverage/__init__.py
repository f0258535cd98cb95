"""How often 95 % intervals contain the truth: measured on settings where it is known. ``make coverage`` runs it."""
