"""The privacy label: the facts about a release, or about one that is planned, as plain data and as text."""

from __future__ import annotations

from typing import Any

from dpgram.artifact.release import GramRelease
from dpgram.report.fact import Fact, Group, Planned
from dpgram.report.facts import SEEDED, facts


def label_data(of: GramRelease | Planned) -> dict[str, Any]:
    """The label as plain data, for ``--json``."""
    data: dict[str, Any] = {"parameters": {}, "bounds": {}, "derived": {}}
    for fact in facts(of):
        place = data
        for step in fact.key[:-1]:
            place = place.setdefault(step, {})
        if fact.key:
            place[fact.key[-1]] = fact.value
    return data


def label_groups(of: GramRelease | Planned) -> list[tuple[str, list[Fact]]]:
    """The label for people, in groups with titles; what holds of every release alike is left to the page."""
    listed = [fact for fact in facts(of) if fact.name and fact.group is not Group.NOTES]
    groups = {group: [fact for fact in listed if fact.group is group] for group in dict.fromkeys(fact.group for fact in listed)}
    return [(_title(group, of), found) for group, found in groups.items()]


def pairs(listed: list[Fact]) -> list[tuple[str, str]]:
    """Facts as (what, value), with a line for each thing said."""
    return [(fact.name, line) for fact in listed for line in fact.lines]


def _title(group: Group, of: GramRelease | Planned) -> str:
    if group is not Group.GUARANTEE:
        return group.value
    if not of.private:
        return f"NOT PRIVATE: {SEEDED}"
    return group.value if isinstance(of, GramRelease) else "Guarantee of the release to be made"
