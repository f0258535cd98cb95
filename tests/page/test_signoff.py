"""The sign-off says what an officer needs in plain words, is about the very file that was paid for, and prints on two pages of A4."""

from __future__ import annotations

import html
import re
import subprocess
from dataclasses import replace

import pytest

import dpgram
from dpgram.artifact.signature import write_new_key
from dpgram.cli.app import run
from dpgram.doctor import selftests
from tests.conftest import small_schema, small_table
from tests.needs import PROGRAMS, program

ASKED = {"epsilon": 1.0, "delta": 1e-7, "mechanism": "gaussian-noise"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selftests, "SELF_TESTS", {"floating point": lambda: "ok"})
    dpgram.FileLedger.create("ledger.sqlite", epsilon=3, delta=1e-6, unit="person", dataset="visits <2026>")
    return tmp_path


def made(out="r.json", schema=None, table=None, **how):
    return dpgram.release(
        table or small_table(), schema or small_schema(), **{**ASKED, "ledger": "ledger.sqlite", **how}, out=out
    )


def signoff(capsys, line="r.json"):
    code = run([*["signoff", "--overwrite", "--out", "s.html"], *line.split()])
    return code, capsys.readouterr().err


def page(capsys, line="r.json"):
    code, err = signoff(capsys, line)
    assert code == 0, err
    with open("s.html", encoding="utf-8") as file:
        return file.read()


def told(capsys, line="r.json"):
    """What the page says, by the name in front of it."""
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page(capsys, line))
    assert len({name for name, _ in pairs}) == len(pairs)
    return {name: html.unescape(text) for name, text in pairs}


def test_the_page_says_what_is_signed(folder, capsys):
    write_new_key(folder / "own.key", "Data office")
    release = made(sign="own.key")
    made("again.json", epsilon=0.5)
    said = told(capsys)
    assert said["dataset"] == "visits <2026>"
    assert said["file"] == "r.json"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", said["made on"])
    assert said["run by"] == "Data office, who signed it"
    assert said["who is protected"] == "one person"
    assert said["budget"] == said["this release"] == "epsilon 1, delta 1e-07"
    assert "can become at most 73.11 % sure of one of them" in said["in plain words"]
    assert "a chance of one in 10,000,000" in said["in plain words"]
    assert said["all so far"].startswith("epsilon 1.5, delta 2e-07, added up. That is at most epsilon 1.0")
    assert "2 releases of the dataset" in said["all so far"]
    assert said["allowed in all"] == "epsilon 3, delta 1e-06"
    assert said["number of rows"] == f"{release.rows:,}, which is public"
    assert said["rows of a unit"].startswith("assumed: each person has one row. This is not checked.")
    assert said["bounds"].startswith("the schema does not say where its bounds come from")
    assert re.search(r"gaussian_noise\.md of dpgram \S+, which tests tie to the code\. SHA-256 [0-9a-f]{64}$", said["proof"])
    assert said["self-test"].startswith("passed: floating point (dpgram")
    assert said["signature"].startswith("signed by 'Data office', with key SHA256:")
    assert re.fullmatch(r"[0-9a-f]{64} \(the same as in the ledger\)", said["SHA-256"])
    assert said["ledger"].startswith("line 2. Seal of its last line, 5: ")
    shown = page(capsys)
    assert 'class="warning"' not in shown
    assert "<script" not in shown
    assert "visits <2026>" not in shown
    assert not re.search(r"[a-z]_[a-z]", re.sub(r"<style>.*?</style>|gaussian_noise\.md", "", shown, flags=re.DOTALL))


