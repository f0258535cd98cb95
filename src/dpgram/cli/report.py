"""dpgram report"""

from __future__ import annotations

from pathlib import Path

from dpgram.artifact.files import load
from dpgram.cli.app import note
from dpgram.cli.options import ReleaseFile, Repeated
from dpgram.report.page.write import check_report_path, write_report


def report(
    release: ReleaseFile,
    /,
    *,
    out: Path,
    title: str | None = None,
    bootstrap: Repeated = None,
    overwrite: bool = False,
) -> None:
    """Write one self-contained page about RELEASE to OUT: its privacy label, and models to explore. Costs no budget.

    Args:
        out: Where to write the page, an HTML file.
        title: Heading of the page; the unit of privacy when left out.
        bootstrap: A target for which bootstrap intervals are simulated now, of its regression on all other columns, because a browser does
            not; may be given several times.
        overwrite: Replace OUT if it exists."""
    check_report_path(out, overwrite=overwrite, given=release)
    made = load(release)
    write_report(made, out, title=title, bootstrap=bootstrap or (), overwrite=overwrite)
    note(f"{len(made.columns)} columns, written to {out}: open it in a browser; it needs no network")
    if not made.private:
        note("NOT PRIVATE: the noise came from a seed, and the page says so.")
