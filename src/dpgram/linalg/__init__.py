"""Pure array functions. They know arrays, not privacy."""
