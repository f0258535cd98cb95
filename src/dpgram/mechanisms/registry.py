"""Every mechanism by name. A new one is a file of its own and one line here."""

from __future__ import annotations

from dpgram.errors import UnknownMechanismError
from dpgram.mechanisms import gaussian_noise
from dpgram.mechanisms.conversation import Mechanism

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        gaussian_noise.MECHANISM,
    )
}  # fmt: skip


def find(name: str) -> Mechanism:
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UnknownMechanismError(name=name, known=MECHANISMS)
    return MECHANISMS[name]
