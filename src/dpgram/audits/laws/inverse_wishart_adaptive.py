"""The law of inverse-wishart-adaptive."""

from __future__ import annotations

from dpgram.audits.laws.first_stage import FirstStageLaw
from dpgram.audits.laws.inverse_wishart import InverseWishartLaw


class AdaptivePosteriorLaw(FirstStageLaw, InverseWishartLaw):
    varying = ("first_stage_value", "psi", "degrees_of_freedom")
