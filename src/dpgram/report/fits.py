"""A fitted regression as rows of a table and as plain data."""

from __future__ import annotations

from dpgram.artifact.release import GramRelease
from dpgram.inference.privacy_noise import WELL_IDENTIFIED, identification, noise_sd
from dpgram.regression.fit import LinearFit


def fit_data(release: GramRelease, fit: LinearFit) -> dict:
    """The fit as plain data, for ``--json``; coefficients in the columns' own units."""
    return {
        "target": fit.target,
        "estimator": fit.estimator,
        "coefficients": fit.params,
        "noise_sd": dict(zip(fit.names, noise_sd(release, fit).tolist(), strict=True)),
        "identification": identification(release, fit),
        "well_identified": identification(release, fit) >= WELL_IDENTIFIED,
        "epsilon": release.budget.epsilon,
        "delta": release.budget.delta,
        "neighbours": release.neighbours.value,
        "mechanism": release.mechanism,
        "private": release.private,
        "rows": release.rows,
    }


def fit_rows(release: GramRelease, fit: LinearFit) -> list[tuple[str, str, str]]:
    """(name, coefficient, noise sd) as text."""
    sds = noise_sd(release, fit)
    return [(n, number(c), number(s)) for n, c, s in zip(fit.names, fit.coefficients, sds, strict=True)]


def fit_caption(release: GramRelease, fit: LinearFit) -> str:
    """One sentence about where the numbers come from."""
    rows = "" if release.rows is None else f", {release.rows} rows"
    warning = "" if release.private else " NOT PRIVATE: the noise came from a seed."
    caution = ""
    if identification(release, fit) < WELL_IDENTIFIED:
        caution = (
            " CAUTION: in some direction the features vary little more than the noise, so coefficients may be pulled far "
            "towards zero or each other, beyond what noise sd shows. Use fewer features or a larger budget."
        )
    return (
        f"{fit.estimator} estimate from one release: epsilon {release.budget.epsilon:g}, delta {release.budget.delta:g}, "
        f"{release.mechanism}{rows}. Coefficients are in the columns' own units. 'noise sd' is the part of the uncertainty "
        f"that comes from the privacy noise (to first order); sampling error comes on top.{caution}{warning}"
    )


def number(value: float) -> str:
    """Five significant digits."""
    return f"{value:.5g}"
