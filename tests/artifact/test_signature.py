"""A signed release shows who signed it and that nothing was changed, and whatever is wrong with a key is said before anything is spent."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
import subprocess
import sys

import pytest

import dpgram
from dpgram.artifact import signature as signing
from dpgram.artifact.files import content_of, file_hash, signed
from dpgram.artifact.signature import read_public_key, read_signing_key, signed_bytes, write_new_key
from dpgram.errors import BrokenSignatureError, KeyFileError, MissingExtraError, OutputError, ReleaseFileError
from tests.conftest import small_schema, small_table

NAME = "Data office, Bürgerhospital"


@pytest.fixture
def key(tmp_path):
    write_new_key(tmp_path / "own.key", NAME)
    return read_signing_key(tmp_path / "own.key")


@pytest.fixture
def saved(small_release, key, tmp_path):
    signed(small_release, key).save(tmp_path / "release.json")
    return tmp_path / "release.json"


def other_key(tmp_path, name=NAME):
    write_new_key(tmp_path / "other.key", name)
    return read_signing_key(tmp_path / "other.key")


def changed(path, change):
    """The file with something else in it."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, indent=1))
    return path


def test_a_signed_release_says_who_signed_it(saved, key, tmp_path, small_release):
    loaded = dpgram.load(saved)
    assert (loaded.signature.by, loaded.signature.holds) == (NAME, True)
    assert loaded.signature.fingerprint == read_public_key(tmp_path / "own.pub").fingerprint == key.fingerprint
    assert (loaded == small_release, loaded == signed(small_release, key)) == (False, True)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()


def test_an_unsigned_file_has_no_place_for_a_signature(small_release, key):
    assert b"signature" not in content_of(small_release)
    assert content_of(signed(small_release, None)) == content_of(small_release)
    with_it = json.loads(content_of(signed(small_release, key)))
    assert list(with_it)[-1] == "signature"
    del with_it["signature"]
    assert with_it == json.loads(content_of(small_release))


def test_another_layout_is_the_same_release(saved):
    """Spaces and the order of names may change on the way, as in a database of JSON."""
    content = json.loads(saved.read_text())
    saved.write_text(json.dumps(dict(reversed(content.items())), indent=7, ensure_ascii=False))
    assert dpgram.load(saved).signature.holds is True


def test_no_byte_can_be_changed_to_another_release(saved):
    """Every 7th byte, one bit of it: an error, or the very same release."""
    content, whole = saved.read_bytes(), dpgram.load(saved)
    refused = 0
    for place in range(0, len(content), 7):
        saved.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            assert dpgram.load(saved) == whole, place
        except ReleaseFileError:
            refused += 1
    assert refused > len(content) / 7 / 3


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["gram"][0].__setitem__(0, c["gram"][0][0] + 1.0),
        lambda c: c.update(ledger_entry="1:00"),
        lambda c: c["signature"].update(by="Somebody"),
        lambda c: c["signature"].update(value=base64.b64encode(bytes(64)).decode()),
        lambda c: c["signature"].update(value="AA=="),
        lambda c: c["signature"].update(key="no key"),
        lambda c: c["signature"].update(key="AA=="),
    ],
    ids=["matrix", "ledger", "name", "value", "short value", "no key", "short key"],
)
def test_a_change_breaks_the_signature(saved, change):
    changed(saved, change)
    with pytest.raises(
        BrokenSignatureError, match=r"field 'signature': the signature of .* was changed after it was signed\. Do"
    ):
        dpgram.load(saved)
    loaded = dpgram.load(saved, check_signature=False)
    assert loaded.signature.holds is False
    assert loaded.signature.fingerprint


def test_a_name_that_stands_twice_is_refused_before_the_signature_is_read(saved):
    """Whichever of the two is read, the signature would be that of the other."""
    saved.write_text(saved.read_text().replace('"randomness"', '"randomness": "another", "randomness"', 1))
    with pytest.raises(ReleaseFileError, match='has the key "randomness" twice'):
        dpgram.load(saved, check_signature=False)


