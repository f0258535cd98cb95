"""The audit of the whole house: nothing but the noisy matrices depends on the rows, and those by no more than they may.

An audit of a mechanism plays the mechanism alone. Here a release goes through the real door, from a file or a table in memory to the file
of the release and the line of the ledger. Two things are asked, without statistics:

- **Replay.** A table is released. Then other tables are, which have in common with it what is public and nothing else, and whatever they
  publish is replaced by what the first one published. All else must then be equal: each question to the engine and their order, every
  number, word, warning, error, event of progress and line of the ledger, and the file of the release to the last byte.
- **Coupling.** Neighbouring tables are released with the same noise. What they publish differs by no more than the sensitivity allows:
  of Gaussian mechanisms, the squares of all differences, in standard deviations of the noise, add up to at most mu^2."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpgram.house import watch
from dpgram.house.tables import SCHEMAS, SOURCES, Group, groups, pairs
from dpgram.mechanisms.conversation import Mechanism
from dpgram.mechanisms.registry import AUTO, MECHANISMS
from dpgram.terms.budget import Neighbours

ROUNDING = 1e-6  # relative, of a sum of squared differences
EPSILONS = (1.0, 20.0)  # at the larger one mechanisms of several rounds have more of them
DELTA = 1e-3
NEEDED: Mapping[str, dict[str, float]] = {"noisy-inverse": {"rho": 0.5}}  # options without which there is no release
SHOWN = 3  # differences of two transcripts that are told


@dataclass(frozen=True)
class Fault:
    """Something that depends on rows though it may not."""

    case: str  # mechanism, options, schema, source and tables
    words: str


def settings(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Each option that is a word at each of its choices, one at a time; what the mechanism cannot do without at all of them."""
    needed = NEEDED.get(mechanism.name, {})
    words = [option for option in mechanism.options.values() if option.choices]
    others = [{option.name: choice} for option in words for choice in option.choices if choice != option.default]
    return [{**needed, **each} for each in ({}, *others)]


def audit_house(
    only: str | None = None, *, quick: bool = False, progress: Callable[[str, float], None] = lambda case, share: None
) -> tuple[list[Fault], int]:
    """All faults, and how many releases were made. ``only`` is a mechanism; ``quick`` leaves out further sources and budgets."""
    return audit_cases([case for case in cases(quick) if only is None or case.mechanism == only], progress)


def audit_cases(
    cases: Sequence[Case], progress: Callable[[str, float], None] = lambda case, share: None
) -> tuple[list[Fault], int]:
    """The same for chosen cases."""
    faults: list[Fault] = []
    made = 0
    with tempfile.TemporaryDirectory() as folder:
        for place, case in enumerate(cases):
            progress(case.name, place / len(cases))
            for group in groups(case.kind, case.neighbours):
                more, releases = _replayed(case, group, Path(folder))
                faults, made = faults + more, made + releases
            if case.coupled:
                more, releases = _coupled(case, Path(folder))
                faults, made = faults + more, made + releases
    progress("", 1.0)
    return faults, made


@dataclass(frozen=True)
class Case:
    """A mechanism with its options, a kind of schema, a relation and a source."""

    mechanism: str
    options: tuple[tuple[str, Any], ...]
    kind: str
    neighbours: Neighbours
    source: str
    epsilon: float

    @property
    def name(self) -> str:
        options = [f"{name}={value}" for name, value in self.options]
        return ", ".join([self.mechanism, *options, self.kind, self.neighbours.value, self.source, f"epsilon {self.epsilon:g}"])

    @property
    def how(self) -> dict[str, Any]:
        budget = {"epsilon": self.epsilon, "delta": DELTA}
        return {"mechanism": self.mechanism, **budget, "arithmetic": "float", **dict(self.options)}

    @property
    def coupled(self) -> bool:
        """Whether its publications are sums with Gaussian noise, and nothing else."""
        return self.mechanism in ("gaussian-noise", "whitened-noise") and not dict(self.options).get("repair")


