"""The law of inverse-wishart-adaptive."""

from __future__ import annotations

from dpgram.audits.laws.gaussian_sketch_adaptive import AdaptiveSketchLaw
from dpgram.audits.laws.inverse_wishart import InverseWishartLaw


class AdaptivePosteriorLaw(AdaptiveSketchLaw, InverseWishartLaw):
    """The first stage's law, and behind it that of the posterior draw."""
