"""Several fitted models side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpgram.analysis.fit import Fit
from dpgram.errors import ModelError
from dpgram.report.figures import draw_comparison
from dpgram.report.summary import Summarised, Summary, compare_models, data_frame, framed_rows


class Comparison(Summarised):
    """Models side by side: coefficients with standard errors, R^2 and residual sd."""

    def __init__(self, models: Mapping[str, Fit]):
        self.models = dict(models)

    @property
    def names(self) -> tuple[str, ...]:
        """All coefficients, in the order in which models name them."""
        return tuple(dict.fromkeys(name for fit in self.models.values() for name in fit.names))

    def summary(self) -> Summary:
        return compare_models(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        releases = [fit.release for fit in self.models.values()]
        return {
            "models": {name: fit.to_dict() for name, fit in self.models.items()},
            "same_release": all(one is releases[0] or one == releases[0] for one in releases),
        }

    def to_frame(self) -> Any:
        """A pandas data frame: one row per model and coefficient."""
        rows = [{"model": model, **row} for model, fit in self.models.items() for row in framed_rows(fit.to_dict())]
        return data_frame(rows, index=["model", "name"])

    def plot(self, ax: Any = None) -> Any:
        """All models' coefficients with intervals on one matplotlib axis, which is returned."""
        return draw_comparison(self.to_dict(), ax)


def compare(*fits: Fit | Iterable[Fit] | Mapping[str, Fit]) -> Comparison:
    """The given fits side by side: ``compare(a, b)``, ``compare([a, b])`` or ``compare({"small": a, "large": b})``."""
    if len(fits) == 1 and isinstance(fits[0], Mapping):
        models = dict(fits[0])
    else:
        one = fits[0] if len(fits) == 1 and not isinstance(fits[0], Fit) else fits
        if not isinstance(one, Iterable):
            raise ModelError(f"compare was given a {type(one).__name__}, and fits are needed: compare(first, second).")
        models = {f"({k}) {getattr(fit, 'target', '')}": fit for k, fit in enumerate(one, 1)}
    if not models or not all(isinstance(fit, Fit) for fit in models.values()):
        raise ModelError("compare needs one or more fits, as dpgram.regress returns them.")
    return Comparison(models)