def cases(quick: bool) -> Iterator[Case]:
    sources, epsilons = (list(SOURCES)[:1], EPSILONS[:1]) if quick else (list(SOURCES), EPSILONS)
    for mechanism in MECHANISMS.values():
        kinds = list(SCHEMAS) if mechanism.takes_units else ["rows"]
        for options, kind, neighbours in product(settings(mechanism), kinds, Neighbours):
            further = options != NEEDED.get(mechanism.name, {})  # settings that sources have nothing to do with
            for source, epsilon in product(sources[:1] if further else sources, epsilons):
                yield Case(mechanism.name, tuple(options.items()), kind, neighbours, source, epsilon)
    for kind, neighbours in product(["rows", "units"], Neighbours):
        yield Case(AUTO, (), kind, neighbours, sources[0], EPSILONS[0])


def _replayed(case: Case, group: Group, folder: Path) -> tuple[list[Fault], int]:
    """What differs between tables though all that was published is the same."""
    faults, made = [], 0
    first: tuple[str, watch.Seen, list[Any]] | None = None
    for name, cells in group.of().items():
        table = SOURCES[case.source](cells, folder)
        seen, published = watch.release(table, group.schema, folder, case.how, None if first is None else first[2])
        made += 1
        if first is None:
            first = name, seen, published
        elif found := _differences(first[1], seen):
            faults.append(Fault(f"{case.name}: {first[0]} and {name} ({group.name})", found))
    return faults, made


def _differences(one: watch.Seen, other: watch.Seen) -> str:
    """What is not the same in two transcripts, in words; empty where they are equal."""
    found = []
    for place, (left, right) in enumerate(zip(one.events, other.events, strict=False)):
        if left != right:
            found.append(f"event {place + 1}: {left[0]} {left[1][:200]!r} beside {right[0]} {right[1][:200]!r}")
    if len(one.events) != len(other.events):
        found.append(f"{len(one.events)} events beside {len(other.events)}")
    return "; ".join(found[:SHOWN])


def _coupled(case: Case, folder: Path) -> tuple[list[Fault], int]:
    """Where neighbours differ by more than their noise hides."""
    faults, made = [], 0
    for name, (one, other, schema) in pairs(case.kind, case.neighbours).items():
        first, published = watch.release(SOURCES[case.source](one, folder), schema, folder, case.how)
        second, _ = watch.release(SOURCES[case.source](other, folder), schema, folder, case.how, published)
        made += 2
        if first.release is None or second.release is None:
            continue  # what is refused is refused for both, which the replay has seen to
        spent = shift_between(first, second)
        allowed = first.release.parameters["mu"]
        if not spent <= allowed * (1 + ROUNDING):
            words = f"the tables lie {spent:.6g} standard deviations apart, where mu is {allowed:.6g}"
            faults.append(Fault(f"{case.name}: {name}", words))
    return faults, made


def shift_between(one: watch.Seen, other: watch.Seen) -> float:
    """How far apart two tables' publications are, in standard deviations of their noise, all of them together."""
    squares = 0.0
    sds = publication_sds(one)
    if len(sds) != len(one.publications) or len(sds) != len(other.publications):
        return float("inf")
    for (off, on), left, right in zip(sds, one.publications, other.publications, strict=True):
        apart = left - right
        upper = np.triu_indices(len(apart), 1)
        squares += float(np.sum(apart[upper] ** 2)) / off**2 + float(np.sum(np.diag(apart) ** 2)) / on**2
    return float(np.sqrt(squares))


def publication_sds(seen: watch.Seen) -> list[tuple[float, float]]:
    """The noise of each publication, off the diagonal and on it, by what the release says of itself."""
    made = seen.release
    assert made is not None
    looks = [made.parameters[f"look_{place}_sd"] for place in range(1, int(made.parameters.get("looks", 0)) + 1)]
    told = [(sd, sd) for sd in looks]
    if not made.noise.rounds:
        return [*told, (made.parameters["sd_off_diagonal"], made.parameters["sd_diagonal"])]
    rounds = int(made.parameters["rounds"])
    for place in range(1, rounds + 1):
        off = made.parameters[f"round_{place}_sd_off_diagonal"]
        told += [(off, np.sqrt(2) * off)] * (int(made.parameters.get("scales", 1)) if place == rounds else 1)
    return told
