"""The second file of a new mechanism: how noise of its shape is read."""

from __future__ import annotations

from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence
from tests.architecture.two_draws import TwoDraws


class TwoDrawsEvidence(Evidence, reads=TwoDraws, by=Additive):
    """The matrix itself, in own columns."""
