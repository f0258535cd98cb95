"""The file of a release: nothing is replaced unasked, its space is there before the noise, and what was paid for is not lost."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.artifact import atomic, place
from dpgram.artifact.atomic import drafted
from dpgram.artifact.place import expected_size
from dpgram.cli.app import run
from dpgram.errors import OutputError, UnsavedReleaseError
from dpgram.mechanisms.whitening import MORE_ROUNDS
from tests.conftest import NUMBERS_TOML, small_schema, small_table

ASKED = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian-noise"}
FULL = OSError(errno.ENOSPC, "No space left on device")


def failing(error):
    def fail(*_):
        raise error

    return fail


def made(path, **changes):
    return dpgram.release(small_table(), small_schema(), out=path, **{**ASKED, **changes})


def whole_files(folder):
    """The files that are there, drafts among them."""
    return sorted(file.name for file in folder.iterdir())


def test_no_file_is_replaced_unasked(small_release, tmp_path):
    path, ledger = tmp_path / "r.json", dpgram.SessionLedger(1.0, 1e-6)
    path.write_text("paid for")
    with pytest.raises(OutputError, match=r"r.json exists. Pass --overwrite \(overwrite=True in Python\)"):
        small_release.save(path)
    with pytest.raises(OutputError, match=r"r.json exists. Pass --overwrite \(overwrite=True in Python\)"):
        made(path, ledger=ledger)
    assert path.read_text() == "paid for"
    assert not ledger.entries
    small_release.save(path, overwrite=True)
    assert dpgram.load(path) == small_release
    assert dpgram.load(path) != made(path, overwrite=True) == dpgram.load(path)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_during_the_release_is_not_replaced_and_the_release_not_lost(tmp_path, monkeypatch, links):
    """Also where the file system has no hard links."""
    path = tmp_path / "r.json"
    if not links:
        monkeypatch.setattr("os.link", failing(OSError(95, "Operation not supported")))
    with pytest.raises(UnsavedReleaseError, match="r.json exists") as raised:
        made(path, progress=lambda _: path.write_text("another's"))
    assert path.read_text() == "another's"
    assert raised.value.fallback.parent == tmp_path
    assert str(raised.value) == (
        f"the release was saved to {raised.value.fallback} instead. Move it to where you want it, and do not make it again: the noise was "
        f"already drawn, so the budget counts as spent. What went wrong: {path} exists."
    )  # to follow the advice for a file that exists would cost the budget twice
    assert dpgram.load(raised.value.fallback) == raised.value.release
    assert len(whole_files(tmp_path)) == 2


def test_where_there_are_no_links_a_new_file_is_written_all_the_same(small_release, tmp_path, monkeypatch):
    monkeypatch.setattr("os.link", failing(OSError(95, "Operation not supported")))
    small_release.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json") == small_release
    assert whole_files(tmp_path) == ["r.json"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FULL, "No space left on device. Free some, or choose another disk."),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded. Free some, or choose another disk."),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system. Choose another place."),
    ],
)
def test_a_full_disk_costs_nothing(tmp_path, monkeypatch, error, words):
    """The space is taken before the ledger hears of the release."""
    ledger = dpgram.SessionLedger(1.0, 1e-6)
    monkeypatch.setattr(os, "posix_fallocate", failing(error), raising=False)
    with pytest.raises(OutputError) as raised:
        made(tmp_path / "r.json", ledger=ledger)
    assert str(raised.value) == f"cannot write {tmp_path / 'r.json'}: {words} Nothing was left behind. No budget was spent."
    assert not isinstance(raised.value, UnsavedReleaseError)
    assert not ledger.entries
    assert whole_files(tmp_path) == []


def test_what_is_said_of_a_full_disk_speaks_of_the_budget_only_where_none_was_spent(small_release, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(FULL))
    with pytest.raises(OutputError) as raised:
        small_release.save(tmp_path / "r.json")
    assert str(raised.value).endswith("No space left on device. Free some, or choose another disk. Nothing was left behind.")


@pytest.mark.parametrize("by", ["system", "refusing", "absent"])
def test_the_space_is_there_during_the_release_and_given_back_after_it(tmp_path, monkeypatch, by):
    """By the system's own call, or by writing where there is none or it refuses."""
    if by == "refusing":
        monkeypatch.setattr(os, "posix_fallocate", failing(OSError(95, "Operation not supported")), raising=False)
    if by == "absent":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    taken = []

    def look(_):
        (draft,) = tmp_path.iterdir()
        taken.append(draft.stat().st_blocks * 512)

    release = made(tmp_path / "r.json", progress=look)
    size = (tmp_path / "r.json").stat().st_size
    assert min(taken) >= expected_size(small_schema(), 0) > size
    assert dpgram.load(tmp_path / "r.json") == release
    assert whole_files(tmp_path) == ["r.json"]


