"""Studies that are run by hand: each writes a page of docs/ and the numbers behind it."""
