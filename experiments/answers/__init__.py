"""Every kind of answer on the same public tables: how often its intervals contain what the table itself gives without noise."""
