"""The frozen vocabulary of the library: what is declared, promised and done. No data, no computation on data."""
