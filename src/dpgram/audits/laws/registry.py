"""Every law by its mechanism's name. A mechanism that is new needs a file here and one line: without them it cannot be audited."""

from __future__ import annotations

from dpgram.audits.laws.base import MechanismLaw
from dpgram.audits.laws.gaussian_noise import GaussianNoiseLaw
from dpgram.audits.laws.gaussian_sketch import GaussianSketchLaw
from dpgram.audits.laws.gaussian_sketch_adaptive import AdaptiveSketchLaw
from dpgram.audits.laws.inverse_wishart import InverseWishartLaw
from dpgram.audits.laws.inverse_wishart_adaptive import AdaptivePosteriorLaw
from dpgram.audits.laws.looks import MECHANISM as LOOKS
from dpgram.audits.laws.looks import LooksLaw
from dpgram.audits.laws.noisy_inverse import NoisyInverseLaw
from dpgram.audits.laws.whitened_noise import WhitenedNoiseLaw
from dpgram.audits.laws.wishart_noise import WishartNoiseLaw
from dpgram.errors import MechanismError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import Mechanism

LAWS: dict[str, type[MechanismLaw]] = {
    "gaussian-noise": GaussianNoiseLaw,
    "gaussian-sketch": GaussianSketchLaw,
    "gaussian-sketch-adaptive": AdaptiveSketchLaw,
    "wishart-noise": WishartNoiseLaw,
    "inverse-wishart": InverseWishartLaw,
    "inverse-wishart-adaptive": AdaptivePosteriorLaw,
    "noisy-inverse": NoisyInverseLaw,
    "whitened-noise": WhitenedNoiseLaw,
    "looks": LooksLaw,
}

PARTS: dict[str, Mechanism] = {LOOKS.name: LOOKS}
"""Parts of mechanisms that are audited by themselves, because they have too little of the budget to show in a whole release."""


def find(name: str) -> Mechanism:
    """The mechanism, or the part of one, that has this name."""
    return PARTS.get(name) or registry.find(name)


def law_of(mechanism: str) -> type[MechanismLaw]:
    """The law of ``mechanism``; raises where there is none, or where a part of it is missing."""
    law = LAWS.get(mechanism, MechanismLaw)
    missing = ", ".join(sorted(law.__abstractmethods__))
    if law is MechanismLaw:
        raise MechanismError(
            f"{mechanism} cannot be audited: its law is not known. List a subclass of audits.laws.base.MechanismLaw in "
            f"audits.laws.registry.LAWS that has {missing}."
        )
    if missing:
        raise MechanismError(f"{mechanism} cannot be audited: its law, {law.__name__}, lacks {missing}.")
    return law
