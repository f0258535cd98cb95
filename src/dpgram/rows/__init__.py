"""From declared columns to bounded rows. Every step is a function of one row alone. Holds people's rows."""
