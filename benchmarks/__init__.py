"""Timings that travel between machines: each is a ratio to the bare work. Run by hand."""
