"""A custodian's look at the rows before a release. What it says carries no noise, so it is not for publication."""
