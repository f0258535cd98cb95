"""The lines of the comparison, in the order of tables and figures."""

from __future__ import annotations

from benchmarks.peers import adassp, boosted_adassp, diffprivlib_regression, gradient_descent, one_gram, tukey_em
from benchmarks.peers.questions import Method

METHODS: tuple[Method, ...] = (
    one_gram.WHITENED,
    one_gram.WHITENED_NEEDED,
    one_gram.WHOLE,
    one_gram.NEEDED,
    gradient_descent.TUNED,
    gradient_descent.UNTUNED,
    boosted_adassp.METHOD,
    adassp.METHOD,
    tukey_em.METHOD,
    diffprivlib_regression.METHOD,
)
