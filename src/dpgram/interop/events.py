"""A release's cost for dp-accounting (``pip install 'dpgram[accounting]'``)."""

from __future__ import annotations

from functools import cache
from typing import Any

from dpgram.accounting.compose import Cost, GaussianCost, PlainCost
from dpgram.accounting.total import loss_distribution
from dpgram.artifact.combined import CombinedRelease
from dpgram.artifact.release import GramRelease
from dpgram.errors import MechanismError, MissingExtraError
from dpgram.mechanisms import registry


def cost_of(release: GramRelease) -> Cost:
    """What is known of the release's privacy curve, from what it says of itself. Of a combined release it is only its budget."""
    if isinstance(release, CombinedRelease):
        return PlainCost(release.budget.epsilon, release.budget.delta)
    given = (release.budget, release.neighbours, len(release.columns), release.row_bound, release.calibration)
    return registry.cost_of(release.mechanism, *given, release.parameters)


def dp_event(release: GramRelease) -> Any:
    """Describe the cost of a release as an event of dp-accounting.

    A Gaussian mechanism becomes a ``GaussianDpEvent``, which is exact. dp-accounting has no event for other mechanisms. They become an
    ``EpsilonDeltaDpEvent``, which is defined here. The accountants of dp-accounting do not know it, so compose such releases with
    ``privacy_loss_distribution``.

    The event is about the release's own neighbours (``release.neighbours``). Use the default relation of the accountant, whatever it is
    called. Do not use REPLACE_ONE: it would double the cost, because it expects the sensitivity of adding a row.

    Parameters
    ----------
    release : GramRelease
        The release.

    Returns
    -------
    dp_accounting.DpEvent
        The event. It is a ``NonPrivateDpEvent`` if the noise came from a seed.

    Raises
    ------
    MissingExtraError
        If dp-accounting is not installed.
    """
    library = _library()
    if not release.private:
        return library.NonPrivateDpEvent()
    cost = cost_of(release)
    if isinstance(cost, GaussianCost):
        return library.GaussianDpEvent(1 / cost.mu)
    return _event_class()(release.budget.epsilon, release.budget.delta)


def privacy_loss_distribution(release: GramRelease) -> Any:
    """Describe the cost of a release as a privacy loss distribution of dp-accounting.

    It can be composed with others. It is pessimistic: it never claims less cost than there is.

    Parameters
    ----------
    release : GramRelease
        The release.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        The distribution.

    Raises
    ------
    MechanismError
        If the noise came from a seed, so the release is not private.
    MissingExtraError
        If dp-accounting is not installed.
    """
    _library()
    if not release.private:
        raise MechanismError("the release is not private, because its noise came from a seed. Its cost is infinite.")
    cost = cost_of(release)
    if isinstance(cost, GaussianCost):
        return loss_distribution(cost.mu, ())
    return loss_distribution(0.0, ((PlainCost(release.budget.epsilon, release.budget.delta), 1),))


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError:
        raise MissingExtraError(package="dp-accounting", extra="accounting", purpose="an event for other accountants") from None
    return dp_accounting


@cache
def _event_class() -> type:
    """An event of which only (epsilon, delta) is known. The class is made when it is needed: dp-accounting takes seconds to import."""
    import attr

    bases = (_library().DpEvent,)
    return attr.make_class("EpsilonDeltaDpEvent", ["epsilon", "delta"], bases=bases, frozen=True, slots=True, order=False)
