"""What a release says of its table, whatever noise it carries. The only room below the wall that knows kinds of noise."""

from dpgram.evidence import additive, combined, draws, inverse, rounds

__all__ = ["additive", "combined", "draws", "inverse", "rounds"]  # each adds its kind of noise to those that Evidence.of reads
