"""The exact sum of z z' over bounded rows. Holds sums that carry no noise yet."""
