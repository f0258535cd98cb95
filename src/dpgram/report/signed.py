"""By whom a release is signed, unsigned, or broken, in words."""

from __future__ import annotations

from typing import Any

from dpgram.artifact.combined import CombinedRelease
from dpgram.artifact.release import GramRelease
from dpgram.artifact.signature import Signature

UNSIGNED = "unsigned, so it does not prove that it comes from the custodian"


def signature_words(release: GramRelease) -> str:
    """By whom, and what was checked."""
    signature = release.signature
    if signature is not None:
        return _words(signature)
    if isinstance(release, CombinedRelease):
        told = [signature_words(part) for part in release.parts]
        return UNSIGNED if set(told) == {UNSIGNED} else "; ".join(f"part {place}: {each}" for place, each in enumerate(told, 1))
    return UNSIGNED


def _words(signature: Signature) -> str:
    by = f"by {signature.by!r}, with key {signature.fingerprint}" if signature.by else f"with key {signature.fingerprint}"
    if signature.holds is None:
        return f"signed {by}, but not checked: run  pip install 'dpgram[sign]'  to check it"
    if not signature.holds:
        return f"BROKEN: signed {by}, and changed afterwards. Do not use it"
    return f"signed {by}, and unchanged since. The name is the signer's own word: compare the key with the custodian's"


def signature_data(release: GramRelease) -> dict[str, Any] | None:
    """The same as plain data; None if it is unsigned."""
    signature = release.signature
    if signature is None:
        return None
    return {"by": signature.by, "key": signature.fingerprint, "holds": signature.holds}
