"""The law of gaussian-sketch-adaptive."""

from __future__ import annotations

from dpgram.audits.laws.first_stage import FirstStageLaw


class AdaptiveSketchLaw(FirstStageLaw):
    varying = ("first_stage_value", "w_squared", "sketch_rows")
