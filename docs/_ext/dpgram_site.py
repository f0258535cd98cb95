"""What the site does beyond Sphinx: commands from their help, pages from outside docs/, and which members a class shows."""

from __future__ import annotations

import enum
import inspect
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

from commands import markdown
from docutils import nodes
from excerpts import FILE, script
from repository import PROJECT, Repository
from sphinx.application import Sphinx

COMMANDS = "<!-- commands -->"
ROOT = Path(__file__).parents[2]


def address() -> str:
    """Of the repository, as the package names it; empty where it names none."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    return next((url for name, url in urls.items() if name.lower() in ("repository", "source", "source code")), "")


repository = Repository(ROOT, address())


def read_page(app: Sphinx, name: str, source: list[str]) -> None:
    text = source[0]
    if COMMANDS in text:
        text = text.replace(COMMANDS, markdown())
    if name == "index":  # a page whose file this checkout does not have
        missing = {f"project/{page}" for file, page in PROJECT.items() if file not in repository.made}
        text = "\n".join(line for line in text.split("\n") if line not in missing)
    if not name.startswith(("proofs/", "project/")):
        text = repository.linked(text, of=f"docs/{name}.md", on=f"{name}.md")
    source[0] = text


def skip_member(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Of a class: methods and properties written in dpgram. Fields are parameters, which the docstring of the class describes."""
    if what not in ("class", "exception"):
        return None
    if isinstance(thing, property):
        thing = thing.fget
    elif isinstance(thing, cached_property):
        thing = thing.func
    elif isinstance(thing, enum.Enum):
        return None
    thing = getattr(thing, "__func__", thing)
    ours = inspect.isfunction(thing) and thing.__module__.startswith("dpgram.")
    return None if ours and not name.startswith("_") else True


def trees_as_code(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Trees drawn in the docstring of a module, as code."""
    if what != "module":
        return
    shown: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("    ") and not before.strip():
            last = next((each for each in reversed(shown) if each.strip()), "")
            if not last.startswith("    ") and not last.rstrip().endswith("::"):
                shown += [".. code-block:: text", ""]
        shown.append(line)
    lines[:] = shown


def keep_underscores(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Attributes such as ``coef_``: a name that ends in an underscore is a link to Sphinx."""
    lines[:] = [re.sub(r"^(:(?:ivar|vartype) \w+)_:", r"\1\\_:", line) for line in lines]


def dashes(app: Sphinx, page: nodes.document) -> None:
    """Between a parameter, or a result, and its description, where Sphinx writes two hyphens."""
    described = {id(text): text for field in page.findall(nodes.field) for text in field.findall(nodes.Text)}
    for text in described.values():
        if text.startswith(" -- "):
            text.parent.replace(text, nodes.Text(f" – {text[4:]}"))


def add_excerpts(app: Sphinx, page: str, *_: Any) -> None:
    if page == "search":
        app.add_js_file(FILE, loading_method="defer")


def write_excerpts(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.name == "html":
        out = Path(app.outdir)
        (out / "_static" / FILE).write_text(script(out), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: repository.write_pages())
    app.connect("source-read", read_page)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", keep_underscores)
    app.connect("autodoc-process-docstring", trees_as_code)
    app.connect("doctree-read", dashes)
    app.connect("html-page-context", add_excerpts)
    app.connect("build-finished", write_excerpts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
