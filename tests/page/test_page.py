"""The page as a file: whole, silent, harmless whatever the schema says, and true to the release."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
import subprocess
from pathlib import Path

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.errors import OutputError
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.report.fact import Group
from dpgram.report.facts import facts
from dpgram.report.notes import meaning
from dpgram.report.page.write import HERE, report_page
from dpgram.terms.words import Point
from tests.needs import program
from tests.page.node import ROOT
from tests.page.releases import HOSTILE, hard_release, release_of
from tools import bundle_page

EMBEDDED = re.compile(r'<script type="application/json" id="release">(.*?)</script>', flags=re.DOTALL)


@pytest.fixture(scope="module")
def hard() -> dpgram.GramRelease:
    return hard_release()


@pytest.fixture(scope="module")
def page(hard) -> str:
    return report_page(hard, title='A "title" <with> & markup')


def embedded(text: str) -> dict:
    return json.loads(EMBEDDED.search(text)[1])


def test_the_bundle_is_what_the_modules_give():
    assert bundle_page.BUNDLE.read_text(encoding="utf-8") == bundle_page.bundle(), "run: python tools/bundle_page.py"


def test_every_module_is_in_the_bundle():
    code = bundle_page.bundle()
    for module in (ROOT / "web").glob("*.js"):
        assert f"const module_{module.stem} = " in code, f"{module.name} is imported by nothing"


def test_the_bundler_refuses_what_it_does_not_know(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_page, "WEB", tmp_path)
    (tmp_path / "main.js").write_text('import { a } from "./other.js";\nimport def from "x";\n')
    (tmp_path / "other.js").write_text("export const a = 1;\n")
    with pytest.raises(ValueError, match=r"main.js has a line this bundler does not know: import def"):
        bundle_page.bundle()
    (tmp_path / "main.js").write_text('import { a } from "./other.js";\n')
    (tmp_path / "other.js").write_text('import { b } from "./main.js";\nexport const a = b;\n')
    with pytest.raises(ValueError, match="in a circle: main -> other -> main"):
        bundle_page.bundle()


@pytest.mark.system("nodejs")
def test_the_modules_pass_their_own_tests():
    files = sorted(str(path) for path in (ROOT / "web" / "tests").glob("*.test.js"))
    done = subprocess.run([str(program("node")), "--test", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


def test_the_policy_allows_this_script_and_style_and_nothing_else(page):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy == (
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_names_that_are_markup_are_text(page):
    """Outside the script of ours, nothing that a schema says opens a tag."""
    assert HOSTILE not in page
    assert html.escape(HOSTILE) in page
    assert page.count("<script") == 2  # the data, and our own
    assert page.count("</script") == 2
    assert "<img" not in page
    assert "A &quot;title&quot; &lt;with&gt; &amp; markup" in page
    assert "<" not in EMBEDDED.search(page)[1]
    assert HOSTILE in {e["column"] for e in embedded(page)["encoded"]}


def test_the_page_names_no_other_place(page):
    """No address of any kind but the name of SVG's own language."""
    assert re.findall(r"\b(?:https?:|ftp:|file:|//)[^\s\"']*", re.sub(r"^\s*//.*$|\s// .*$", "", page, flags=re.MULTILINE)) == [
        "http://www.w3.org/2000/svg"
    ]
    assert not re.search(r"\b(?:src|href)=\"(?!#)", page)
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "import(", "localStorage", "innerHTML"):
        assert word not in page


def test_the_matrix_in_the_page_is_the_released_one_to_the_bit(page, hard):
    rows = embedded(page)["evidence"]["alone"]["matrix"]
    assert all(row == hard.gram[k, : k + 1].tolist() for k, row in enumerate(rows))