def test_enforced_units_and_a_look_at_the_rows_are_told(folder, capsys):
    table = small_table()
    table = table.append_column("pid", [[str(k // 2) for k in range(len(table))]])
    looked = "from the textbook. The rows were looked at with dpgram check."
    made(schema=small_schema(unit_id="pid", rows_per_unit=2, provenance=looked), table=table)
    said = told(capsys, "r.json --by Ada")
    assert said["run by"] == "Ada"
    assert said["who is protected"] == "one person, with all rows"
    assert said["rows of a unit"].startswith("enforced: all rows of one person together count as at most 2 rows.")
    assert said["bounds"].startswith(f"the schema says of its bounds: {looked} What was chosen after that look is not covered")
    assert said["number of rows"] == "protected"
    assert said["signature"].startswith("unsigned")


def test_who_ran_an_unsigned_release_is_filled_in_by_hand(folder, capsys):
    made()
    assert told(capsys)["run by"].endswith("(fill in by hand)")


def test_what_speaks_against_it_stands_first(folder, capsys, monkeypatch):
    def fails():
        raise selftests.SelfTestError("no")

    monkeypatch.setattr(selftests, "SELF_TESTS", {"calibration": fails})
    made(insecure_seed=1)
    warnings = re.findall(r'<p class="warning">(.*?)</p>', page(capsys))
    assert [text.partition(":")[0] for text in warnings] == ["NOT PRIVATE", "The software failed a self-test"]
    assert "self-test failed" in signoff(capsys)[1]


def test_only_the_file_that_was_paid_for_is_signed_off(folder, capsys):
    def refused(line, words):
        code, err = signoff(capsys, line)
        assert code == 2
        assert words in err

    one = made()
    made("alone.json", ledger=None)
    refused("alone.json", "alone.json was made without a ledger")
    refused("r.json --ledger gone.sqlite", "there is no ledger at")
    dpgram.FileLedger.create("other.sqlite", epsilon=3, delta=1e-6, unit="person", dataset="other")
    refused("r.json --ledger other.sqlite", "was paid for by line 2 of another ledger")
    replace(one, randomness="another").save("changed.json")
    refused("changed.json", "this is not the file that line 2 of the ledger paid for")
    dpgram.combine([one, made("two.json")], rows="same").save("both.json")
    refused("both.json", "was combined of several releases")
    write_new_key(folder / "own.key", "Data office")
    made("signed.json", sign="own.key", epsilon=0.1)
    text = (folder / "signed.json").read_text()
    (folder / "signed.json").write_text(text.replace("Data office", "Somebody"))
    refused("signed.json", "the signature of 'Somebody' does not hold")
    for taken, words in (("ledger.sqlite", "is the ledger itself"), ("r.json", "is the release itself")):
        assert run(["signoff", "r.json", "--overwrite", "--out", taken]) == 2
        assert words in capsys.readouterr().err
    assert not (folder / "s.html").exists()


def test_a_line_of_an_older_version_has_no_hash(folder, capsys, monkeypatch):
    monkeypatch.setattr("dpgram.curator.takes_sha256", lambda ledger: False)
    made()
    assert told(capsys)["SHA-256"].endswith(" (the ledger has none to compare it with)")


@pytest.mark.system("chromium")
@pytest.mark.xdist_group("browser")
def test_it_prints_on_two_pages_of_a4(folder, capsys):
    """With long names, a long provenance, many columns and every warning."""
    columns = [dpgram.Numeric(f"a rather long name of a column {k}", 0, 1) for k in range(40)]
    table = {column.name: [0.5, 0.25] * 50 for column in columns}
    made(schema=dpgram.Schema(unit="person", columns=columns, provenance="from the domain " * 30), table=table, insecure_seed=1)
    page(capsys)
    browser = program(*PROGRAMS["chromium"][0])
    how = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder / 'profile'}"]
    subprocess.run([browser, *how, "--print-to-pdf=s.pdf", "s.html"], check=True, capture_output=True, timeout=120)
    printed = (folder / "s.pdf").read_bytes()
    assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 2
    sizes = [[float(each) for each in box.split()] for box in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", printed)]
    assert all(abs(width - 595) < 1 and abs(height - 842) < 1 for _, _, width, height in sizes)
