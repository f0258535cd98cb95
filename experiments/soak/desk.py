"""One release at one desk of the office: the `dpgram` command on a machine with a clock of its own, and with little room on its disk."""

from __future__ import annotations

import resource
import signal
import sys
from datetime import datetime, timedelta

from dpgram.cli.app import run
from dpgram.ledger import file


def main() -> int:
    ahead, room, *arguments = sys.argv[1:]
    if int(room):  # bytes: what is written beyond them fails, as on a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=float(ahead))

    file.datetime = Clock  # type: ignore[misc]
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
