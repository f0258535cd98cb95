"""What this installation can do, and whether its arithmetic is right. Reads no table."""
