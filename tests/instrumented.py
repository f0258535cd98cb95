"""Tables with an endogenous regressor, and textbook formulas on their rows: what tests of instruments compare with."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh
from scipy.stats import chi2

import dpgram


def made_up(rows=4000, *, seed=0, instruments=3, endogenous=1, strength=0.6, direct=0.0):
    """Columns within [-6, 6]: y, endogenous x0 ..., exogenous w, instruments z0 ...; ``direct`` is what z0 does to y by itself."""
    rng = np.random.default_rng(seed)
    z, w, u = rng.standard_normal((instruments, rows)), rng.standard_normal(rows), rng.standard_normal((endogenous, rows))
    mix = (
        strength
        * np.random.default_rng(1).uniform(0.5, 1.0, (endogenous, instruments))
        * np.sign(np.random.default_rng(2).standard_normal((endogenous, instruments)))
    )
    x = mix @ z / math.sqrt(instruments) + 0.4 * w + 0.8 * u
    y = 1 + 0.5 * x.sum(axis=0) - 0.3 * w + 0.5 * u.sum(axis=0) + 0.7 * rng.standard_normal(rows) + direct * z[0]
    named = {f"x{k}": x[k] for k in range(endogenous)} | {"w": w} | {f"z{k}": z[k] for k in range(instruments)}
    return {name: np.clip(values, -6, 6) for name, values in {"y": y, **named}.items()}


def schema_of(table, bound=6.0, **changes):
    return dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -bound, bound) for name in table], **changes)


class Textbook:
    """Two-stage least squares and LIML of y on an intercept, exogenous and endogenous columns of a table, by its rows."""

    def __init__(self, table, exogenous, endogenous, instruments, *, intercept=True):
        ones = [np.ones(len(table["y"]))] if intercept else []
        self.w = (
            np.column_stack([*ones, *(table[name] for name in exogenous)])
            if ones or exogenous
            else np.empty((len(table["y"]), 0))
        )
        self.x = np.column_stack([self.w, *(table[name] for name in endogenous)])
        self.z = np.column_stack([self.w, *(table[name] for name in instruments)])
        self.y, self.rows = table["y"], len(table["y"])

    def projected(self, columns, on=None):
        on = self.z if on is None else on
        return on @ np.linalg.lstsq(on, columns, rcond=None)[0] if on.shape[1] else np.zeros_like(columns)

    @property
    def kappa(self):
        both = np.column_stack([self.y, self.x[:, self.w.shape[1] :]])
        left = [both - self.projected(both, on) for on in (self.w, self.z)]
        return float(eigh(left[0].T @ left[0], left[1].T @ left[1], eigvals_only=True)[0])

    def fit(self, kappa=1.0):
        """Coefficients and standard errors of the k-class."""
        x, y = self.x, self.y
        inner = (1 - kappa) * x.T @ x + kappa * x.T @ self.projected(x)
        b = np.linalg.solve(inner, (1 - kappa) * x.T @ y + kappa * self.projected(x).T @ y)
        variance = np.sum((y - x @ b) ** 2) / (self.rows - x.shape[1])
        return b, np.sqrt(variance * np.diag(np.linalg.inv(inner)))

    @property
    def partial_f(self):
        """Of the one endogenous regressor."""
        x = self.x[:, -1]
        short, long = (np.sum((x - self.projected(x, on)) ** 2) for on in (self.w, self.z))
        count = self.z.shape[1] - self.w.shape[1]
        return (short - long) / count / (long / (self.rows - self.z.shape[1]))

    def wu_hausman(self):
        x = np.column_stack([self.x, self.projected(self.x[:, self.w.shape[1] :])])
        short, long = (np.sum((self.y - self.projected(self.y, on)) ** 2) for on in (self.x, x))
        return (short - long) / (long / (self.rows - x.shape[1]))

    def anderson_rubin(self, confidence=0.95):
        """The set for the one endogenous regressor, in closed form: where a quadratic is not positive."""
        count = self.z.shape[1] - self.w.shape[1]
        both = np.column_stack([self.y, self.x[:, -1]])
        short, long = ((both - self.projected(both, on)) for on in (self.w, self.z))
        short, long = short.T @ short, long.T @ long
        # (short - long) over long / (rows - q) is at most the quantile, as a quadratic form in (1, -b)
        form = short - long - chi2.ppf(confidence, count) / (self.rows - self.z.shape[1]) * long
        a, b, c = form[1, 1], -2 * form[0, 1], form[0, 0]
        inside = b**2 - 4 * a * c
        if inside < 0:
            return () if a > 0 else ((-math.inf, math.inf),)
        ends = sorted((-b + sign * math.sqrt(inside)) / (2 * a) for sign in (-1, 1))
        return ((ends[0], ends[1]),) if a > 0 else ((-math.inf, ends[0]), (ends[1], math.inf))


def like_card(rows=30_000, seed=0):
    """Wages and schooling, made up after Card (1995): experience and its square, which are nearly collinear, and one instrument that is
    a truth value. At the usual budgets noise hides nearly as much of the one direction as of the other."""
    rng = np.random.default_rng(seed)
    near, black, south, smsa = (rng.random(rows) < share for share in (0.68, 0.23, 0.40, 0.71))
    ability = rng.standard_normal(rows)
    schooling = np.clip(
        np.rint(12.8 + 0.75 * near - 0.9 * black + 0.4 * smsa + 1.6 * ability + 1.6 * rng.standard_normal(rows)), 1, 18
    )
    experience = np.clip(np.rint(34 - 6 - schooling - rng.integers(0, 10, rows)), 0, 23)
    wage = 4.7 + 0.1 * schooling + 0.08 * experience - 0.0024 * experience**2 - 0.2 * black - 0.14 * south + 0.13 * smsa
    wage = wage + 0.15 * ability + 0.33 * rng.standard_normal(rows)
    table = {"wage": np.clip(wage, 4.6, 7.8), "schooling": schooling, "experience": experience, "squared": experience**2}
    return {**table, "black": black, "south": south, "smsa": smsa, "near": near}


def card_schema():
    ends = {"wage": (4.6, 7.8), "schooling": (1, 18), "experience": (0, 23), "squared": (0, 529)}
    columns = [dpgram.Numeric(name, *both) for name, both in ends.items()]
    return dpgram.Schema(unit="person", columns=[*columns, *map(dpgram.Boolean, ("black", "south", "smsa", "near"))])


CARD = "wage ~ experience + squared + black + south + smsa + [schooling ~ near]"
