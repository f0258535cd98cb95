"""dpgram keys: new"""

from __future__ import annotations

from pathlib import Path

from dpgram.artifact.signature import public_file, write_new_key
from dpgram.cli.app import note


def new(key: Path, /, *, name: str) -> None:
    """Write a private key to KEY, and the public key beside it.

    Args:
        key: The file for the private key, such as custodian.key. Neither it nor the file of the public key may exist.
        name: Who signs, such as "Data office, City Hospital". Releases that are signed with the key carry this name."""
    made = write_new_key(key, name)
    note(f"wrote {key}: the private key. Keep it secret, and sign with `dpgram release --sign {key}`.")
    note(
        f"wrote {public_file(key)}: the public key {made.fingerprint}. Give it to readers, and publish it where they trust it."
    )
