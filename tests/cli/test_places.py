"""Where the commands write: nothing is replaced unasked, no release through a link. What cannot be written is
refused before any work."""

import json

import pytest

import dpgram
from dpgram.errors import OutputError
from tests.cli.test_commands import call
from tests.conftest import NUMBERS_TOML, small_schema, small_table

PLOTS = [
    "regress r.json --target y",
    "logit r.json --target b",
    "cov r.json",
    "pca r.json",
    "partial r.json",
    "graph r.json",
]


@pytest.fixture
def here(tmp_path, monkeypatch, small_release):
    monkeypatch.chdir(tmp_path)
    small_release.save(tmp_path / "r.json")
    return tmp_path


@pytest.mark.parametrize("line", PLOTS)
def test_a_figure_replaces_no_file_unasked_and_no_release_at_all(here, capsys, line):
    (here / "old.png").write_bytes(b"old")
    (here / "link.png").symlink_to("r.json")
    (here / "same.png").hardlink_to(here / "r.json")
    before = (here / "r.json").read_bytes()
    code, out, err = call(f"{line} --plot old.png", capsys)
    assert (code, out) == (2, "")
    assert "old.png exists. Pass --overwrite" in err
    for name in ("link.png", "same.png"):
        for more in ("", " --overwrite"):
            code, out, err = call(f"{line} --plot {name}{more}", capsys)
            assert (code, out) == (2, "")
            assert f"{name} is r.json itself" in err
    assert (here / "r.json").read_bytes() == before
    assert call(f"{line} --plot old.png --overwrite", capsys)[0] == 0
    assert (here / "old.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("line", ["plan --schema s.toml --epsilon 1 --delta 1e-6 --table-rows 99", "audit gaussian-noise"])
def test_a_figure_replaces_nothing_but_a_figure_through_a_link(here, capsys, line):
    """These commands read no release, so they cannot know that one is there."""
    (here / "s.toml").write_text(NUMBERS_TOML)
    (here / "link.svg").symlink_to("r.json")
    before = (here / "r.json").read_bytes()
    code, out, err = call(f"{line} --plot link.svg --overwrite", capsys)
    assert (code, out) == (2, "")
    assert "link.svg is a link to" in err
    assert "r.json, which is no figure" in err
    assert (here / "r.json").read_bytes() == before


LINKS = {
    "gone.json": ("nowhere/r.json", "it is a link to .*nowhere/r.json, and there is no folder .*nowhere"),
    "circle.json": ("circle.json", "it is a link that leads back to itself"),
    "one.json": ("two.json", "it is a link that leads back to itself"),
    "two.json": ("one.json", "it is a link that leads back to itself"),
    "far/in/r.json": ("", "there is no folder far/in"),
}


@pytest.mark.parametrize("place", LINKS)
def test_a_link_that_leads_nowhere_is_refused_before_anything_is_reserved_or_drawn(here, monkeypatch, capsys, place):
    for name, (target, _) in LINKS.items():
        if target:
            (here / name).symlink_to(target)
    ledger = dpgram.FileLedger.create("l.sqlite", epsilon=3, delta=1e-5, unit="person", dataset="d")
    with monkeypatch.context() as patched:
        patched.setattr("dpgram.sampling.secure.SecureSource.normal", lambda *_, **__: pytest.fail("drawn"), raising=False)
        with pytest.raises(OutputError, match=LINKS[place][1]):
            dpgram.release(
                small_table(), small_schema(), epsilon=1, delta=1e-6, mechanism="gaussian-noise", ledger=ledger, out=place
            )
    assert ledger.account().entries == ()
    for line in ("report r.json --out", "combine r.json r.json --rows same --out", "check t.csv --schema s.toml --out"):
        if line.startswith("check"):
            (here / "t.csv").write_text("x\n1\n")
            (here / "s.toml").write_text('unit = "p"\n[[columns]]\nname = "x"\nkind = "numeric"\nlower = 0\nupper = 1\n')
        code, out, err = call(f"{line} {place}", capsys)
        assert (code, out) == (2, "")
        assert "cannot write" in err


def test_a_link_to_a_file_that_is_not_there_yet_is_followed(here):
    (here / "folder").mkdir()
    (here / "link.json").symlink_to("folder/r.json")
    dpgram.load("r.json").save("link.json")
    assert json.loads((here / "folder" / "r.json").read_text())["format"] == 1


def test_a_name_that_no_disk_takes_is_refused_in_words(here):
    with pytest.raises(OutputError, match="cannot write"):
        dpgram.load("r.json").save("x" * 5000 + ".json")
    with pytest.raises(OutputError, match="cannot write 'a.x00b'"):
        dpgram.load("r.json").save("a\0b")
