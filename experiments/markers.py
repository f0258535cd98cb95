"""Tables in the pages of docs/: each stands between two markers, so that the words around it stay when it is made again.

A table called "worst" stands between ``<!-- worst: made by `make errors` -->`` and ``<!-- end of worst -->``; what follows the colon
is for readers of the page's source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def fill(text: str, tables: Mapping[str, str]) -> str:
    """``text`` with every table renewed."""
    for name, table in tables.items():
        between = re.compile(
            rf"(<!-- {re.escape(name)}(?:: [^\n]*)? -->\n).*?(<!-- end of {re.escape(name)} -->)", flags=re.DOTALL
        )
        renewed = f"\n{table.strip()}\n\n"
        text, count = between.subn(lambda markers, renewed=renewed: markers[1] + renewed + markers[2], text)
        if count != 1:
            raise ValueError(f"the page has {count or 'no'} markers for the table {name!r} and needs one pair: see {__name__}.")
    return text


def fill_page(page: Path, tables: Mapping[str, str]) -> None:
    """Renew every table in the file ``page``."""
    page.write_text(fill(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
