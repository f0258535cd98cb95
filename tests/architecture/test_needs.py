"""A test whose program or package is missing is skipped, fails where everything must run, and is named at the end."""

from __future__ import annotations

import pytest

from tests import needs


@pytest.mark.parametrize(("kind", "name"), [("system", "chromium"), ("package", "torch")])
def test_what_is_missing_skips_or_fails(kind, name, monkeypatch):
    monkeypatch.setattr(needs, "is_here", lambda kind, name: False)
    monkeypatch.delenv(needs.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"needs the {kind} '{name}'.*make test-"):
        needs.refuse(kind, name)
    monkeypatch.setenv(needs.REQUIRED, kind)
    with pytest.raises(pytest.fail.Exception, match=f"needs the {kind} '{name}'"):
        needs.refuse(kind, name)


def test_a_mark_or_a_fixture_is_enough(request, monkeypatch):
    request.node.add_marker(pytest.mark.system("nodejs"))
    needs_of = {fixture for fixture in needs.FIXTURES if fixture in request.fixturenames}
    assert needs_of == set()
    monkeypatch.setattr(needs, "program", lambda *names: None)
    monkeypatch.delenv(needs.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="nodejs"):
        needs.check(request.node)


def test_the_last_lines_name_what_to_install():
    skipped = []
    for kind, name in [("system", "chromium"), ("system", "chromium"), ("system", "postgresql"), ("package", "torch")]:
        with pytest.raises(pytest.skip.Exception) as caught:
            needs.refuse(kind, name)
        skipped.append(str(("file.py", 7, f"Skipped: {caught.value}")))
    assert needs.closing_lines([*skipped, "no NVIDIA GPU here"]) == [
        "NOT RUN: 3 tests or modules that need chromium, postgresql. `make test-system` installs what is missing and runs them.",
        "NOT RUN: 1 tests or modules that need torch. `make test-packages` installs what is missing and runs them.",
    ]


def test_every_program_that_a_fixture_needs_is_in_the_list():
    assert set(needs.FIXTURES.values()) <= set(needs.PROGRAMS)
