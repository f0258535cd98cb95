"""What the site is built with, without Sphinx: links that leave docs/, excerpts for search, and the check of what was built."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tools import check_site

ROOT = Path(__file__).parents[1]


def part(name: str) -> ModuleType:
    """A module of docs/_ext."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A repository of a few files."""
    for name, text in {
        "CONTRIBUTING.md": "Read [the map](docs/architecture.md) and [a proof](src/dpgram/mechanisms/proofs/toy.md#lemma-1).\n",
        "src/dpgram/mechanisms/proofs/toy.md": "# toy\n\nCode: dpgram.rows.clip.clip 1843aca1d881\n\nSee [others](other.md).\n",
        "src/dpgram/mechanisms/proofs/other.md": "# other\n",
        "docs/architecture.md": "# The map\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("written", "on_the_site"),
    [
        ("[plan](plan.md#anchor)", "[plan](plan.md#anchor)"),
        ("[p](../src/dpgram/mechanisms/proofs/toy.md#lemma-1)", "[p](proofs/toy.md#lemma-1)"),
        ("[how](../CONTRIBUTING.md)", "[how](project/contributing.md)"),
        ("[front](../README.md)", "[front](index.md)"),
        ("[code](../src/dpgram/errors.py)", "[code](https://example.org/dpgram/blob/main/src/dpgram/errors.py)"),
        ("![a picture](images/plan.png)", "![a picture](images/plan.png)"),
        ("[away](https://example.org/x.md)", "[away](https://example.org/x.md)"),
        ("[here](#below)", "[here](#below)"),
        ("```text\n[p](../src/x.py)\n```", "```text\n[p](../src/x.py)\n```"),
    ],
)
def test_links_of_a_page_lead_to_pages_of_the_site(checkout, written, on_the_site):
    repository = part("repository").Repository(checkout, "https://example.org/dpgram/")
    assert repository.linked(written, of="docs/whitened.md", on="whitened.md") == on_the_site


def test_a_file_without_an_address_is_named(checkout):
    repository = part("repository").Repository(checkout)
    assert repository.linked("[code](../src/x.py)", of="docs/a.md", on="a.md") == "code (`src/x.py`)"


def test_pages_are_made_of_files_outside_docs(checkout):
    part("repository").Repository(checkout).write_pages()
    written = {
        page: (checkout / "docs" / page).read_text() for page in ("project/contributing.md", "proofs/toy.md", "proofs/index.md")
    }
    assert "[the map](../architecture.md) and [a proof](../proofs/toy.md#lemma-1)" in written["project/contributing.md"]
    assert "- Code: `dpgram.rows.clip.clip`, pinned as `1843aca1d881`" in written["proofs/toy.md"]
    assert "[others](other.md)" in written["proofs/toy.md"]
    assert "other.md\ntoy.md" in written["proofs/index.md"]


def test_a_page_goes_with_its_file(checkout):
    part("repository").Repository(checkout).write_pages()
    (checkout / "src/dpgram/mechanisms/proofs/other.md").unlink()
    part("repository").Repository(checkout).write_pages()
    assert sorted(page.name for page in (checkout / "docs/proofs").iterdir()) == ["index.md", "toy.md"]


def test_excerpts_hold_words_and_sections(tmp_path):
    head = '<h1>Plan<a class="headerlink" href="#plan">¶</a></h1>'
    html = (
        f'<nav>menu</nav><article role="main" id="x"><section class="s" id="plan">{head}<p>a <b>row</b></p></section></article>'
    )
    (tmp_path / "plan.html").write_text(html)
    script = part("excerpts").script(tmp_path)
    assert r'"plan.html": "<div role=\"main\"><section id=\"plan\"> Plan a row </section></div>"' in script
    assert "menu" not in script


@pytest.mark.parametrize(
    ("html", "wrong"),
    [
        ('<script src="https://example.org/x.js"></script>', ["a.html loads https://example.org/x.js"]),
        ('<link rel="stylesheet" href="//example.org/x.css">', ["a.html loads //example.org/x.css"]),
        ('<a href="b.html">b</a>', ["a.html leads to b.html, which does not exist"]),
        ('<a href="#below">b</a>', ["a.html leads to #below, a place that does not exist"]),
        ('<a href="https://example.org">away</a><a id="here" href="a.html#here">here</a>', []),
    ],
)
def test_the_check_of_the_built_site_finds_what_is_wrong(tmp_path, monkeypatch, html, wrong):
    monkeypatch.setattr(check_site, "public", list)
    (tmp_path / "a.html").write_text(html)
    assert check_site.problems(tmp_path) == wrong


def test_the_check_misses_no_name_method_or_command(tmp_path):
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "a.html").write_text('<dt id="dpgram.regress">')
    found = check_site.problems(tmp_path)
    for name in (
        "dpgram.release",
        "dpgram.Fit.conf_int",
        "dpgram.Fit.shrunk",
        "dpgram.Schema.load",
        "dpgram-ledger-show",
        "dpgram-plan",
    ):
        assert f"{name} is not in the reference" in found
    assert not any(name in " ".join(found) for name in ("dpgram.regress ", "get_params", "__"))


def test_a_style_that_asks_a_network_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(check_site, "public", list)
    (tmp_path / "a.html").write_text("")
    (tmp_path / "a.css").write_text('@font-face { src: url("https://example.org/font.woff2"); }')
    assert check_site.problems(tmp_path) == ["a.css loads https://example.org/font.woff2"]
