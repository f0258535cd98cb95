"""Every mechanism has its law, and what only audits need stays out of trusted code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dpgram
from dpgram.audits.laws.base import MechanismLaw
from dpgram.audits.laws.registry import LAWS, PARTS, law_of
from dpgram.errors import MechanismError
from dpgram.mechanisms.registry import MECHANISMS

HOME = Path(dpgram.__file__).parent
TRUSTED = (
    "terms",
    "encoding",
    "linalg",
    "native",
    "sources",
    "rows",
    "engines",
    "accounting",
    "sampling",
    "mechanisms",
    "ledger",
)


def test_every_mechanism_has_its_law_in_a_file_of_its_name():
    assert set(LAWS) == set(MECHANISMS) | set(PARTS)
    for name, law in LAWS.items():
        assert law.__module__ == f"dpgram.audits.laws.{name.replace('-', '_')}"
        assert law_of(name) is law
        assert law.curve is not MechanismLaw.curve  # which knows no more than the budget


def test_a_law_that_is_missing_is_named_with_what_it_needs():
    with pytest.raises(MechanismError, match="no-such cannot be audited: its law is not known.*delta, loss, uniforms"):
        law_of("no-such")


def test_a_law_without_a_part_is_an_error(monkeypatch):
    monkeypatch.setitem(LAWS, "gaussian-noise", type("Bare", (MechanismLaw,), {}))
    with pytest.raises(MechanismError, match="Bare, lacks delta, loss, uniforms"):
        law_of("gaussian-noise")


@pytest.mark.parametrize("room", [*TRUSTED, "custody.py", "curator.py"])
def test_trusted_code_does_not_know_of_audits(room):
    """Nothing is done otherwise because somebody looks."""
    place = HOME / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert [file.name for file in files if re.search("audit", file.read_text(encoding="utf-8"), re.IGNORECASE)] == []
