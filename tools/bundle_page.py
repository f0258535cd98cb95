"""One script out of the modules in web/, for the page that `dpgram report` writes: `python tools/bundle_page.py` renews it.

Each module becomes a function that returns what it exports, in an order in which nothing is used before it is there. Modules use
``import { a, b } from "./c.js";`` and ``export const|function|class``, and nothing else of the module system."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WEB, BUNDLE = ROOT / "web", ROOT / "src" / "dpgram" / "report" / "page" / "bundle.js"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', flags=re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", flags=re.MULTILINE)
HEAD = "// Made from web/ by tools/bundle_page.py: change the modules there, not this file.\n"


def bundle(entry: str = "main") -> str:
    """The modules that ``entry`` needs, and itself, as one script."""
    done: list[str] = []
    parts = [HEAD, '"use strict";\n']
    _append(entry, parts, done, ())
    return "".join(parts)


def _append(name: str, parts: list[str], done: list[str], waiting: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in waiting:
        raise ValueError(f"modules import each other in a circle: {' -> '.join((*waiting, name))}")
    code = (WEB / f"{name}.js").read_text(encoding="utf-8")
    for _, needed in IMPORT.findall(code):
        _append(needed, parts, done, (*waiting, name))
    exported = EXPORT.findall(code)
    body = EXPORT.sub("", IMPORT.sub(lambda imported: f"const {{{imported[1]}}} = {_variable(imported[2])};\n", code)).strip()
    left = re.search(r"^(import|export)\b.*", body, flags=re.MULTILINE)
    if left:
        raise ValueError(f"{name}.js has a line this bundler does not know: {left[0]}")
    parts.append(f"\nconst {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n")
    done.append(name)


def _variable(name: str) -> str:
    return f"module_{name.replace('-', '_')}"


if __name__ == "__main__":
    BUNDLE.write_text(bundle(), encoding="utf-8")
    print(f"wrote {BUNDLE.relative_to(ROOT)}: {BUNDLE.stat().st_size} bytes")
