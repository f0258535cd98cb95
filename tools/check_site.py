"""Checks the built site: `python tools/check_site.py build/docs`.

Every link within the site leads to a page and a place on it, no page asks a network for anything, and the reference has every
public name, every public method and every command."""

from __future__ import annotations

import inspect
import re
import sys
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dpgram
from dpgram.cli.app import app as program

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
LINK_ONLY = {
    "canonical",
    "index",
    "search",
    "next",
    "prev",
    "author",
    "license",
}  # what a <link> of this kind names is not loaded


class Page(HTMLParser):
    """What a page can be linked by, what it links to, and what it loads."""

    def __init__(self, html: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.places |= {named[key] or "" for key in ("id", "name") if key in named}
        for key, value in attributes:
            if value and (tag, key) in LOADED and named.get("rel") not in LINK_ONLY:
                self.loaded.append(value)
            elif value and (tag, key) == ("a", "href"):
                self.links.append(value)


def problems(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = [] if pages else [f"{site} holds no page"]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for target in (*page.links, *page.loaded):
            parts = urlsplit(target)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if target in page.loaded:
                    found.append(f"{name} loads {target}")
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not aim.exists():
                found.append(f"{name} leads to {target}, which does not exist")
            elif aim in pages and parts.fragment and unquote(parts.fragment) not in pages[aim].places:
                found.append(f"{name} leads to {target}, a place that does not exist")
    for style in site.rglob("*.css"):
        found += [
            f"{style.name} loads {url}"
            for url in re.findall(r"(?:url\(|@import )\s*[\"']?((?:https?:)?//[^\"')]+)", style.read_text(encoding="utf-8"))
        ]
    described = {place for path, page in pages.items() if path.parent.name == "reference" for place in page.places}
    return found + [f"{name} is not in the reference" for name in public() if name not in described]


def public() -> list[str]:
    """Anchors that the reference must have: names, methods and properties of classes, and commands."""
    names = [name for name in dpgram.__all__ if name != "__version__"]
    anchors = [f"dpgram.{name}" for name in names]
    for name in names:
        thing = getattr(dpgram, name)
        if inspect.isclass(thing):
            anchors += [
                f"dpgram.{name}.{member}" for member in dir(thing) if ours(inspect.getattr_static(thing, member), member)
            ]
    for name in program:
        inner = [each for each in program[name] if not each.startswith("-")]
        if not name.startswith("-"):
            anchors += [f"dpgram-{name}-{each}" for each in inner] or [f"dpgram-{name}"]
    return anchors


def ours(member: object, name: str) -> bool:
    """A public method or property that dpgram wrote, rather than a base class of another library."""
    code = member.fget if isinstance(member, property) else member.func if isinstance(member, cached_property) else member
    code = getattr(code, "__func__", code)
    return not name.startswith("_") and inspect.isfunction(code) and code.__module__.startswith("dpgram.")


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link leads somewhere, and no page needs a network")
    sys.exit(bool(wrong))
