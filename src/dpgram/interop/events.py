"""A release's cost for dp-accounting (``pip install 'dpgram[accounting]'``)."""

from __future__ import annotations

from functools import cache
from typing import Any

from dpgram.accounting.compose import Cost, GaussianCost, PlainCost
from dpgram.accounting.total import loss_distribution
from dpgram.artifact.release import GramRelease
from dpgram.errors import MechanismError, MissingExtraError
from dpgram.mechanisms import registry


def cost_of(release: GramRelease) -> Cost:
    """What is known of the release's privacy curve, from what it says of itself."""
    mechanism = registry.find(release.mechanism)
    task = registry.task(
        mechanism, release.budget, release.neighbours, len(release.columns), release.row_bound, release.calibration
    )
    return mechanism.cost(task, release.parameters)


def dp_event(release: GramRelease) -> Any:
    """The release as a ``dp_accounting.DpEvent``: a GaussianDpEvent where it is a Gaussian mechanism, exactly.

    Of other mechanisms dp-accounting has no event; they are an ``EpsilonDeltaDpEvent``, defined here, which its accountants do not know:
    compose those by ``privacy_loss_distribution``. The event is about the release's own neighbours (``release.neighbours``), whatever
    the accountant calls its relation: use its default, which counts a noise multiplier of 1/mu as a shift of mu. With REPLACE_ONE it would
    double the shift, as it does for queries whose sensitivity is that of adding a row."""
    library = _library()
    if not release.private:
        return library.NonPrivateDpEvent()
    cost = cost_of(release)
    if isinstance(cost, GaussianCost):
        return library.GaussianDpEvent(1 / cost.mu)
    return _event_class()(release.budget.epsilon, release.budget.delta)


def privacy_loss_distribution(release: GramRelease) -> Any:
    """The release as dp-accounting's PrivacyLossDistribution, which composes with others; from above."""
    _library()
    if not release.private:
        raise MechanismError("the release is not private, its noise came from a seed: it has no finite cost.")
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
