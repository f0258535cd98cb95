"""One list of facts: every renderer shows it, people read words, and a mechanism brings its own."""

from __future__ import annotations

import dataclasses
import html
import json

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.mechanisms import registry
from dpgram.report.fact import Fact, Group, Planned
from dpgram.report.facts import facts, label_data
from dpgram.report.page.write import report_page
from dpgram.terms.words import COMMON, Point, Words
from tests.page.releases import MECHANISMS, release_of

RELATIONS = ("replace", "add-remove")


@pytest.fixture(scope="module")
def releases() -> dict[tuple[str, str], dpgram.GramRelease]:
    return {(name, relation): release_of(name, relation) for name in MECHANISMS for relation in RELATIONS}


@pytest.fixture(params=[(name, relation) for name in MECHANISMS for relation in RELATIONS], ids="-".join)
def release(request, releases) -> dpgram.GramRelease:
    return releases[request.param]


def planned(release: dpgram.GramRelease, **changes) -> Planned:
    """What was known of the release before it was made."""
    known = {field.name: getattr(release, field.name) for field in dataclasses.fields(Planned)}
    return Planned(**{**known, **changes})


def test_every_fact_has_its_place(release):
    listed = facts(release)
    keys = [fact.key for fact in listed if fact.key]
    assert len(keys) == len(set(keys))
    assert all(fact.key or fact.name for fact in listed)
    assert {fact.point for fact in listed if fact.name} == set(Point)
    assert set(MECHANISMS) == set(registry.MECHANISMS)


def test_people_read_words_and_scripts_read_keys(release, tmp_path, capsys):
    """No parameter's key stands in what is printed or on the page's label, and every one has words that somebody chose."""
    words = registry.MECHANISMS[release.mechanism].words
    release.save(tmp_path / "release.json")
    assert run(["inspect", str(tmp_path / "release.json")]) == 0
    shown = [capsys.readouterr().out, report_page(release).partition('<section id="schema"')[0]]
    for key in release.parameters:
        assert all(key not in text for text in shown if "_" in key), key
        own = f"round_{key.split('_', 2)[2]}" if key.startswith("round_") else key
        assert own in words or own in COMMON or "_" not in own or own == "degrees_of_freedom", own
    assert run(["inspect", str(tmp_path / "release.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == release.parameters


def test_whatever_people_are_told_is_in_every_rendering(release, tmp_path, capsys):
    release.save(tmp_path / "release.json")
    assert run(["inspect", str(tmp_path / "release.json")]) == 0
    printed, page = "".join(capsys.readouterr().out.split()), report_page(release)
    for fact in facts(release):
        for line in fact.lines if fact.name else ():
            assert fact.group is Group.NOTES or "".join(line.split()) in printed or len(line) > 70, fact
            assert fact.group in (Group.COLUMNS, Group.DERIVED) or html.escape(line) in page, fact


def test_a_planned_release_says_nothing_that_the_release_does_not(release):
    told, made = label_data(planned(release)), label_data(release)
    assert {name: made[name] for name in told} == told
    assert not {"noise", "rows", "randomness", "public"} & set(told)
    unknown = label_data(planned(release, parameters={}))
    assert unknown["parameters"] == {}


def test_rounds_are_a_table_short_in_print_and_folded_on_the_page(releases, tmp_path, capsys):
    release = releases["whitened-noise", "add-remove"]
    (table,) = [fact.rounds for fact in facts(release) if fact.rounds]
    assert table.header == ("round", "share of the budget", "noise sd", "left after clipping")
    rounds = release.noise.rounds
    assert [row[2][0] for row in table.rows] == [each.sd_off_diagonal for each in rounds]
    assert [row[3][0] for row in table.rows] == [each.kept for each in rounds]
    shares = sum(float(row[1][1].removesuffix(" %")) for row in table.rows)
    looks = 100 * (release.parameters["looks_mu"] / release.parameters["mu"]) ** 2
    assert shares + looks == pytest.approx(100, abs=0.05 * len(rounds))
    early, last = table.short
    kept = [each.kept for each in rounds[:-1]]
    assert early[0] == f"1 to {len(rounds) - 1}, each"
    assert early[3] == f"{100 * min(kept):.1f} % to {100 * max(kept):.1f} %"
    assert last[0] == str(len(rounds))
    assert report_page(release).count("<details><summary>What each round did</summary>") == 1
    release.save(tmp_path / "release.json")
    run(["inspect", str(tmp_path / "release.json")])
    shown = [line for line in capsys.readouterr().out.splitlines() if " % " in line]
    assert [" for looks " in line for line in shown].count(True) == 1  # before the rounds, and outside of their table
    assert next(line for line in shown if " for looks " in line).rstrip().endswith(f"{looks:.1f} %")
    assert len(shown) == 2 + 1
    assert all(fact.rounds is None for fact in facts(releases["gaussian-noise", "replace"]))


def test_a_new_mechanism_brings_its_own_words(small_release, monkeypatch):
    """And needs none: what it does not name is called by its key, without underscores."""
    toy = dataclasses.replace(
        registry.MECHANISMS["gaussian-noise"],
        name="toy",
        words={
            "w_squared": Words("weight of the toy", "in toys"),
            "first_look": Words("first look", protected=True),
            "round_pull": Words("pull", show=lambda pull, found: f"{pull / found['w_squared']:.0%}"),
        },
    )
    monkeypatch.setitem(registry.MECHANISMS, "toy", toy)
    parameters = {
        "w_squared": 8.0,
        "first_look": 2.5,
        "not_named": 1234.0,
        "rounds": 2.0,
        "round_1_pull": 2.0,
        "round_2_pull": 6.0,
    }
    release = dataclasses.replace(small_release, mechanism="toy", parameters=parameters)
    told = {fact.key: fact for fact in facts(release)}

    def said(key: str) -> tuple[str, list[str]]:
        fact: Fact = told["parameters", key]
        return fact.name, fact.lines

    assert said("w_squared") == ("weight of the toy", ["8 in toys"])
    assert said("not_named") == ("not named", ["1,234"])
    assert told["parameters", "round_2_pull"].name == ""
    table = told["parameters", "rounds"].rounds
    assert (table.header, table.short) == (("round", "pull"), [("1", "25%"), ("2", "75%")])
    assert any("the first look" in part for part in label_data(release)["protected"])
    assert "weight of the toy" in report_page(release)


def test_a_file_of_a_mechanism_that_is_not_here_is_told_as_far_as_it_goes(small_release):
    release = dataclasses.replace(small_release, mechanism="of the future", parameters={"its_scale": 0.5, "rounds": 3.0})
    told = {fact.key: fact for fact in facts(release)}
    assert told["parameters", "its_scale"].name == "its scale"
    assert told["parameters", "rounds"].rounds is None
    assert "of the future" in report_page(release)
