"""Signed releases at the command line: keys, releases, and what every command says of a signature."""

from __future__ import annotations

import json
import re
import sys

import pytest

import dpgram
from dpgram.cli.app import run
from tests.cli.test_commands import RELEASE, call, folder  # noqa: F401


@pytest.fixture
def signed(folder, capsys):  # noqa: F811
    assert run(["keys", "new", "own.key", "--name", "Data office"]) == 0
    run(["ledger", "open", "--epsilon", "20", "--delta", "1e-5", "--unit", "person", "--dataset", "visits"])
    code, _, err = call(f"release t.csv {RELEASE} --sign own.key --ledger ledger.sqlite", capsys)
    assert code == 0
    assert "signed by 'Data office', with key SHA256:" in err
    return folder


def tamper(folder, name="release.json"):  # noqa: F811
    path = folder / name
    path.write_text(path.read_text().replace('"randomness": "', '"randomness": "not ', 1))


def test_a_release_that_was_signed_is_verified(signed, capsys):
    code, out, err = call("verify release.json --key own.pub", capsys)
    assert (code, err) == (0, "")
    assert re.match(r"verified: signed by 'Data office' with key SHA256:\S{43}, and unchanged since\.\n", out)
    code, out, _ = call("verify release.json --key own.pub --json", capsys)
    told = json.loads(out)
    assert (code, told["verified"], told["by"]) == (0, True, "Data office")
    (entry,) = dpgram.FileLedger("ledger.sqlite").account().entries
    assert told["sha256"] == entry.sha256
    _, out, _ = call("ledger show --json", capsys)
    assert json.loads(out)["releases"][0]["sha256"] == entry.sha256


def test_what_is_not_as_it_was_signed_is_not_verified(signed, capsys):
    def problem(release="release.json", key="own.pub"):
        code, out, err = call(f"verify {release} --key {key}", capsys)
        assert (code, out) == (1, "")
        return err.removeprefix("not verified: ")

    assert run(["keys", "new", "other.key", "--name", "Data office"]) == 0
    capsys.readouterr()
    assert problem(key="other.pub").startswith("it was signed with another key")
    plain = json.loads((signed / "release.json").read_text())
    del plain["signature"]
    (signed / "plain.json").write_text(json.dumps(plain))
    assert problem("plain.json").startswith("it is unsigned")
    tamper(signed)
    assert problem().startswith("its signature does not hold, so the file was changed")
    code, out, _ = call("verify release.json --key own.pub --json", capsys)
    assert (code, json.loads(out)["verified"]) == (1, False)


def test_bad_keys_are_bad_input(signed, capsys):
    for key, words in (("own.key", "the public key is needed"), ("gone.pub", "cannot be read"), ("t.csv", "is not a key file")):
        code, _, err = call(f"verify release.json --key {key}", capsys)
        assert code == 2
        assert words in err
    assert call("keys new own.key --name A", capsys)[0] == 2
    code, _, err = call(f"release t.csv {RELEASE} --overwrite --dry-run --sign own.pub", capsys)
    assert (code, "the private key is needed" in err) == (2, True)
    line = RELEASE.replace("release.json", "own.key")
    code, _, err = call(f"release t.csv {line} --overwrite --sign own.key", capsys)
    assert (code, "own.key is the key itself" in err) == (2, True)
    assert call("verify release.json --key own.pub", capsys)[0] == 0


def test_every_door_says_by_whom_it_is_signed(signed, capsys):
    def said(line):
        code, out, err = call(line, capsys)
        assert code == 0
        return " ".join((out + err).split())

    by = "signed by 'Data office', with key SHA256:"
    assert by in said("inspect release.json")
    assert json.loads(call("inspect release.json --json", capsys)[1])["signature"]["holds"] is True
    assert f"release.json: {by}" in said("regress release.json --target y")
    said("report release.json --out report.html")
    assert "signed by &#x27;Data office&#x27;, with key" in (signed / "report.html").read_text()
    tamper(signed)
    for line in (
        "inspect release.json",
        "regress release.json --target y",
        "report release.json --out r2.html",
        "cov release.json",
    ):
        code, _, err = call(line, capsys)
        assert code == 2
        assert "the signature of 'Data office' does not hold. The file was changed after it was signed. Do not use it" in err
    assert "BROKEN: signed by 'Data office'" in said("inspect release.json --ignore-signature")
    assert "release.json: BROKEN: signed" in said("regress release.json --target y --ignore-signature")
    said("report release.json --out r2.html --ignore-signature")
    assert "BROKEN: signed by &#x27;Data office&#x27;" in (signed / "r2.html").read_text()


def test_an_unsigned_release_is_called_unsigned(folder, capsys):  # noqa: F811
    assert call(f"release t.csv {RELEASE}", capsys)[0] == 0
    for line in ("inspect release.json", "regress release.json --target y"):
        _, out, err = call(line, capsys)
        assert "unsigned, so it does not prove that it comes from the custodian" in " ".join((out + err).split())
    assert json.loads(call("inspect release.json --json", capsys)[1])["signature"] is None


def test_a_combined_release_tells_which_parts_are_signed(signed, capsys):
    assert call(f"release t.csv {RELEASE.replace('release.json', 'other.json')}", capsys)[0] == 0
    assert call("combine release.json other.json --rows same --out both.json", capsys)[0] == 0
    _, out, _ = call("inspect both.json", capsys)
    words = " ".join(out.split())
    assert "part 1: signed by 'Data office'" in words
    assert "part 2: unsigned" in words
    parts = json.loads(call("inspect both.json --json", capsys)[1])["parts"]
    assert [part["signature"] and part["signature"]["by"] for part in parts] == ["Data office", None]
    code, _, err = call("verify both.json --key own.pub", capsys)
    assert (code, "it was combined of several releases" in err) == (1, True)
    assert call("combine other.json release.json --rows same --out third.json", capsys)[0] == 0
    tamper(signed)
    assert call("combine release.json other.json --rows same --out fourth.json", capsys)[0] == 2


def test_without_the_package_nothing_is_pretended(signed, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    _, out, _ = call("inspect release.json", capsys)
    assert "but not checked: run pip install 'dpgram[sign]' to check it" in " ".join(out.split())
    for line in (
        "verify release.json --key own.pub",
        "keys new b.key --name B",
        f"release t.csv {RELEASE} --overwrite --sign own.key",
    ):
        code, _, err = call(line, capsys)
        assert (code, "needs cryptography, which is not installed. Run  pip install 'dpgram[sign]'" in err) == (2, True)
