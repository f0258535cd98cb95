"""The demo: a public table, its schema, and a script that compares private with non-private regressions."""
