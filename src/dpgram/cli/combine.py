"""dpgram combine"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from dpgram.analysis.combine import combine
from dpgram.artifact.atomic import check_writable
from dpgram.artifact.files import load
from dpgram.cli.app import note
from dpgram.cli.options import Flag
from dpgram.cli.output import print_json, same_file
from dpgram.errors import OutputError
from dpgram.report.facts import label_data
from dpgram.terms.words import percent

MOST_OF_IT = 0.8  # of the noise: a part that brings so much is worth a word


def combine_command(
    *releases: Annotated[Path, Parameter(help="The release files, two or more.")],
    rows: Literal["disjoint", "same"],
    out: Path,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Combine several RELEASES into one, and write it to OUT. This costs no budget.

    Args:
        rows: disjoint if no row is in two of the releases, such as those of several hospitals or years. same if all releases are of the
            same rows. It has no default, because the files do not show which is true.
        out: The file to write, in JSON.
        overwrite: Replace OUT if it exists.
        json: Print the privacy label as JSON, as 'dpgram inspect --json' does."""
    if any(same_file(out, release) for release in releases):
        raise OutputError(f"{out} is one of the releases. Choose another place for the combined release.")
    check_writable(out, overwrite=overwrite)
    made = combine([load(release) for release in releases], rows=rows)
    made.save(out, overwrite=overwrite)
    if json:
        print_json(label_data(made))
    of = "disjoint rows: their Gram matrices were added up" if rows == "disjoint" else "the same rows: their mean was taken"
    note(f"wrote {out}: {len(made.parts)} releases of {of}. This spent no budget.")
    note(
        f"epsilon {made.budget.epsilon:g}, delta {made.budget.delta:g}: 'dpgram inspect {out}' says who is protected by which budget."
    )
    for place, share in enumerate(made.noise_shares, 1):
        if rows == "disjoint" and share >= MOST_OF_IT:
            note(f"part {place} brings {percent(share)} of the noise. If it has few rows, leave it out: see docs/combine.md.")
    if not made.private:
        note("NOT PRIVATE: the noise of a release came from a seed, so anyone who knows the seed can subtract it.")
