"""Yes-or-no targets: logits from a release beside those of maximum likelihood on public tables, and coverage of their intervals."""
