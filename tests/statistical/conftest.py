"""Every test draws from a source of its own, so that what it sees does not depend on the tests that ran before it."""

import pytest

from dpgram.sampling.base import RandomSource
from dpgram.sampling.exact import ExactSource
from tests.statistical.arithmetics import SOURCES


@pytest.fixture
def rng(request) -> RandomSource:
    return SOURCES[request.param](77)


@pytest.fixture
def exact() -> ExactSource:
    return ExactSource(5)
