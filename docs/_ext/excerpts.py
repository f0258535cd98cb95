"""The text of all pages in one script, for the excerpts that search shows.

Sphinx fetches each page that a search finds, to show an excerpt of it. Browsers refuse that for pages on disk, so the search page
brings the text along, and answers from it."""

from __future__ import annotations

import json
import re
from pathlib import Path

FILE = "excerpts.js"
MAIN = re.compile(r'<article role="main"[^>]*>(.*?)</article>', flags=re.DOTALL)
ANSWER = """const elsewhere = window.fetch;
window.fetch = (address, ...rest) => {
  const page = String(address).replace(/^(\\.\\/)+/, "").replace(/#.*$/, "");
  return Object.hasOwn(PAGES, page) ? Promise.resolve(new Response(PAGES[page])) : elsewhere(address, ...rest);
};
"""


def script(site: Path) -> str:
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    texts = {page: outline(found[1]) for page, html in pages.items() if (found := MAIN.search(html))}
    return f"const PAGES = {json.dumps(texts, ensure_ascii=False)};\n{ANSWER}"


def outline(html: str) -> str:
    """The words of a page and its sections, without any other markup."""
    html = re.sub(r'<a class="headerlink".*?</a>', "", html, flags=re.DOTALL)
    html = re.sub(r"<section[^>]* id=\"([^\"]*)\"[^>]*>", r'<section id="\1">', html)
    html = re.sub(r"</?(?:a|b|code|em|i|span|strong)\b[^>]*>", "", html)  # within words
    words = " ".join(re.sub(r"<(?!/?section\b)[^>]*>", " ", html).split())
    return f'<div role="main">{words}</div>'
