"""Several releases together: whether intervals of combined releases hold, and how far estimates are from those of one release."""