def test_what_fails_while_the_space_is_held_is_raised_as_it_is(tmp_path):
    """An error of the system's own too: to the draft it is nothing special."""
    for error in (OSError(5, "Input/output error"), KeyboardInterrupt()):
        with pytest.raises(type(error)), drafted(tmp_path / "r.json", overwrite=False, size=10):
            raise error
        assert whole_files(tmp_path) == []


def test_an_interrupt_during_the_pass_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "r.json", progress=failing(KeyboardInterrupt()))
    assert whole_files(tmp_path) == []


def test_a_release_that_cannot_be_written_goes_to_the_temporary_folder(tmp_path, monkeypatch):
    """Its own folder is gone when the noise is drawn."""
    folder, elsewhere = tmp_path / "there", tmp_path / "temporary"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(elsewhere))

    def remove(_):
        if folder.exists():
            shutil.rmtree(folder)

    with pytest.raises(UnsavedReleaseError, match="No such file or directory") as raised:
        made(folder / "r.json", progress=remove)
    assert raised.value.fallback.parent == elsewhere
    assert dpgram.load(raised.value.fallback) == raised.value.release


def test_the_space_is_free_before_another_file_is_tried(tmp_path, monkeypatch):
    """A disk that is full by a few bytes has room for the file once the draft is gone."""
    free = []
    monkeypatch.setattr(atomic.Draft, "_move", failing(FULL))
    monkeypatch.setattr(place, "write_whole", lambda other, *_, **__: free.append(whole_files(tmp_path)))
    with pytest.raises(UnsavedReleaseError):
        made(tmp_path / "r.json")
    assert free == [[]]


def test_an_interrupt_of_the_last_write_keeps_the_release_and_says_where(tmp_path, monkeypatch):
    interrupts = iter([KeyboardInterrupt()])
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: failing(error)() if (error := next(interrupts, None)) else sync(file))
    with pytest.raises(KeyboardInterrupt) as raised:
        made(tmp_path / "r.json")
    (kept,) = whole_files(tmp_path)
    assert kept != "r.json"
    assert f"saved to {(tmp_path / kept).resolve()}" in "".join(raised.value.__notes__)
    assert dpgram.load(tmp_path / kept).private


def test_the_command_names_the_other_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(NUMBERS_TOML)
    Path("t.csv").write_text("x,y\n" + "1,2\n-3,4\n" * 20)
    link = os.link
    monkeypatch.setattr("os.replace", failing(FULL))
    monkeypatch.setattr("os.link", lambda a, b: failing(FULL)() if b.name == "r.json" else link(a, b))
    assert run(["release", "t.csv", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-3", "--out", "r.json"]) == 2
    said = capsys.readouterr().err
    (kept,) = tmp_path.glob("r.*.json")
    assert f"\nerror: the release was saved to {kept.resolve()} instead." in said
    assert said.rstrip().endswith(f"What went wrong: cannot write {Path('r.json').resolve()}: No space left on device.")
    assert "Nothing was left" not in said
    dpgram.load(kept)


@pytest.mark.parametrize("dim", [1, 3, 30, 63, 64, 80])
@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_the_expected_size_is_enough_and_not_far_off(tmp_path, dim, mechanism):
    """For few columns the words and the most rounds are far off; they are then less than a megabyte."""
    rng = np.random.default_rng(1)
    names = [f"a column with a rather long name, number {j}" for j in range(dim)]
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1e6 / 3, 1e6 / 7) for name in names])
    rows = rng.normal(size=(20_000, dim)) @ (np.eye(dim) + rng.normal(size=(dim, dim)))
    release = dpgram.release(
        rows, schema, columns=names, epsilon=1.0, delta=1e-6, mechanism=mechanism, arithmetic="float", out=tmp_path / "r.json"
    )
    size, expected = (tmp_path / "r.json").stat().st_size, expected_size(schema, MORE_ROUNDS if release.noise.rounds else 0)
    assert size <= expected <= max(8 * size, 1_000_000)


def test_levels_and_their_names_are_expected(tmp_path):
    schema = dpgram.Schema(unit="p", columns=[dpgram.Categorical("c", [f"a level called {k}" * 20 for k in range(60)])])
    made = dpgram.release(pa.table({"c": ["a"] * 9}), schema, **ASKED)
    made.save(tmp_path / "r.json")
    assert (tmp_path / "r.json").stat().st_size <= expected_size(schema, 0)
