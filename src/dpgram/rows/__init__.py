"""From declared columns to bounded rows, each a function of one row alone, and to their exact sum. Holds people's rows."""
