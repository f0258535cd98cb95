"""What a SessionLedger becomes in another process, or in a file: it refuses every release in words.

joblib pickles what it sends to a worker, and hides whatever pickling raises behind words of its own. So the ledger travels, and says in the
worker what to do."""

from __future__ import annotations

from typing import Any, NoReturn

from dpgram.errors import LedgerError


class AwayLedger:
    """Stands for the SessionLedger of another process. It knows nothing of the account, and accepts no release."""

    def reserve(self, *_: Any, **__: Any) -> NoReturn:
        raise LedgerError(
            "this is a copy of a SessionLedger, which works in one process only, but it was sent to another process (n_jobs) or loaded "
            "from a file. A copy of the ledger would allow the whole budget again, so nothing was released. Use n_jobs=None, or threads: "
            "with joblib.parallel_config(backend='threading'). Or use a dpgram.FileLedger, which processes can share."
        )

    commit = note_round = settle = reserve
    total = neighbours = entries = spent = left = property(reserve)

    def __repr__(self) -> str:
        return "SessionLedger(of another process: accepts no release)"
