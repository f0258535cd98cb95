"""dpgram check"""

from __future__ import annotations

from pathlib import Path

from dpgram.artifact.atomic import check_writable, write_whole
from dpgram.checking.run import check as look
from dpgram.checking.suggest import with_provenance
from dpgram.cli.app import note
from dpgram.cli.options import Flag
from dpgram.cli.output import print_json, print_text, same_file, working_bar
from dpgram.errors import OutputError
from dpgram.terms.schema import Schema


def check(
    data: str,
    /,
    *,
    schema: Path,
    query: str | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Print what a release of DATA would get wrong. It looks at the rows: do not publish what it prints.

    Args:
        data: The table. A CSV, Parquet or Arrow file, a folder of files or a glob. Or a DuckDB file, 'duckdb:' or a postgresql:// URI.
        schema: TOML file that declares the columns. 'dpgram schema draft' writes one to fill in.
        query: SQL for a database. Its result is the table.
        out: Write the schema with the suggested kinds to this file. Its provenance then says that the rows were looked at. Without it no
            file is written.
        overwrite: Replace OUT if it exists.
        json: Print JSON instead of words. It is not for publication either."""
    declared = Schema.load(schema)
    if out is not None:
        check_writable(out, overwrite=overwrite)
        with_provenance(declared)  # where there is no room for it, before the rows are read
        if same_file(out, data):
            raise OutputError(f"{out} is the table itself. Choose another place for the schema.")
    with working_bar("reading") as progress:
        found = look(data, declared, query=query, progress=progress)
    if json:
        print_json(found.to_dict())
    else:
        print_text(found)
    if out is not None:
        write_whole(out, found.suggested_schema.encode(), overwrite=overwrite)
        note(f"wrote {out}: the schema with the suggested lines. Fill in what is blank, from the domain.")
