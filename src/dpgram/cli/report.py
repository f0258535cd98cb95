"""dpgram report"""

from __future__ import annotations

from pathlib import Path

from dpgram.artifact.files import load
from dpgram.cli.app import note
from dpgram.cli.options import Flag, IgnoreSignature, ReleaseFile, Repeated
from dpgram.report.page.write import check_report_path, write_report


def report(
    release: ReleaseFile,
    /,
    *,
    out: Path,
    title: str | None = None,
    bootstrap: Repeated = None,
    overwrite: Flag = False,
    ignore_signature: IgnoreSignature = False,
) -> None:
    """Write a web page about RELEASE to OUT: its privacy label, and models to explore. Costs no budget.

    Args:
        out: The HTML file to write.
        title: Heading of the page. By default it names the unit of privacy.
        bootstrap: Add bootstrap intervals for the regression of this target on all other columns. They are computed now, because a browser
            cannot do it. May be repeated.
        overwrite: Replace OUT if it exists."""
    check_report_path(out, overwrite=overwrite, given=release)
    made = load(release, check_signature=not ignore_signature)
    write_report(made, out, title=title, bootstrap=bootstrap or (), overwrite=overwrite)
    note(f"wrote {out}: {len(made.columns)} columns. Open it in a browser. It needs no network.")
    if not made.private:
        note("NOT PRIVATE: the noise came from a seed, and the page says so.")
