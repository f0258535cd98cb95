"""The second file of a new mechanism: how noise of its shape is read."""

from __future__ import annotations

from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence
from dpgram.terms.noise import SymmetricGaussian
from tests.architecture.two_draws import TwoDraws


class TwoDrawsLaw(Additive):
    """That of added noise."""

    @property
    def numbers(self):
        return Additive(SymmetricGaussian(self.noise.sd_off_diagonal, self.noise.sd_diagonal)).numbers


class TwoDrawsEvidence(Evidence, reads=TwoDraws, by=TwoDrawsLaw):
    """The matrix itself, in own columns."""
