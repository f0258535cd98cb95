"""What was spent on a table: reserved before noise is drawn, committed after, and never given back."""