def test_a_key_of_somebody_else_fits_and_is_not_the_custodians(saved, tmp_path, small_release):
    """The file cannot tell whose key it is: that is for `verify`."""
    forged = signed(dpgram.load(saved), other_key(tmp_path))
    forged.save(saved, overwrite=True)
    loaded = dpgram.load(saved)
    assert (loaded.signature.by, loaded.signature.holds) == (NAME, True)
    assert loaded.signature.fingerprint != read_public_key(tmp_path / "own.pub").fingerprint
    changed(saved, lambda c: c["signature"].update(key=read_public_key(tmp_path / "own.pub").key))
    with pytest.raises(BrokenSignatureError):
        dpgram.load(saved)


def test_a_signature_can_be_checked_without_dpgram(saved, tmp_path):
    """As docs/reference/release-file.md says."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    said = json.loads(saved.read_text())
    value = base64.b64decode(said["signature"].pop("value"))
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    public = load_pem_public_key((tmp_path / "own.pub").read_bytes())
    public.verify(value, b"dpgram release, signature 1\n" + text.encode())
    assert signed_bytes(saved.read_bytes(), dpgram.load(saved).signature).endswith(text.encode())


def test_parts_keep_their_signatures_and_are_checked(key, tmp_path):
    made = [
        dpgram.release(small_table(seed=k), small_schema(), epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=k)
        for k in (1, 2)
    ]
    both = dpgram.combine([signed(made[0], key), made[1]], rows="disjoint")
    both.save(tmp_path / "both.json")
    loaded = dpgram.load(tmp_path / "both.json")
    assert loaded.signature is None
    assert [part.signature and part.signature.holds for part in loaded.parts] == [True, None]
    changed(tmp_path / "both.json", lambda c: c["parts"][0].update(randomness="another"))
    with pytest.raises(BrokenSignatureError, match=r"field 'parts\[0\]\.signature'"):
        dpgram.load(tmp_path / "both.json")
    assert dpgram.load(tmp_path / "both.json", check_signature=False).parts[0].signature.holds is False


def test_without_the_package_a_signature_is_not_checked_and_none_is_made(saved, tmp_path):
    """Nothing is pretended: what is wrong in itself is still refused."""
    script = f"""
import sys
sys.modules["cryptography"] = None
import dpgram
from dpgram.artifact.signature import read_signing_key, write_new_key
from dpgram.report.signed import signature_words
loaded = dpgram.load({str(saved)!r})
assert loaded.signature.holds is None
print(signature_words(loaded))
own = {str(tmp_path / "own.key")!r}
release = lambda: dpgram.release({{}}, loaded.schema, epsilon=1, delta=1e-6, sign=own)
for act in (lambda: read_signing_key(own), release):
    try:
        act()
    except dpgram.DpgramError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    words, *errors = done.stdout.splitlines()
    assert "not checked: run  pip install 'dpgram[sign]'" in words
    assert errors == ["a signed release needs cryptography, which is not installed. Run  pip install 'dpgram[sign]'."] * 2


def test_a_new_key_is_for_its_owner_and_replaces_nothing(tmp_path):
    write_new_key(tmp_path / "own.key", "A")
    assert stat.S_IMODE((tmp_path / "own.key").stat().st_mode) == 0o600
    before = [(tmp_path / name).read_bytes() for name in ("own.key", "own.pub")]
    with pytest.raises(OutputError, match=r"own\.key exists, and a key is never replaced"):
        write_new_key(tmp_path / "own.key", "B")
    (tmp_path / "own.key").rename(tmp_path / "other.key")
    with pytest.raises(OutputError, match=r"own\.pub exists"):
        write_new_key(tmp_path / "own.key", "B")
    assert not (tmp_path / "own.key").exists()
    assert [(tmp_path / name).read_bytes() for name in ("other.key", "own.pub")] == before
    with pytest.raises(OutputError, match="as public keys do"):
        write_new_key(tmp_path / "a.pub", "B")
    with pytest.raises(OutputError, match="there is no folder"):
        write_new_key(tmp_path / "nowhere" / "a.key", "B")
    assert "Data" not in repr(read_signing_key(tmp_path / "other.key"))


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "a\x1b[1m", "x" * 201])
def test_a_signer_needs_a_name(tmp_path, name):
    with pytest.raises(KeyFileError, match="must be one line of 1 to 200"):
        write_new_key(tmp_path / "own.key", name)
    assert not list(tmp_path.iterdir())


