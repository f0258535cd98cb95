"""Files and arrays that lie: a whole sum of bounded rows or an error that tells nothing, and never the end of the process."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.engines import summing
from dpgram.engines.open import open_pass
from dpgram.errors import UnreadableTableError
from dpgram.rows.clip import BoundedRows
from tests.fuzz import seeds
from tests.fuzz.replay import INPUTS
from tests.fuzz.target import PLAIN, SCHEMAS, check_table, without_kernel

ROOT = Path(__file__).parents[2]
ORDINARY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def child(*command: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@pytest.mark.parametrize("which", ["inputs", "sweep", "memory"])
def test_no_input_ends_the_process(which, tmp_path):
    """The seeds and every input that ever failed; files with every word overwritten in turn; arrays whose buffers lie."""
    done = child("tests.fuzz.replay", which, str(tmp_path))
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"at the input {lines[-1:]}, exit code {done.returncode}:\n{done.stderr}"
    assert done.stderr == ""
    summed, refused = map(int, re.fullmatch(r"(\d+) summed, (\d+) refused", lines[-1]).groups())
    assert summed >= 3  # both happen: the inputs are neither all sound nor all nonsense
    assert refused >= 3


@pytest.mark.package("atheris")
@pytest.mark.parametrize("kind", seeds.FORMATS)
def test_the_fuzzer_of_files_runs(kind, tmp_path):
    """A couple of seconds of what `make fuzz` does for longer."""
    done = child("tests.fuzz.atheris_files", kind, "2", str(tmp_path))
    assert done.returncode == 0, done.stderr[-5000:]
    assert list(tmp_path.glob("*/failed-*")) == []


INTERESTING = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from(
        [struct.pack(f"<{code}", n) for code in "bhiq" for n in (0, 1, -1, 2 ** (8 * struct.calcsize(code) - 1) - 1)]
    ),
)
EDITS = st.lists(
    st.tuples(st.sampled_from(["put", "insert", "cut", "double", "end"]), st.floats(0, 1), INTERESTING), min_size=1, max_size=4
)


def edited(content: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    """The file after some accidents: bytes overwritten, put in, lost, doubled, or all after a place lost."""
    for what, where, word in edits:
        place = int(where * len(content))
        match what:
            case "put":
                content = content[:place] + word + content[place + len(word) :]
            case "insert":
                content = content[:place] + word + content[place:]
            case "cut":
                content = content[:place] + content[place + len(word) :]
            case "double":
                content = content[:place] + content[place : place + 8 * len(word)] + content[place:]
            case "end":
                content = content[:place]
    return content


@pytest.mark.parametrize("kind", seeds.FORMATS)
@ORDINARY
@given(data=st.data(), edits=EDITS, schema=st.sampled_from(SCHEMAS))
def test_damaged_files(tmp_path_factory, kind, data, edits, schema):
    name, content = data.draw(st.sampled_from(list(seeds.FORMATS[kind]())))
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(edited(content, edits))
    check_table(lambda: str(path), schema, where=str(path))


@pytest.mark.parametrize("kind", seeds.FORMATS)
@settings(ORDINARY, max_examples=40)
@given(content=st.binary(max_size=300))
def test_files_of_anything(tmp_path_factory, kind, content):
    """Bytes as they come, and behind the marks by which readers know a format."""
    marks = {"csv": (b"x,n,c,k,b,d\n", b""), "parquet": (b"PAR1", b"PAR1"), "arrow": (b"ARROW1\0\0", b"ARROW1")}[kind]
    path = tmp_path_factory.getbasetemp() / f"anything.{kind}"
    for made in (content, marks[0] + content + marks[1], marks[0] + content + struct.pack("<i", len(content)) + marks[1]):
        path.write_bytes(made)
        check_table(lambda: str(path), PLAIN, where=str(path))


def test_a_column_that_ends_before_the_others_is_no_shorter_table():
    """Arrow hands out what the shortest column has, without a word: rows would be lost, and their number be wrong."""
    path = INPUTS / "column_that_holds_no_values.parquet"
    for threads in (1, 2):
        with pytest.raises(UnreadableTableError, match="fewer rows than it declares"):
            open_pass(path, PLAIN, threads=threads).gram(1.0)


@pytest.mark.parametrize("name", ["name_that_is_not_text.arrow", "name_that_is_not_text.parquet"])
def test_a_name_that_is_not_text_is_our_error(name):
    with pytest.raises(UnreadableTableError, match="UnicodeDecodeError"):
        open_pass(INPUTS / name, PLAIN)
    with pytest.raises(UnreadableTableError, match="UnicodeDecodeError"):
        dpgram.draft_schema(INPUTS / name)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("d", pa.array([1, 86_400_000], pa.int64()).view(pa.date64())),  # some writers keep the time of day
        ("x", pa.array([b"\x00" * 16, b"\x7f" * 16], pa.binary(16)).view(pa.decimal128(10, 2))),
        ("c", pa.array([b"a", b"\xff" * 20], pa.binary_view()).view(pa.string_view())),
    ],
)
def test_a_cell_that_makes_no_sense_in_its_type_is_no_reason_to_refuse_a_file(name, column, tmp_path):
    """Arrow's own full check of a file looks into the cells: one row would decide between a release and an error."""
    table = seeds.table().slice(0, 2)
    table = table.set_column(table.column_names.index(name), name, column)
    (tmp_path / "t.arrow").write_bytes(seeds.ipc_file(table))
    with pytest.raises(pa.ArrowInvalid):
        column.validate(full=True)
    assert check_table(lambda: str(tmp_path / "t.arrow"), PLAIN).rows == 2


def test_a_signalling_number_in_a_matrix_warns_of_nothing():
    """NumPy warns when it copies one to another type: a warning that depends on somebody's row."""
    cells = np.array([[0x7F800001, 0]], np.uint32).view(np.float32)
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1), dpgram.Numeric("y", 0, 1)])
    assert check_table(lambda: cells, schema, columns=["x", "y"]).rows == 1


def test_the_assertions_see_a_row_that_is_not_bounded(monkeypatch):
    """A clip that forgets its bound is caught: what this folder asserts can fail."""
    monkeypatch.setattr(summing, "clip", lambda encoded, bound, _: BoundedRows(np.trunc(encoded * 2**20), bound))
    with without_kernel(), pytest.raises(AssertionError):
        check_table(seeds.table, PLAIN)
