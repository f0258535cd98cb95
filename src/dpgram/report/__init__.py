"""Results as tables, text and plain data for JSON. No numerics of its own."""
