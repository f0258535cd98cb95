"""Privacy curves and their inverses. Pure numbers: nothing here has seen a row or a random bit."""
