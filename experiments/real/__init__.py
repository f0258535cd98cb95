"""Two studies of public tables: whether intervals hold on them, and what loose bounds cost."""
