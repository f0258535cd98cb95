"""Panels of real units: which way to bound a unit's rows has less error, and whether intervals hold at the level of units."""
