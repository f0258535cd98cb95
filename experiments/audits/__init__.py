"""Every mechanism and calibration against its worst neighbours: settings -> results.json -> docs/audits.md and a figure."""
