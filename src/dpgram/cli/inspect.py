"""dpgram inspect"""

from __future__ import annotations

from pathlib import Path

from dpgram.artifact.files import load
from dpgram.cli.label import print_label
from dpgram.cli.output import print_json
from dpgram.report.label import label_data


def inspect(release: Path, /, *, json: bool = False) -> None:
    """Print the privacy label of RELEASE: what was promised, how, and what in the file is public or protected.

    Args:
        release: A release file.
        json: Print JSON."""
    made = load(release)
    if json:
        print_json(label_data(made))
    else:
        print_label(made)
