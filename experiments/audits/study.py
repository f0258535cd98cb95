"""The settings of the full audit, and their results in a file that grows setting by setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpgram.audits.laws.base import Options, in_words
from dpgram.audits.laws.registry import LAWS, find, law_of
from dpgram.audits.run import audit
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.terms.budget import Budget, Neighbours

DELTA, DIM, ROW_BOUND, CONFIDENCE = 0.01, 2, 1.5, 0.999
PAIRS = (
    "orthogonal rows",
    "one row more",
    "another bin in every column",
)  # on which the curves are attained; ``dpgram audit`` tries more, for mistakes that show elsewhere


@dataclass(frozen=True)
class Setting:
    """One audit: a mechanism with its options, a calibration, a relation."""

    mechanism: str
    calibration: str
    neighbours: Neighbours
    options: Options

    @property
    def name(self) -> str:
        return ", ".join([self.mechanism, self.calibration, self.neighbours.value, in_words(self.options)]).removesuffix(", ")

    @property
    def epsilon(self) -> float:
        return (
            law_of(self.mechanism).epsilon if self.calibration == EXACT_CURVE else 0.9
        )  # some printed formulas hold below one only


def everything() -> list[Setting]:
    return [
        Setting(name, calibration, neighbours, options)
        for calibration in (EXACT_CURVE, PAPER)
        for name in LAWS
        if calibration == EXACT_CURVE or name not in ("whitened-noise", "looks")  # nobody printed a formula for them
        for neighbours in Neighbours
        for options in law_of(name).settings(neighbours, DIM, calibration)
    ]


def _quick_ones_first(setting: Setting) -> tuple[bool, bool]:
    return setting.calibration == PAPER, setting.mechanism.endswith("-adaptive") and not setting.options


def run(path: Path, draws: int) -> Iterator[Setting]:
    """Audits what ``path`` does not hold yet with as many draws, and yields each setting when it is done."""
    for setting in sorted(everything(), key=_quick_ones_first):
        key = f"{setting.name}, {draws} draws"
        if key not in read(path):
            audits = _audited(setting, draws)
            write(path, {**read(path), key: audits})
        yield setting


def _audited(setting: Setting, draws: int) -> list[dict]:
    mechanism = find(setting.mechanism)
    budget = Budget(setting.epsilon, DELTA)
    task = registry.task(mechanism, budget, setting.neighbours, DIM, ROW_BOUND, setting.calibration, setting.options)
    others = (SecureSource(), ExactSource())
    audits = audit(mechanism, task, SecureSource(), draws=draws, confidence=CONFIDENCE, only=PAIRS, others=others)
    return [{"setting": setting.name, **result.to_dict()} for result in audits]


def read(path: Path) -> dict[str, list[dict]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, results: dict[str, list[dict]]) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
