"""Which arithmetic a release is made in, and from which source its randomness comes."""

from __future__ import annotations

import warnings

from dpgram.errors import FloatArithmeticWarning, MechanismError
from dpgram.sampling.base import RandomSource
from dpgram.sampling.secure import SecureSource
from dpgram.sampling.seeded import SeededSource, check_seed

CHOICES = ("exact", "float")
WIDTH, PATIENCE = 200, 60.0  # columns, and seconds, up to which arithmetic is exact unless somebody asks for floats
SECONDS_PER_ENTRY, SECONDS_PER_PRODUCT = 1.6e-5, 2.2e-8  # on one core of 2026: docs/benchmarks.md


def exact_seconds(dim: int) -> float:
    """About how long exact arithmetic takes for ``dim`` columns, after the rows are summed."""
    return SECONDS_PER_ENTRY * dim**2 + SECONDS_PER_PRODUCT * dim**3


def chosen(arithmetic: str | None, dim: int, *, private: bool) -> str:
    """Exact or float, as asked for; by default exact where that takes a minute at most, and float for experiments with a seed."""
    if arithmetic is not None:
        if arithmetic not in CHOICES:
            raise MechanismError(f"arithmetic is {arithmetic!r} and must be 'exact' or 'float'.")
        return arithmetic
    return "exact" if private and (dim <= WIDTH or exact_seconds(dim) <= PATIENCE) else "float"


def source_for(arithmetic: str | None, dim: int, insecure_seed: int | None) -> RandomSource:
    """The source for a release of ``dim`` columns; warns where floats were not asked for and are taken."""
    if insecure_seed is not None:
        check_seed(insecure_seed)
    choice = chosen(arithmetic, dim, private=insecure_seed is None)
    if choice == "exact":
        from dpgram.sampling.exact import ExactSource  # its library takes a tenth of a second to import

        return ExactSource(insecure_seed)
    if insecure_seed is not None:
        return SeededSource(insecure_seed)
    if arithmetic is None:
        warnings.warn(
            f"{dim} columns would take about {exact_seconds(dim):.0f} s in exact arithmetic, so the noise is drawn in float64. There, "
            f"floating-point rounding may leak something about the rows. Pass arithmetic='exact' to wait, or arithmetic='float' to "
            f"accept it.",
            FloatArithmeticWarning,
            stacklevel=4,
        )
    return SecureSource()
