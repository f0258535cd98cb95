"""One file per mechanism, with its proof beside it in proofs/. They see sums and bounds, never rows."""
