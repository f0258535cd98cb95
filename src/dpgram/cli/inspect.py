"""dpgram inspect"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.artifact.files import load
from dpgram.cli.output import print_json, print_pairs
from dpgram.report.label import label_data, label_sections


def inspect(release: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Print the privacy label of RELEASE: what was promised, how, and what in the file is public or protected.

    Parameters
    ----------
    release
        A release file.
    json
        Print JSON.
    """
    made = load(release)
    if json:
        print_json(label_data(made))
        return
    for title, pairs in label_sections(made):
        print_pairs(title, pairs)
