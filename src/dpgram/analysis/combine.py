"""Several releases as one, for every analysis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dpgram.artifact.combined import CombinedRelease, combined
from dpgram.artifact.release import GramRelease
from dpgram.errors import CombineError
from dpgram.version import __version__


def combine(releases: Iterable[GramRelease], *, rows: Literal["disjoint", "same"]) -> CombinedRelease:
    """Combine several releases into one.

    The releases must be by gaussian-noise, whitened-noise or wishart-noise, in any mixture, and their schemas must declare the same
    columns. Releases by noisy-inverse can be combined if they are of the same rows. It costs no budget.

    Parameters
    ----------
    releases : list of GramRelease
        The releases, two or more. A combined release can be among them.
    rows : {"disjoint", "same"}
        Say "disjoint" if no row is in two of the releases, as with several hospitals or years. The Gram matrices are then added up. Each
        row keeps the promise of the release that it is in. Say "same" if all releases are of the same rows. Their mean then has less noise
        than each of them, and their epsilons and deltas add up. It has no default, because a release does not show which is true.

    Returns
    -------
    CombinedRelease
        A release of all rows. Pass it to ``regress``, ``covariance``, ``pca`` or ``select``, or save it.

    Raises
    ------
    CombineError
        If the schemas differ, if a release is given twice, if a mechanism does not allow it, or if releases of the same rows have different
        numbers of rows.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> north = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    >>> south = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> both = dpgram.combine([north, south], rows="disjoint")
    >>> both
    CombinedRelease(3 columns, epsilon=2, delta=1e-06, neighbours=replace, mechanism=combined, 2 parts of disjoint rows)
    >>> both.rows
    60000
    >>> dpgram.regress(both, "pressure", ["age"]).names
    ('(intercept)', 'age')
    """
    if isinstance(releases, GramRelease) or not isinstance(releases, Iterable):
        raise CombineError(
            f"combine got a {type(releases).__name__}, but it needs a list of releases, as in combine([first, second])."
        )
    return combined(list(releases), rows, library_version=__version__)
