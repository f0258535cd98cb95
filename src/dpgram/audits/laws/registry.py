"""Every law by its mechanism's name. A mechanism that is new needs a file here and one line: without them it cannot be audited."""

from __future__ import annotations

from dpgram.audits.laws.base import Law
from dpgram.audits.laws.gaussian_noise import GaussianNoiseLaw
from dpgram.audits.laws.gaussian_sketch import GaussianSketchLaw
from dpgram.audits.laws.gaussian_sketch_adaptive import AdaptiveSketchLaw
from dpgram.audits.laws.inverse_wishart import InverseWishartLaw
from dpgram.audits.laws.inverse_wishart_adaptive import AdaptivePosteriorLaw
from dpgram.audits.laws.noisy_inverse import NoisyInverseLaw
from dpgram.audits.laws.whitened_noise import WhitenedNoiseLaw
from dpgram.audits.laws.wishart_noise import WishartNoiseLaw
from dpgram.errors import MechanismError

LAWS: dict[str, type[Law]] = {
    "gaussian-noise": GaussianNoiseLaw,
    "gaussian-sketch": GaussianSketchLaw,
    "gaussian-sketch-adaptive": AdaptiveSketchLaw,
    "wishart-noise": WishartNoiseLaw,
    "inverse-wishart": InverseWishartLaw,
    "inverse-wishart-adaptive": AdaptivePosteriorLaw,
    "noisy-inverse": NoisyInverseLaw,
    "whitened-noise": WhitenedNoiseLaw,
}


def law_of(mechanism: str) -> type[Law]:
    """The law of ``mechanism``; raises where there is none, or where a part of it is missing."""
    if mechanism not in LAWS:
        raise MechanismError(
            f"{mechanism} cannot be audited: its law is not known. Write a subclass of audits.laws.base.Law, with "
            f"{_in_words(Law.__abstractmethods__)}, and list it in audits.laws.registry.LAWS."
        )
    law = LAWS[mechanism]
    if law.__abstractmethods__:
        raise MechanismError(f"{mechanism} cannot be audited: {law.__name__} lacks {_in_words(law.__abstractmethods__)}.")
    return law


def _in_words(names: frozenset[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
