"""Private linear regressions of other authors, written from their papers, beside one Gram of ours.

One file per method, each with a ``METHOD`` that ``registry.py`` lists; a further method is one more file and one more line there.
All of them answer the same questions (``questions.py``) under the same public bounds, for neighbours that differ in one replaced row."""
