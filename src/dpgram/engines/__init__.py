"""Who runs the pass over the rows: a source and a schema in, an exact sum out. Holds people's rows."""
