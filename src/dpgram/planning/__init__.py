"""Before any data is read: what a release would be worth, from public numbers alone."""
