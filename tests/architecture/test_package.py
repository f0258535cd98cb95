"""What makes the package anybody's to use: licence, version, changelog, and pages whose links and file names hold."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

import dpgram

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "NOTICE", "changelog.d/README.md"]
FOLDERS = ["", "src/dpgram", "src/dpgram/audits", "tests"]  # a page may leave these out before the name of a file
KINDS = [kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]]


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_licence_is_apache_2_word_for_word():
    """The digest is that of the text that the Apache Software Foundation publishes."""
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_the_version_is_the_same_everywhere():
    assert re.search(r"^version: (\S+)$", text("CITATION.cff"), flags=re.MULTILINE)[1] == dpgram.__version__
    assert re.search(r"^## (\S+) \(", text("CHANGELOG.md"), flags=re.MULTILINE)[1] == dpgram.__version__


def test_the_package_says_that_it_is_typed():
    assert (Path(dpgram.__file__).parent / "py.typed").is_file()


def test_fragments_have_names_that_the_changelog_understands():
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name not in ("README.md", "template.md.jinja")]
    pattern = re.compile(rf"[\w-]+(\.[\w-]+)?\.({'|'.join(KINDS)})\.md")
    assert not [name for name in names if not pattern.fullmatch(name)]


def broken_links(page: str, words: str) -> list[str]:
    """Files that a page links to, or names with a folder, and that are not there."""
    folder = (ROOT / page).parent
    links = [link for link in re.findall(r"\]\(([^)#]+)", words) if "://" not in link]
    named = re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|md|toml|cff|yml|parquet))`", words)
    missing = [link for link in links if not (folder / link).exists()]
    return missing + [name for name in named if not any((ROOT / place / name).exists() for place in FOLDERS)]


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_pages_name_are_there(page):
    assert not broken_links(page, text(page))


def test_a_file_that_is_gone_is_noticed():
    words = "[a](docs/limits.md#b) [c](docs/gone.md) [d](https://x.y) `rows/clip.py` `rows/gone.py` `errors.py`"
    assert broken_links("SECURITY.md", words) == ["docs/gone.md", "rows/gone.py"]
