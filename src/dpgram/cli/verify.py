"""dpgram verify"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dpgram.artifact.combined import CombinedRelease
from dpgram.artifact.files import load
from dpgram.artifact.release import GramRelease
from dpgram.artifact.signature import PublicKey, read_public_key
from dpgram.cli.app import note
from dpgram.cli.options import Json, ReleaseFile
from dpgram.cli.output import print_json, print_text

NOT_THEIRS = 1


def verify(release: ReleaseFile, /, *, key: Path, json: Json = False) -> int:
    """Check that RELEASE was signed with KEY, and was not changed since.

    Args:
        key: The file of the public key. Get it from the custodian, not from where the release comes from."""
    public = read_public_key(key)
    made = load(release, check_signature=False)
    problem = what_is_wrong(made, public)
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    if json:
        by = made.signature and made.signature.by
        print_json({"verified": not problem, "problem": problem or None, "by": by, "key": public.fingerprint, "sha256": digest})
    if problem:
        note(f"not verified: {problem}")
        return NOT_THEIRS
    if not json:
        assert made.signature is not None, "nothing is wrong with it"
        by = f" by {made.signature.by!r}" if made.signature.by else ""
        print_text(f"verified: signed{by} with key {public.fingerprint}, and unchanged since.\nSHA-256 of the file: {digest}")
    return 0


def what_is_wrong(made: GramRelease, public: PublicKey) -> str:
    """Why the release is not as the owner of the key signed it; empty if it is."""
    if isinstance(made, CombinedRelease):
        return "it was combined of several releases, and only these can be signed. Verify the file of each."
    if made.signature is None:
        return "it is unsigned. Ask the custodian for the signed file."
    if not made.signature.holds:
        return "its signature does not hold, so the file was changed after it was signed. Do not use it: ask the custodian for a new copy."
    if made.signature.key != public.key:
        theirs = f"it was signed with another key, {made.signature.fingerprint}, and the key given is {public.fingerprint}."
        return f"{theirs} Somebody else may have made it. Do not use it, and ask the custodian."
    return ""
