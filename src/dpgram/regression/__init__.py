"""Linear models from a release: post-processing, costs no budget, sees no row."""
