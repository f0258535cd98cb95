"""How one coefficient moves as controls enter: coverage of its intervals, and a published table again from one private release."""
