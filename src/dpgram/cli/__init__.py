"""The command line: one file per command. The only room that reads argv, prints and sets exit codes.

Data go to standard output, words to standard error. Exit codes: 0 done, 2 bad input or usage, 130 interrupted, 141
output closed early."""

from dpgram.cli.app import main

__all__ = ["main"]
