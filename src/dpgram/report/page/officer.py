"""The label for a privacy officer: the points at which NIST SP 800-226 asks a guarantee to be evaluated, each answered for one release."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpgram.artifact.release import GramRelease
from dpgram.report.label import label_data, label_sections, paid_by
from dpgram.terms.budget import Neighbours

NOT_PRIVATE = "NOT PRIVATE: the noise came from a seed, so whoever knows the seed can subtract it. Nothing below is promised."


@dataclass(frozen=True)
class Point:
    """One thing to evaluate: what it is, in plain words, and the facts."""

    title: str
    words: str
    facts: tuple[tuple[str, str], ...]


def evaluation_points(release: GramRelease) -> list[Point]:
    """What was promised and what it rests on, point by point."""
    said = label_data(release)
    mechanism = dict(_section(release, "Mechanism"))
    return [
        Point(
            "Privacy loss: epsilon and delta",
            _meaning(release),
            (
                ("epsilon", f"{release.budget.epsilon:g}"),
                ("delta", f"{release.budget.delta:g}"),
                ("in one line", f"({release.budget.epsilon:g}, {release.budget.delta:g})-differential privacy"),
            ),
        ),
        Point(
            "Unit of privacy and neighbours",
            f"The promise is about {said['neighbours_in_words']}. One row is protected as said above; k rows of one owner, k times less.",
            (
                *((name, text) for name, text in _guarantee(release) if name in ("unit of privacy", "assumed")),
                ("neighbour relation", release.neighbours.value),
                ("rows", "protected" if release.rows is None else f"{release.rows:,} (public under this relation)"),
            ),
        ),
        Point(
            "Trust model",
            f"Central: the custodian held the rows, summed them, and added the noise {_times(release)}, before anything was published. "
            "Readers of this page hold what is noisy only.",
            (("trusted with the rows", "the custodian"), ("published", _published(release))),
        ),
        Point(
            "Bounds",
            "No bound was read from the data. Cells are clamped to the declared bounds and mapped to [-1, 1]; a row longer than the row "
            f"bound is shrunk to it{_after_whitening(release)}. That is what limits the influence of one row.",
            (
                ("row bound", mechanism["row bound"]),
                ("largest possible row", f"{release.schema.largest_norm:.6g} (scaled units)"),
                ("columns of the matrix", str(len(release.columns))),
            ),
        ),
        Point(
            "Mechanism and proof",
            release.noise.words,
            (
                ("mechanism", release.mechanism),
                *([("chosen by", release.choice)] if release.choice else []),
                ("proof", f"dpgram/mechanisms/proofs/{proof_file(release.mechanism)}, pinned to the code by a test"),
                *((name, f"{value:.6g}") for name, value in release.parameters.items()),
                *([("CONDITIONAL", release.condition)] if release.condition else []),
            ),
        ),
        Point(
            "Accounting",
            "Epsilon and delta above are the cost of this one release, all of its stages together. Every regression, correlation or "
            "prediction made from it, here or elsewhere, costs nothing more. Further releases of the same table add to the cost.",
            (
                ("calibration", _calibration(release)),
                ("charged to", paid_by(release)),
                ("composition", "not counted here: the custodian's ledger holds what the table has spent altogether"),
            ),
        ),
        Point(
            "Arithmetic and randomness",
            "Noise that is drawn carelessly can be undone: from a guessable source, or through the rounding of floating-point numbers.",
            (("randomness", release.randomness), ("arithmetic", mechanism["arithmetic"])),
        ),
        Point(
            "What is public, what is protected",
            "Public facts carry no noise and are not covered by the guarantee. Protected ones are.",
            (*(("public", part) for part in said["public"]), *(("protected", part) for part in said["protected"])),
        ),
        Point(
            "Known limits",
            "What the guarantee does not cover. docs/limits.md of dpgram has the whole list.",
            tuple(_limits(release)),
        ),
    ]


def noise_facts(release: GramRelease) -> list[tuple[str, str]]:
    """What was done to the true matrix, with its scale."""
    noise = release.noise
    shift = [("public shift", f"{noise.shift:.6g} times the identity, taken off before fitting")] if noise.shift else []
    return [*noise.facts, *shift, ("units", "scaled units, in which every column spans at most [-1, 1]")]


def _times(release: GramRelease) -> str:
    return f"in {len(release.noise.rounds)} rounds" if release.noise.rounds else "once"


def _published(release: GramRelease) -> str:
    rounds = f"{len(release.noise.rounds)} noisy matrices" if release.noise.rounds else "one noisy matrix"
    return f"{rounds}, and what this label says"


def _after_whitening(release: GramRelease) -> str:
    return ", after it was whitened" if release.noise.rounds else ""


def proof_file(mechanism: str) -> str:
    """The file in ``mechanisms/proofs`` that has the mechanism's proof."""
    return f"{mechanism.replace('-', '_')}.md"