def pem(tmp_path, *, kind="ed25519", passphrase=None):
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

    made = (ed25519.Ed25519PrivateKey if kind == "ed25519" else x25519.X25519PrivateKey).generate()
    locked = form.BestAvailableEncryption(passphrase) if passphrase else form.NoEncryption()
    (tmp_path / "k.key").write_bytes(made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked))
    public = made.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "k.pub").write_bytes(public)


def test_a_key_of_another_program_has_no_name(tmp_path, small_release):
    pem(tmp_path)
    made = signed(small_release, read_signing_key(tmp_path / "k.key"))
    made.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json").signature.by == ""
    assert read_public_key(tmp_path / "k.pub").key == made.signature.key


def test_keys_that_cannot_be_used_are_refused(tmp_path):
    def refused(read, name, words):
        with pytest.raises(KeyFileError, match=words):
            read(tmp_path / name)

    write_new_key(tmp_path / "own.key", "A")
    refused(read_signing_key, "gone.key", "cannot be read")
    refused(read_signing_key, "own.pub", "the private key is needed. Sign with the private key")
    refused(read_public_key, "own.key", "the public key is needed. Check with the public key")
    pem(tmp_path, passphrase=b"secret")
    refused(read_signing_key, "k.key", "has a passphrase")
    pem(tmp_path, kind="x25519")
    refused(read_signing_key, "k.key", "is not an Ed25519 key")
    refused(read_public_key, "k.pub", "is not an Ed25519 key")
    (tmp_path / "k.key").write_text("hello")
    refused(read_signing_key, "k.key", "is not a key file")
    whole = (tmp_path / "own.key").read_text()
    (tmp_path / "k.key").write_text(whole.replace("MC4C", "MC4D"))
    refused(read_signing_key, "k.key", "cannot be read .*Restore it")
    (tmp_path / "k.key").write_text(whole[: len(whole) // 2])
    refused(read_signing_key, "k.key", "cannot be read")
    (tmp_path / "k.key").write_text(whole.replace("Signer: A", "Signer: \x1b[1m"))
    refused(read_signing_key, "k.key", "printable characters")


ASKED = {"epsilon": 1.0, "delta": 1e-7, "mechanism": "gaussian-noise"}


@pytest.fixture
def ledger(tmp_path):
    return dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=3, delta=1e-6, unit="person", dataset="visits")


def test_a_key_that_cannot_be_used_costs_nothing(tmp_path, ledger, monkeypatch):
    for broken in ("gone.key", "l.sqlite"):
        with pytest.raises(KeyFileError):
            dpgram.release(
                small_table(), small_schema(), **ASKED, ledger=ledger, out=tmp_path / "r.json", sign=tmp_path / broken
            )
    write_new_key(tmp_path / "own.key", NAME)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(MissingExtraError, match="a signed release needs cryptography"):
        dpgram.release(small_table(), small_schema(), **ASKED, ledger=ledger, sign=tmp_path / "own.key")
    assert ledger.account().lines == 1
    assert not (tmp_path / "r.json").exists()


def test_the_ledger_holds_the_hash_of_the_file(tmp_path, ledger, key):
    made = dpgram.release(
        small_table(), small_schema(), **ASKED, ledger=ledger, out=tmp_path / "r.json", sign=tmp_path / "own.key"
    )
    dpgram.release(small_table(), small_schema(), **ASKED, ledger=ledger)
    first, second = ledger.account().entries
    assert (first.sha256, second.sha256) == (file_hash(made), None)
    assert made.signature.holds is True
    assert hashlib.sha256((tmp_path / "r.json").read_bytes()).hexdigest() == first.sha256
    assert dpgram.load(tmp_path / "r.json") == made


def test_a_ledger_of_ones_own_need_not_know_of_files(tmp_path):
    class Own(dpgram.SessionLedger):
        pass

    ledger = Own(3.0, 1e-6)
    dpgram.release(small_table(), small_schema(), **ASKED, ledger=ledger, out=tmp_path / "r.json")
    assert ledger.entries[0].committed


def test_the_limits_of_a_key_file_hold(tmp_path):
    """A large file that somebody names by mistake, such as the table, is not read whole."""
    (tmp_path / "table.csv").write_bytes(b"x" * (signing.MOST_BYTES * 2) + b"-----BEGIN PRIVATE KEY-----")
    with pytest.raises(KeyFileError, match="is not a key file"):
        read_signing_key(tmp_path / "table.csv")
