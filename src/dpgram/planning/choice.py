"""mechanism "auto": the one that a forecast under default assumptions expects to be best. A function of public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpgram.errors import MechanismError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT, Conversation, Drawing, GramQuestion, Mechanism, Task, plain_cost
from dpgram.planning.expected import FEWEST, default_copies
from dpgram.planning.forecast import check_rows, forecast, listed
from dpgram.planning.ground import Ground
from dpgram.sampling.base import RandomSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema

AUTO = "auto"
TABLE_ROWS = "table_rows"  # a public guess of the number of rows: an option of mechanisms whose rules follow it
DEFAULT, WIDEST = "gaussian-noise", 400  # what "auto" takes where there is no forecast, and columns beyond which it makes none


def check_hint(schema: Schema, rows: int | None, options: Mapping[str, object]) -> None:
    """Raise where "auto" cannot choose with what it is given; needs no table."""
    if options:
        raise MechanismError(f"mechanism 'auto' takes no options, and {', '.join(options)} is given: name the mechanism.")
    if rows is not None:
        check_rows(rows)
    elif schema.neighbours is Neighbours.ADD_REMOVE:
        raise MechanismError(
            "mechanism 'auto' needs table_rows under neighbours = \"add-remove\", where the table's own number of rows is "
            "protected: give a public guess, or name the mechanism."
        )


class Choice:
    """The mechanism that "auto" takes: at once for a public hint, else when the public number of rows is known.

    Until then it is a mechanism that asks what all of them ask, and goes on as the chosen one; of its cost only the budget is known."""

    def __init__(self, found: Ground | None, budget: Budget, calibration: str, rows: int | None, *, rereadable: bool):
        self._budget, self._calibration, self.in_words = budget, calibration, ""
        self._ground, self._rereadable = found, rereadable
        self.mechanism = Mechanism(AUTO, "chosen by a forecast", "", lambda task: _not_yet(), self._start, several=rereadable)
        if rows is not None:
            self._choose(rows)

    def _choose(self, rows: int) -> None:
        name, self.in_words = chosen_mechanism(self._ground, self._budget, rows, self._calibration, rereadable=self._rereadable)
        self.mechanism = registry.find(name)

    def _start(self, task: Task, rng: RandomSource) -> Conversation:
        answer = yield GramQuestion(task.row_bound)
        assert answer.rows is not None, "asked for only where the number of rows is public"
        self._choose(answer.rows)
        if not self.mechanism.several:
            yield Drawing(1, 1, plain_cost(task, {}))
        later = self.mechanism.start(task, rng)
        said, asked = next(later), 1  # what was asked before it began
        try:
            if said == GramQuestion(task.row_bound):
                said, asked = later.send(answer), 0
            while True:  # one that asks for other sums, or for more
                said = later.send((yield _counted(said, asked)))
        except StopIteration as end:
            return end.value


def _counted(said: GramQuestion | Drawing, earlier: int) -> GramQuestion | Drawing:
    """``said``, where a question counts those that came ``earlier`` than the mechanism's own."""
    if isinstance(said, Drawing) or said.questions is None:
        return said
    return replace(said, questions=said.questions + earlier)


def _not_yet() -> dict[str, float]:
    raise MechanismError("the mechanism is chosen when the number of rows is known.")


def chosen_mechanism(
    found: Ground | None, budget: Budget, rows: int, calibration: str = EXACT, *, rereadable: bool = True
) -> tuple[str, str]:
    """The mechanism that `auto` takes for a public number of rows, and why, for the label. Costs nothing: nothing private is asked.

    One of several rounds is not looked at where the table can be read only once.

    Additive Gaussian noise, which is never larger than the others' at equal privacy, where there is nothing to forecast."""
    if found is None:
        return (
            DEFAULT,
            f"auto, without a forecast: the schema has no regression to look at, or more than {WIDEST} encoded columns",
        )
    names = [name for name in listed(None, {}) if rereadable or not registry.find(name).several]
    made = forecast(found, budget, rows, mechanisms=names, calibration=calibration, copies=min(FEWEST, default_copies(found)))
    if not made.best:
        return DEFAULT, f"auto, without a forecast: {made.verdict}"
    typical = made.of(made.best).typical
    assert typical is not None
    return made.best, (
        f"auto, by a forecast for {rows:,} rows under default assumptions (no data read): expected error {typical.error:.3g} for the "
        f"coefficient of {typical.name} on {made.target}. {made.verdict}"
        f"{'' if rereadable else ' The table can be read once only, so mechanisms of several rounds were left out.'}"
    )
