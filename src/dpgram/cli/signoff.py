"""dpgram signoff"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dpgram.artifact.atomic import write_whole
from dpgram.artifact.files import load
from dpgram.cli.app import note
from dpgram.cli.ledger import LEDGER
from dpgram.cli.options import Flag, LedgerFile, ReleaseFile
from dpgram.doctor.selftests import run_self_tests
from dpgram.ledger.file import FileLedger
from dpgram.ledger.open import check_apart
from dpgram.report.page.signoff import SelfTests, signoff_page
from dpgram.report.page.write import check_report_path
from dpgram.version import __version__


def signoff(
    release: ReleaseFile, /, *, out: Path, ledger: LedgerFile = LEDGER, by: str | None = None, overwrite: Flag = False
) -> None:
    """Write a page about RELEASE and its dataset's budget to OUT, for somebody to sign.

    Args:
        out: The HTML file to write.
        by: Who ran the release. By default the name in its signature, and otherwise a line to fill in by hand.
        overwrite: Replace OUT if it exists."""
    book = FileLedger(ledger)
    check_apart(book, out)
    check_report_path(out, overwrite=overwrite, given=release)
    made, account = load(release), book.account()
    results = run_self_tests()
    tests = SelfTests(
        __version__, [each.name for each in results if each.passed], [each.name for each in results if not each.passed]
    )
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    page = signoff_page(made, account, file=release.name, sha256=digest, tests=tests, by=by)
    write_whole(out, page.encode(), overwrite=overwrite)
    note(f"wrote {out}: open it in a browser and print it, on A4.")
    if not made.private:
        note("NOT PRIVATE: the noise came from a seed, and the page says so.")
    if tests.failed:
        note("A self-test failed, and the page says so: `dpgram doctor` has the details. Do not publish the release.")
