"""What is to be said of every release besides its label, at the points at which NIST SP 800-226 asks a guarantee to be evaluated."""

from __future__ import annotations

import math

from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema
from dpgram.terms.words import Point


def notes(schema: Schema, budget: Budget, rounds: int, proof: str, parts: int = 1) -> list[tuple[Point, str, str]]:
    """What is to be said at each point besides the label's facts: (point, name, text)."""
    published = "one noisy matrix" if rounds == 1 else f"the noisy matrices of {rounds} rounds"
    published = published if parts == 1 else f"the noisy matrices of {parts} releases"
    return [
        (Point.EPSILON, "in plain words", meaning(schema, budget)),
        (Point.EPSILON, "not promised",
         f"secrecy of general facts: a trend or a difference can be learnt from the release, and may also apply to a {schema.unit}"),
        (Point.DELTA, "in one line", f"({budget.epsilon:g}, {budget.delta:g})-differential privacy"),
        (Point.COMPOSITION, "composition", "not counted here: the custodian's ledger says what all releases of the table cost together"),
        (Point.COMPOSITION, "the schema", "names, bounds and categories are public; if they were copied from the data, they would leak it"),
        *([(Point.MECHANISM, "proof", f"dpgram/mechanisms/proofs/{proof}, pinned to the code by a test")] if proof else []),
        (Point.BOUNDS, "largest possible row", f"{schema.largest_norm:.6g} in scaled units"),
        (Point.BOUNDS, "columns of the matrix", str(len(schema.encoded_names))),
        (Point.ACCURACY, "intervals", "standard errors and intervals include the noise; they assume errors with constant variance"),
        (Point.BIAS, "the numbers",
         "they describe the table after clamping, with missing cells treated as declared; intervals assume that this causes no bias"),
        (Point.QUERIES, "cost of a question", "none: every regression, correlation or prediction is computed from the release"),
        (Point.TRUST, "trusted with the rows", "the custodian"),
        (Point.TRUST, "published", f"{published}, and what this label says"),
        (Point.IMPLEMENTATION, "side channels", "the time and the memory that the release took are not protected"),
        (Point.SECURITY, "rows", "the release contains no row, and no sum of rows without noise"),
        (Point.COLLECTION, "how rows were collected", "not known here: ask the custodian"),
    ]  # fmt: skip


def meaning(schema: Schema, budget: Budget) -> str:
    """Epsilon and delta in plain words."""
    factor = math.exp(min(budget.epsilon, 700.0))
    one = schema.unit if schema.unit_id is None else f"{schema.unit} with all its rows"
    change = "had been replaced by any other" if schema.neighbours is Neighbours.REPLACE else "had not been in the table"
    times = f"{factor:.3g}" if factor < 100 else f"{factor:,.0f}" if factor < 1e7 else f"{factor:.1e}"
    return (
        f"If one {one} {change}, every possible release would have nearly the same probability. The two probabilities differ by a "
        f"factor of at most e^epsilon = {times}, except with probability delta = {budget.delta:g} ({chance(budget)}). In terms of belief: "
        f"someone who thinks that two such tables are equally likely can go from 50 % to {certainty(budget)} certainty about one of them, "
        f"with the same exception."
    )


def certainty(budget: Budget) -> str:
    """How sure of one of two tables somebody can become who thought both equally likely, but for delta."""
    share = math.ceil(1e4 / (1 + math.exp(-budget.epsilon))) / 100  # rounded up, because it is an upper bound
    return f"at most {share:.4g} %" if share < 100 else "nearly 100 %"


def chance(budget: Budget) -> str:
    """Delta as a chance."""
    return f"one in {1 / budget.delta:,.0f}" if budget.delta > 1e-15 else f"{budget.delta:g}"
