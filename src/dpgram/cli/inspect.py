"""dpgram inspect, and how the commands print facts about a release"""

from __future__ import annotations

from collections.abc import Sequence

from dpgram.artifact.files import load
from dpgram.artifact.release import GramRelease
from dpgram.cli.options import IgnoreSignature, Json, ReleaseFile
from dpgram.cli.output import console, print_json, print_pairs, print_table
from dpgram.report.fact import Fact, Planned
from dpgram.report.facts import label_data, label_groups, pairs


def inspect(release: ReleaseFile, /, *, ignore_signature: IgnoreSignature = False, json: Json = False) -> None:
    """Print the privacy label of RELEASE."""
    made = load(release, check_signature=not ignore_signature)
    if json:
        print_json(label_data(made))
    else:
        print_label(made)


def print_label(of: GramRelease | Planned) -> None:
    """The privacy label of a release, or of one that is planned."""
    for title, listed in label_groups(of):
        print_pairs(title, pairs(listed))
        print_rounds(listed)


def print_rounds(listed: Sequence[Fact]) -> None:
    """A short table where there were rounds."""
    for rounds in (fact.rounds for fact in listed if fact.rounds):
        print_table("Rounds", rounds.header, rounds.short, rounds.caption)
        console().print()