def test_no_count_of_rows_is_shown_under_add_remove(page, hard):
    """The table has 40,000 rows; what is public about their number is nothing."""
    assert hard.rows is None
    assert embedded(page)["rows"] is None
    assert not re.search(r"40[,.  ]?000\b", page)
    public = report_page(release_of("gaussian-noise", "replace"))
    assert "20,000 (public under these neighbours)" in public
    assert embedded(public)["rows"] == 20_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_label_answers_every_point(mechanism):
    release = release_of(mechanism, "add-remove")
    known = facts(release)
    page = report_page(release)
    cards = re.findall(r'<section class="point"><h3>(\d+)\. ([^<]+)</h3><p>([^<]+)</p><dl class="facts"><div>', page)
    assert [int(number) for number, _, _ in cards] == list(Point) == list(range(1, 16))
    assert all(title and words for _, title, words in cards)
    for fact in known:
        column = fact.group in (Group.COLUMNS, Group.DERIVED)
        said = fact.value.values() if fact.name and column else fact.lines if fact.name else ()
        assert all(html.escape(line) in page for line in said), fact
    told = {fact.key: fact for fact in known if fact.name}
    assert told["mechanism",].value == mechanism
    assert (("conditional",) in told) == ("<dt>CONDITIONAL</dt>" in page) == (mechanism == "noisy-inverse")
    assert told["private",].name == "NOT PRIVATE"
    assert told["noise", "units"].value.startswith("scaled units")
    assert MECHANISMS[mechanism].proof in page


@pytest.mark.parametrize(
    ("epsilon", "factor", "belief"),
    [
        (1.0, "e^epsilon = 2.72", "at most 73.11 %"),
        (0.1, "= 1.11", "at most 52.5 %"),
        (8.0, "= 2,981", "at most 99.97 %"),
        (40.0, "= 2.4e+17", "nearly 100 %"),
    ],
)
def test_epsilon_is_said_in_plain_words(small_release, epsilon, factor, belief):
    release = dataclasses.replace(small_release, budget=dpgram.Budget(epsilon, 1e-7))
    words = meaning(release.schema, release.budget)
    assert words in report_page(release)
    assert factor in words
    assert f"from 50 % to {belief} certainty" in words
    assert "one in 10,000,000" in words


def test_a_release_that_is_not_private_says_so_first(page):
    assert page.index("NOT PRIVATE") < page.index("Privacy label</h2>")


def test_long_declarations_are_folded(page):
    assert page.count("<details>") == 1
    assert "district 15" in page


def test_the_page_is_written_whole_and_replaces_nothing_unasked(tmp_path, small_release):
    path = tmp_path / "report.html"
    dpgram.write_report(small_release, path)
    first = path.read_bytes()
    assert first.startswith(b"<!doctype html>")
    assert first.rstrip().endswith(b"</html>")
    with pytest.raises(OutputError, match="exists. Pass --overwrite"):
        dpgram.write_report(small_release, path, title="other")
    assert path.read_bytes() == first
    dpgram.write_report(small_release, path, title="other", overwrite=True)
    assert b"<title>other</title>" in path.read_bytes()
    with pytest.raises(OutputError, match="there is no folder"):
        dpgram.write_report(small_release, tmp_path / "none" / "report.html")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.html"]


def test_the_command_writes_it_and_says_so(tmp_path, monkeypatch, capsys, small_release):
    monkeypatch.chdir(tmp_path)
    small_release.save("release.json")
    assert run(["report", "release.json", "--out", "report.html", "--title", "A & B", "--bootstrap", "y"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "wrote report.html: " in err
    assert "NOT PRIVATE" in err
    text = Path("report.html").read_text(encoding="utf-8")
    assert "<title>A &amp; B</title>" in text
    made = embedded(text)["bootstrap"]
    assert [one["target"] for one in made] == ["y"]
    fit = dpgram.regress(small_release, "y", intervals="bootstrap")
    assert [tuple(ends) for ends in zip(made[0]["lower"], made[0]["upper"], strict=True)] == [
        tuple(ends) for ends in fit.conf_int().to_numpy()
    ]
    assert run(["report", "release.json", "--out", "report.html"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(["report", "release.json", "--out", "report.html", "--overwrite"]) == 0
    assert run(["report", "release.json", "--out", "release.json", "--overwrite"]) == 2
    assert "the release itself" in capsys.readouterr().err
    assert run(["report", "release.json", "--out", "other.html", "--bootstrap", "nonsense"]) == 2
    assert not Path("other.html").exists()
    assert str(tmp_path) not in text


def test_the_page_of_one_release_is_always_the_same(small_release):
    """No date, no machine, no path: what is in it follows from the release."""
    assert report_page(small_release) == report_page(small_release)


def test_everything_the_page_needs_is_in_the_package():
    assert {path.name for path in HERE.iterdir() if path.suffix in (".js", ".css", ".html")} == {
        "bundle.js",
        "page.css",
        "signoff.css",
        "template.html",
    }