def _meaning(release: GramRelease) -> str:
    """Epsilon and delta in plain words."""
    factor, unit = math.exp(min(release.budget.epsilon, 700.0)), release.schema.unit
    belief = 1 / (1 + math.exp(-release.budget.epsilon))
    change = "had been replaced by any other" if release.neighbours is Neighbours.REPLACE else "had not been in the table"
    chance = f"{release.budget.delta:g} ({_one_in(release.budget.delta)})"
    return (
        f"If one {unit} {change}, every possible release would have come out with nearly the same chance: the two chances differ by "
        f"a factor of at most e^epsilon = {_plain(factor)}, but for events of chance delta = {chance}. In terms of belief: whoever holds "
        f"two such tables for equally likely can be brought from 50 % to {_percent(belief)} sure of one of them, but for that chance."
    )


def _plain(factor: float) -> str:
    return f"{factor:.3g}" if factor < 100 else f"{factor:,.0f}" if factor < 1e7 else f"{factor:.1e}"


def _percent(share: float) -> str:
    """Rounded up, because it is an upper bound."""
    found = math.ceil(1e4 * share) / 100
    return f"at most {found:.4g} %" if found < 100 else "nearly 100 %"


def _one_in(chance: float) -> str:
    return f"one in {1 / chance:,.0f}" if chance > 1e-15 else f"{chance:g}"


def _calibration(release: GramRelease) -> str:
    if release.calibration == "exact":
        return "exact: from the mechanism's privacy curve, or a proven bound on it, rounded to the private side"
    return f"{release.calibration}: the printed formulas of the paper"


def _limits(release: GramRelease) -> list[tuple[str, str]]:
    unit = release.schema.unit
    found = [] if release.private else [("NOT PRIVATE", "the noise came from a seed, so it can be subtracted")]
    if release.condition:
        found.append(("conditional", release.condition))
    found.append(("several rows", label_data(release)["unit_assumption"]))
    if release.arithmetic != "exact":
        found.append(("rounding", "noise was drawn and added in float64; that its lowest bits leak something is not excluded"))
    return [
        *found,
        ("side channels", "how long the release took and how much memory it used are not protected"),
        ("the schema", "names, bounds and categories are public; copied from the data, they would leak them"),
        (
            "facts about groups",
            f"what holds for many (a trend, a difference) is meant to be learnt, and may apply to a {unit} too",
        ),
        (
            "the numbers",
            "they describe the clamped, filled table; intervals assume errors of one variance and no bias from clamping",
        ),
        ("this file", "it carries no signature: that it is the custodian's is not shown by the file itself"),
    ]


def _section(release: GramRelease, title: str) -> list[tuple[str, str]]:
    return next(pairs for name, pairs in label_sections(release) if name == title)


def _guarantee(release: GramRelease) -> list[tuple[str, str]]:
    return label_sections(release)[0][1]
