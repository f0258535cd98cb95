"""Ed25519 signatures of releases: keys in PEM files, and the bytes that are signed.

What is signed is what the file says, not how it is laid out: its JSON with sorted keys and without spaces, less the signature itself. The
signer's name and key are part of it. A signature shows that whoever has the private key wrote the file. Whose key it is, the file cannot
show: a reader must have the public key from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpgram.artifact.atomic import check_writable
from dpgram.errors import KeyFileError, MissingExtraError, OutputError

PURPOSE = b"dpgram release, signature 1\n"  # so that a key that signs other things too can never be made to sign a release
SIGNER = "Signer: "  # the line before the key in its file
LONGEST_NAME = 200  # characters
MOST_BYTES = 1 << 16  # of a key's file; one that dpgram writes has a few hundred
KEY_BYTES, VALUE_BYTES = 32, 64


@dataclass(frozen=True)
class Signature:
    """Who signed a release, by their own word, and what of it was checked."""

    by: str  # the name that the signer gave to the key
    key: str  # the public key, in base64
    value: str  # the signature, in base64
    holds: bool | None = field(default=None, compare=False)  # None: not checked, because `cryptography` is not installed

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.key)


@dataclass(frozen=True, repr=False)
class PublicKey:
    """A public key and the name that its file gives it."""

    by: str
    key: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.key)


@dataclass(frozen=True, repr=False)
class SigningKey(PublicKey):
    """A private key, which prints nothing of itself."""

    _sign: Callable[[bytes], bytes]

    def sign(self, content: bytes) -> Signature:
        """The signature of a release's file."""
        unsigned = Signature(self.by, self.key, "")
        value = self._sign(signed_bytes(content, unsigned))
        return replace(unsigned, value=base64.b64encode(value).decode(), holds=True)


def fingerprint(key: str) -> str:
    """The hash of a public key, in the letters and the form that `ssh-keygen -l` uses for keys."""
    try:
        digest = hashlib.sha256(base64.b64decode(key, validate=True)).digest()
    except ValueError:
        return "none that can be read"
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def signed_bytes(content: bytes, signature: Signature) -> bytes:
    """What a signature is of: all that the file says, who signs and with which key."""
    said = json.loads(content, object_pairs_hook=_once)
    said["signature"] = {"by": signature.by, "key": signature.key}
    return PURPOSE + json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, no name of which stands in it twice: readers might disagree on which of the two counts."""
    said = dict(pairs)
    if len(said) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return said


def checked(content: bytes, signature: Signature) -> Signature:
    """The signature, with whether it holds for a file with this content; that is not known where `cryptography` is not installed."""
    try:
        key, value = (base64.b64decode(text, validate=True) for text in (signature.key, signature.value))
        whole = len(key) == KEY_BYTES and len(value) == VALUE_BYTES
        data = signed_bytes(content, signature)
    except (ValueError, RecursionError):
        return replace(signature, holds=False)
    if not whole:
        return replace(signature, holds=False)
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return replace(signature, holds=None)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(value, data)
    except (InvalidSignature, ValueError):
        return replace(signature, holds=False)
    return replace(signature, holds=True)


def check_installed(purpose: str) -> None:
    """Raise unless signatures can be made and checked here."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError:
        raise MissingExtraError(package="cryptography", extra="sign", purpose=purpose) from None


def public_file(private: Path) -> Path:
    """Where the public key of a new private key is written."""
    return private.with_suffix(".pub")


def write_new_key(path: Path, name: str) -> PublicKey:
    """Write a new private key to ``path``, for its owner's eyes only, and the public key beside it. No file is ever replaced."""
    check_installed("a key")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    name = name.strip()
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise KeyFileError(
            f"the signer's name is {name!r} and must be one line of 1 to {LONGEST_NAME} characters. Give a name that readers know."
        )
    public_path = public_file(path)
    if public_path == path:
        raise OutputError(f"{path} ends with .pub, as public keys do. Choose another name for the private key.")
    for each in (path, public_path):
        check_writable(each, overwrite=True)
        if each.exists():
            raise OutputError(f"{each} exists, and a key is never replaced. Choose another name.")
    made = Ed25519PrivateKey.generate()
    private_pem = made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public_pem = made.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    line = f"{SIGNER}{name}\n".encode()
    _write_first(path, line + private_pem, mode=0o600)
    try:
        _write_first(public_path, line + public_pem, mode=0o644)
    except OutputError:
        path.unlink(missing_ok=True)
        raise
    return read_public_key(public_path)


def _write_first(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that is not there yet, with these rights from its beginning."""
    try:
        held = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        try:
            with open(held, "wb") as file:
                file.write(content)
        except OSError:
            path.unlink(missing_ok=True)  # a part of a key is of no use
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}. Choose another place.") from None


def read_signing_key(path: str | Path) -> SigningKey:
    """The private key in a file. Whatever is wrong with it is said now: later the budget is spent."""
    check_installed("a signed release")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    path = Path(path)
    by, pem = _key_file(path, "PRIVATE KEY")
    try:
        private = load_pem_private_key(pem, password=None)
    except TypeError:
        raise KeyFileError(f"the key in {path} has a passphrase, and dpgram asks for none. Name a file without one.") from None
    except Exception as error:
        raise KeyFileError(_unreadable(path, error)) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyFileError(f"the key in {path} is not an Ed25519 key, but one is needed. `dpgram keys new` makes one.")
    key = base64.b64encode(private.public_key().public_bytes_raw()).decode()
    return SigningKey(by, key, private.sign)


def read_public_key(path: str | Path) -> PublicKey:
    """The public key in a file."""
    check_installed("a check of a signature")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    path = Path(path)
    by, pem = _key_file(path, "PUBLIC KEY")
    try:
        public = load_pem_public_key(pem)
    except Exception as error:
        raise KeyFileError(_unreadable(path, error)) from None
    if not isinstance(public, Ed25519PublicKey):
        raise KeyFileError(f"the key in {path} is not an Ed25519 key, but one is needed. Ask the custodian for the right file.")
    return PublicKey(by, base64.b64encode(public.public_bytes_raw()).decode())


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"the key in {path} cannot be read ({type(error).__name__}). The file was cut short or changed. Restore it from a copy."
    )


def _key_file(path: Path, needed: str) -> tuple[str, bytes]:
    """The signer's name in the file of a key, empty where there is none, and the key itself."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES)
    except OSError as error:
        raise KeyFileError(f"the key file {path} cannot be read ({error.strerror}). Check its name.") from None
    before, begin, rest = content.partition(b"-----BEGIN ")
    found = rest.partition(b"-----")[0].decode(errors="replace")
    if not begin or not found.endswith("KEY"):
        raise KeyFileError(f"{path} is not a key file: it has no line -----BEGIN {needed}-----. `dpgram keys new` makes keys.")
    if not found.endswith(needed):
        kinds = {"PRIVATE KEY": "private", "PUBLIC KEY": "public"}
        do = (
            "Sign with the private key." if needed == "PRIVATE KEY" else "Check with the public key, whose name ends with .pub."
        )
        raise KeyFileError(f"{path} holds {found!r}, but the {kinds[needed]} key is needed. {do}")
    names = [
        line.removeprefix(SIGNER).strip() for line in before.decode(errors="replace").splitlines() if line.startswith(SIGNER)
    ]
    name = names[0] if names else ""
    if not (name.isprintable() and len(name) <= LONGEST_NAME):
        raise KeyFileError(
            f"the line {SIGNER!r} in {path} must be a name of at most {LONGEST_NAME} printable characters. Correct it."
        )
    return name, begin + rest
