"""No number has moved since the goldens were made: see README.md here."""

from __future__ import annotations

import json

import pytest

import dpgram
from tests.golden import doors, plans, refusals
from tests.golden.answers import answers, plain, simulated
from tests.golden.compare import TOLERANCE, differences, in_words
from tests.golden.page import shown
from tests.golden.releases import SETTINGS, contents, loaded, numbers
from tests.golden.store import FILES, WHOLE, golden

MADE = [name for name, file in golden("releases").items() if "error" not in file]
SIMULATED = [name for name in MADE if SETTINGS[name].bootstrap]
SAMPLE, IN_ROUNDS = "gaussian-noise/replace", "whitened-noise/add-remove"


def slowly(names) -> list:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


def agree(was, now, tolerance: float = TOLERANCE, what: str = "") -> None:
    if found := differences(was, now, tolerance):
        pytest.fail(f"{what}{in_words(found)}", pytrace=False)


@pytest.mark.parametrize("name", MADE)
def test_a_seeded_release_is_what_it_was(name):
    """To the bit where no LAPACK is in between, else to 1e-9; Setting says which is which."""
    setting = SETTINGS[name]
    was, now = numbers(golden("releases")[name]), numbers(contents(setting.release()))
    if not setting.everywhere:
        was, now = ({**one, "gram": len(one["gram"])} for one in (was, now))
    agree(was, now)
    if setting.to_the_bit:
        agree(was["gram"], now["gram"], 0.0)
    for one, other in zip(was["noise"].get("rounds", ()), now["noise"].get("rounds", ()), strict=True):
        agree({part: one[part] for part in ("through", "gram")}, {part: other[part] for part in ("through", "gram")}, 0.0)


def test_what_was_refused_is_refused():
    for name, file in golden("releases").items():
        if name not in MADE:
            with pytest.raises(dpgram.DpgramError) as problem:
                SETTINGS[name].release()
            assert type(problem.value).__name__ == file["error"], name


@pytest.mark.parametrize("name", [SAMPLE, IN_ROUNDS, "gaussian-noise/replace/kinds"])
def test_every_form_of_a_table_gives_the_same_bits(name, tmp_path):
    setting = SETTINGS[name]
    was = numbers(contents(setting.release()))
    for form, cells in doors.sources(setting.table, tmp_path).items():
        agree(was, numbers(contents(setting.release(cells))), 0.0, f"{form}: ")
    agree(was, numbers(contents(setting.release(threads=2))), 0.0)


@pytest.mark.parametrize("file", WHOLE)
def test_files_of_the_first_format_load_and_are_written_as_they_were(file):
    made = dpgram.load(FILES / file)
    assert numbers(contents(made)) == numbers(json.loads((FILES / file).read_bytes()))
    assert made == loaded(contents(made))


@pytest.mark.parametrize("name", [name for name in MADE if SETTINGS[name].answers])
def test_answers_are_what_they_were(name):
    agree(golden("answers")[name], answers(SETTINGS[name], loaded(golden("releases")[name])))


@pytest.mark.parametrize("name", [SAMPLE, IN_ROUNDS, *slowly(name for name in SIMULATED if name not in (SAMPLE, IN_ROUNDS))])
def test_simulated_intervals_are_what_they_were(name):
    agree(golden("doors")["bootstrap"][name], simulated(SETTINGS[name], loaded(golden("releases")[name])))


@pytest.mark.system("nodejs")
@pytest.mark.parametrize("name", [name for name in MADE if SETTINGS[name].page])
def test_the_page_shows_what_it_did(name):
    agree(golden("page")[name], shown(SETTINGS[name], loaded(golden("releases")[name])))


@pytest.mark.parametrize("name", [*plans.PLANS, *slowly(plans.SLOW_PLANS)])
def test_plans_are_what_they_were(name):
    agree(golden("doors")["plans"][name], plain({**plans.PLANS, **plans.SLOW_PLANS}[name]()))


@pytest.mark.parametrize("name", [*plans.AUTO, *slowly(plans.SLOW_AUTO)])
def test_auto_takes_the_mechanism_that_it_took(name):
    agree(golden("doors")["auto"][name], plans.chosen(*{**plans.AUTO, **plans.SLOW_AUTO}[name]))


@pytest.mark.parametrize("name", doors.ESTIMATORS)
def test_estimators_learn_what_they_did(name):
    agree(golden("doors")["estimators"][name], doors.fitted(name))


@pytest.mark.parametrize("name", doors.COMMANDS)
def test_commands_print_what_they_did(name):
    agree(golden("doors")["commands"][name], doors.printed(name, golden("releases")[SAMPLE]))


def test_mistakes_meet_the_errors_that_they_met():
    assert refusals.refusals(loaded(golden("releases")[SAMPLE])) == golden("doors")["refusals"]
