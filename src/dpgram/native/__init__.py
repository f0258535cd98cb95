"""The compiled kernel, where there is one: rows.c, gram.c and dispatch.c, and the library that they make. Handles people's rows.

It does what ``rows`` and ``gram`` do in NumPy, to the bit, in one go over blocks that stay in cache."""
