"""Release files from strangers: a label that does not follow from its numbers is refused. What would
exhaust the reader is refused at once."""

import contextlib
import dataclasses
import json
import subprocess
import sys
import time

import numpy as np
import pytest

import dpgram
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta, plain_gaussian_delta
from dpgram.artifact import intake
from dpgram.artifact.claims import CLAIMS
from dpgram.artifact.files import content_of
from dpgram.errors import CombineError, ReleaseFileError, SchemaError
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.noise import WishartSample
from tests.conftest import small_schema, small_table
from tests.golden.releases import OPTIONS

SECONDS = 2.0


@pytest.fixture(scope="module")
def made():
    """A release by every mechanism, as its file says it; private, as far as the file says."""
    found = {}
    for name, options in OPTIONS.items():
        release = dpgram.release(
            small_table(), small_schema(), epsilon=2.0, delta=1e-6, mechanism=name, arithmetic="float", **options
        )
        found[name] = json.loads(content_of(release))
    return found


@pytest.fixture
def loads(tmp_path, made):
    """Loads the release of a mechanism after an edit of its file."""

    def load(name, edit=lambda content: None):
        content = json.loads(json.dumps(made[name]))
        edit(content)
        return loaded(tmp_path, json.dumps(content))

    return load


def loaded(folder, text):
    path = folder / "release.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return dpgram.load(path)


def parameters(**changes):
    return lambda content: content["mechanism"]["parameters"].update(changes)


def budget(**changes):
    return lambda content: content["budget"].update(changes)


def test_every_mechanism_has_a_claim():
    assert CLAIMS.keys() == MECHANISMS.keys()


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_budget_that_the_parameters_contradict_is_refused(loads, name):
    assert loads(name).mechanism == name
    for change in (budget(epsilon=1.9), budget(epsilon=0.01), budget(delta=9e-7), budget(epsilon=2.1), budget(epsilon=1e300)):
        with pytest.raises(ReleaseFileError, match=r"field '(budget|mechanism\.parameters)"):
            loads(name, change)
    assert (
        loads(name, budget(delta=1e-5)).budget.delta == 1e-5 if "adaptive" not in name else True
    )  # says too little, and so is true


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_parameter_that_its_curve_needs_can_be_changed_or_missing(loads, made, name):
    numbers = made[name]["mechanism"]["parameters"]
    free = {
        "looks",
        "grid_of_inverse",
        "scales",
        "first_stage_value",
        "first_stage_delta",
    }
    needed = [key for key in numbers if key not in free and not key.startswith("look_")]
    assert len(needed) >= 4
    for key in needed:
        with pytest.raises(ReleaseFileError, match=r"field '(mechanism|budget|noise)"):
            loads(name, parameters(**{key: numbers[key] * 0.9 if numbers[key] else 1.0}))
        if key != "looks_mu" and not key.endswith(("stretch", "kept")):
            with pytest.raises(ReleaseFileError, match=r"field '(mechanism|budget|noise)"):
                loads(name, lambda content, key=key: content["mechanism"]["parameters"].pop(key))


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-300, 1e300, 5e-324])
@pytest.mark.parametrize("name", MECHANISMS)
def test_parameters_of_any_size_are_refused_in_words(loads, made, name, value):
    for key in made[name]["mechanism"]["parameters"]:
        with contextlib.suppress(ReleaseFileError):  # and no other error
            loads(name, parameters(**{key: value}))


def test_mu_and_epsilon_that_were_changed_together_contradict_the_noise(loads):
    mu = calibrate_mu(dpgram.Budget(0.1, 1e-6))

    def change(content):
        content["budget"]["epsilon"] = 0.1
        content["mechanism"]["parameters"].update(mu=mu, delta_at_epsilon=gaussian_delta(0.1, mu))

    with pytest.raises(ReleaseFileError, match=r"field 'mechanism.parameters.mu': is .*, but .* follows from the others"):
        loads("gaussian-noise", change)


@pytest.mark.parametrize(
    ("name", "field"),
    [("gaussian-noise", "sd_off_diagonal"), ("gaussian-sketch", "degrees_of_freedom"), ("inverse-wishart", "shift")],
)
def test_noise_of_another_size_than_the_label_says_is_refused(loads, name, field):
    with pytest.raises(ReleaseFileError, match=f"field 'noise.{field}': is .*, but the parameter"):
        loads(name, lambda content: content["noise"].update({field: 0.7 * content["noise"][field]}))


@pytest.mark.parametrize("name", ["gaussian-sketch", "inverse-wishart"])
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-30, 1e6])
def test_a_draw_is_definite_or_changed(loads, name, value):
    with pytest.raises(ReleaseFileError, match="field 'gram': has a negative eigenvalue"):
        loads(name, lambda content: [content["gram"][i].__setitem__(j, value) for i, j in ((0, 1), (1, 0), (1, 1), (2, 2))])


@pytest.mark.parametrize("name", ["gaussian-sketch", "inverse-wishart"])
def test_a_draw_that_is_too_large_for_its_rows_is_refused(loads, name):
    with pytest.raises(ReleaseFileError, match="field 'gram': contains a number that is too large for a sum over rows"):
        loads(name, lambda content: content["gram"][1].__setitem__(1, 1e19))


@pytest.mark.parametrize(
    ("name", "edit", "field"),
    [
        ("gaussian-noise", lambda c: c["noise"].update(shift=7.0), "noise.shift"),
        ("wishart-noise", lambda c: c["noise"].update(shift=c["noise"]["shift"] + 7), "noise.shift"),
        ("wishart-noise", lambda c: c["noise"].update(sd_diagonal=c["noise"]["sd_diagonal"] / 2), "noise.sd_diagonal"),
        ("inverse-wishart", lambda c: c["noise"].update(multiple=c["noise"]["multiple"] / 2), "noise.multiple"),
        ("noisy-inverse", lambda c: c["mechanism"]["parameters"].update(rho=9.0), "mechanism.parameters.claimed_floor"),
    ],
)
def test_numbers_of_the_noise_that_fits_read_follow_from_the_label(loads, name, edit, field):
    """They move coefficients and intervals, though the promise stays as it is."""
    with pytest.raises(ReleaseFileError, match=f"field '{field}'"):
        loads(name, edit)


def test_another_row_bound_or_relation_contradicts_the_sensitivity(loads):
    def row_bound(content):
        content["row_bound"] = content["schema"]["row_bound"] = content["row_bound"] / 2

    def relation(content):
        content["neighbours"] = content["schema"]["neighbours"] = "add-remove"
        content["rows"] = None

    for edit in (row_bound, relation):
        with pytest.raises(ReleaseFileError, match=r"field 'mechanism\.parameters\.frobenius_sensitivity'"):
            loads("gaussian-noise", edit)


def test_a_gaussian_first_stage_holds_with_its_own_numbers(tmp_path):
    """Its degrees of freedom, the mu of its second stage and its relation are those that the proof speaks of."""
    made = dpgram.release(
        small_table(),
        small_schema(),
        epsilon=2.0,
        delta=1e-6,
        mechanism="gaussian-sketch-adaptive",
        first_stage="gauss",
        arithmetic="float",
    )
    content = json.loads(content_of(made))
    assert loaded(tmp_path, json.dumps(content)).parameters == made.parameters

    def refused(edit, match):
        changed = json.loads(json.dumps(content))
        edit(changed)
        with pytest.raises(ReleaseFileError, match=match):
            loaded(tmp_path, json.dumps(changed))

    refused(parameters(base_degrees_of_freedom=1e6), "second_stage_mu")
    refused(parameters(first_stage_delta=0.0), "first_stage_delta")
    refused(
        lambda c: (c.update(neighbours="add-remove", rows=None), c["schema"].update(neighbours="add-remove")), "first_stage_mu"
    )


def test_a_mechanism_that_nobody_knows_and_noise_of_another_are_refused(loads, small_release, tmp_path):
    with pytest.raises(ReleaseFileError, match=r"field 'mechanism.name': is 'magic' and must be one of gaussian-noise, "):
        loads("gaussian-noise", lambda content: content["mechanism"].update(name="magic"))
    other = dataclasses.replace(small_release, noise=WishartSample(300.0, 60.0, 60.0))
    with pytest.raises(ReleaseFileError, match=r"field 'noise.shape': is 'wishart-sample', but gaussian-noise has noise of"):
        loaded(tmp_path, content_of(other))


def test_a_private_release_has_no_seed(small_release, tmp_path):
    for text in (small_release.randomness, "bits from the seed 8: not private", "NumPy's PCG64"):
        with pytest.raises(ReleaseFileError, match=r"field 'private': is true, but the noise came from a seed"):
            loaded(tmp_path, content_of(dataclasses.replace(small_release, private=True, randomness=text)))


def test_a_round_that_was_dropped_or_doubled_is_noticed(loads):
    def told(content, change):
        rounds, numbers = content["noise"]["rounds"], content["mechanism"]["parameters"]
        if change == "dropped":
            rounds.pop(0)
            numbers.pop("rounds")
        else:
            rounds.insert(0, rounds[0])
            numbers["rounds"] += 1

    for change in ("dropped", "doubled"):
        with pytest.raises(ReleaseFileError, match=r"field 'mechanism.parameters.round"):
            loads("whitened-noise", lambda content, change=change: told(content, change))

    def copied(content):  # in the place of another: the numbers fit
        content["noise"]["rounds"][1] = content["noise"]["rounds"][0]

    with pytest.raises(ReleaseFileError, match=r"field 'noise.rounds\[1\].gram': is that of round 1 again"):
        loads("whitened-noise", copied)


def test_a_key_that_is_there_twice_is_refused(made, tmp_path):
    text = json.dumps(made["gaussian-noise"])
    for there, twice in (
        ('"epsilon": 2.0', '"epsilon": 0.1, "epsilon": 2.0'),
        ('"epsilon": 2.0', '"\\u0065psilon": 0.1, "epsilon": 2.0'),
        ('"private": true', '"private": false, "private" : true'),
        ('"kind": "numeric"', '"kind": "date", "kind": "numeric"'),
    ):
        assert there in text
        with pytest.raises(ReleaseFileError, match="twice in one object"):
            loaded(tmp_path, text.replace(there, twice, 1))
    name = json.dumps('{"x": 1, "x": 2} \\" "a": {')  # the same within a text is text
    assert loaded(
        tmp_path, text.replace('"choice"', '"Choice"').replace('"randomness": "', f'"choice": {name}, "randomness": "')
    )


HUGE = {
    "objects": lambda c: json.dumps(c).replace('"neighbours": "replace"', '"neighbours": ' + '{"a":' * 10**6, 1),
    "lists": lambda c: json.dumps(c).replace('"neighbours": "replace"', '"neighbours": ' + "[" * 10**6, 1),
    "parameters": lambda c: changed(c, lambda c: c["mechanism"]["parameters"].update({f"p{k}": 1.0 for k in range(10**6)})),
    "some parameters": lambda c: changed(c, lambda c: c["mechanism"]["parameters"].update({f"p{k}": 1.0 for k in range(4000)})),
    "text": lambda c: changed(c, lambda c: c.update(choice="x" * 50_000_000)),
    "shorter text": lambda c: changed(c, lambda c: c["mechanism"].update(condition="x" * 10_000_000)),
    "name": lambda c: json.dumps(c).replace('"x"', '"' + "x" * 5_000_000 + '"'),
    "declared": lambda c: changed(c, lambda c: c["schema"].update(columns=c["schema"]["columns"] * 30_000)),
    "categories": lambda c: changed(c, lambda c: c["schema"]["columns"][2].update(categories=[str(k) for k in range(10**6)])),
    "digits": lambda c: changed(c, lambda c: c.update(rows=123454321)).replace("123454321", "9" * 5000),
    "fewer digits": lambda c: changed(c, lambda c: c.update(rows=10**400)),
    "bound": lambda c: changed(c, lambda c: c["schema"]["columns"][0].update(upper=10**400)),
    "matrix": lambda c: changed(c, lambda c: c.update(gram=[[0.0] * 2000] * 2000)),
}
LIMITS = {
    "objects": "more than 32 deep",
    "lists": "nested far too deeply",
    "parameters": "more than 5,000 keys",
    "some parameters": "no mechanism has more than 250",
    "text": "at most 33.6 MB are read",
    "shorter text": "at most 100,000 are read",
    "name": "at most 1,000,000 are possible",
    "declared": "at most 4,096 are possible",
    "categories": "at most 4,096 are possible",
    "digits": "out of range",
    "fewer digits": r"above 1e\+19",
    "bound": r"above 1e\+300",
    "matrix": "2000 rows of 2000 numbers",
}


def changed(content, edit):
    content = json.loads(json.dumps(content))
    edit(content)
    return json.dumps(content)


@pytest.mark.parametrize("what", HUGE)
def test_what_would_exhaust_a_reader_is_refused_at_once_with_the_limit(made, tmp_path, what):
    text = HUGE[what](made["gaussian-noise"])
    started = time.process_time()
    with pytest.raises(ReleaseFileError, match=LIMITS[what]):
        loaded(tmp_path, text)
    assert time.process_time() - started < SECONDS


DENSE = {  # what begins a content, what goes on, and how many times
    "quotes": (b'{"a":"', b'\\"', 16_000_000),  # a text without an end: each of its quotes could begin another
    "backslashes": (b'{"a":"', b"\\\\", 16_000_000),
    "halves": (b"", b'"\\', 10_000_000),
    "texts": (b'{"a":[', b'"x",', 8_000_000),
    "objects": (b"[", b"{},", 11_000_000),
    "larger objects": (b"[", b'{"a":1},', 4_000_000),
    "levels": (b"", b'{"a":', 6_000_000),
}


@pytest.mark.parametrize("dense", DENSE)
def test_texts_and_objects_are_looked_at_in_seconds_whatever_they_are(dense):
    begin, part, times = DENSE[dense]
    content = begin + part * times
    begun = time.process_time()
    with contextlib.suppress(intake.IntakeError):
        intake.check_objects(content)
    assert time.process_time() - begun < 2 * SECONDS  # of a machine that does other things too


@pytest.mark.parametrize("key", ['"budget"', '"b\\u0075dget"'])
@pytest.mark.parametrize("before", ['"x": "",', '"x": "\\\\",', '"x": "\\"",', '"x": ["a", "b\\\\\\"", ["{"]],', ""])
def test_no_text_hides_a_key_that_is_there_twice(before, key):
    content = ('{"budget": 1, ' + before + key + ": 2}").encode()
    json.loads(content)
    with pytest.raises(intake.IntakeError, match='"budget" twice'):
        intake.check_objects(content)


def test_the_memory_that_a_small_release_can_take_is_limited(made, tmp_path):
    """Of the largest file of few columns that is read at all, with as many lists as go into it."""
    text = changed(made["gaussian-noise"], lambda c: c.update(gram=[[]] * 8_000_000))
    path = tmp_path / "release.json"
    path.write_text(text)
    assert 30e6 < path.stat().st_size < intake.MOST_WORDS
    script = f"import resource, dpgram\ntry: dpgram.load({str(path)!r})\nexcept dpgram.DpgramError as e: print(str(e)[-80:])\n"
    script += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) * 1024 < 2e9, done.stdout  # as docs/limits.md says


def test_files_that_say_nothing_of_their_size_are_not_read_for_ever(monkeypatch):
    monkeypatch.setattr(intake, "MOST_PIPED", 1 << 20)
    with pytest.raises(ReleaseFileError, match="has 1.0 MB, but at most 1.0 MB are read"):
        dpgram.load("/dev/zero")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 10**5 + "]" * 10**5, "nested too deeply. At most 8"),
        ("x = " + "[" * 20 + "]" * 20, "nested too deeply. At most 8"),
        ("x = " + "{a=" * 10**4 + "1" + "}" * 10**4, "nested too deeply. At most 8"),
        ("x = " + "9" * 5000, "whole number with far too many digits"),
        ("x = " + "9" * 400, r"whole number above 1e\+300"),
        ("x = '" + "9" * 5_000_000 + "'", "more than 4,000,000 characters"),
        ("a" + ".a" * 200_000 + " = 1", "nested too deeply: more than 40 names"),
        ("x = {" + '"a" . ' * 100_000 + "a = 1}", "nested too deeply: more than 40 names"),
        ("[" + "a-b." * 200_000 + "a]", "nested too deeply: more than 40 names"),
    ],
    ids=range(9),
)
def test_a_schema_that_no_table_has_is_refused_in_words(tmp_path, text, message):
    (tmp_path / "s.toml").write_text(f'unit = "p"\n{text}\n')
    with pytest.raises(SchemaError, match=message):
        dpgram.Schema.load(tmp_path / "s.toml")


def test_bounds_that_no_float_holds_are_refused():
    with pytest.raises(SchemaError, match="upper is inf and must be finite"):
        dpgram.Numeric("x", 0, 10**400)


def test_what_cannot_be_read_cannot_be_declared_or_combined(small_release):
    with pytest.raises(SchemaError, match="names and texts of the schema have"):
        dpgram.Schema(unit="p", columns=[dpgram.Boolean("x" * 600_000)])
    with pytest.raises(CombineError, match="at most 1,000 can be combined"):
        dpgram.combine([small_release] * 1001, rows="same")


@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 0.3])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 30.0, 1e3])
def test_the_plain_curve_is_the_exact_one(epsilon, delta):
    mu = calibrate_mu(dpgram.Budget(epsilon, delta))
    for each in np.array([0.5, 0.9, 1.0, 1.1, 3.0]) * mu:
        assert plain_gaussian_delta(epsilon, each) == pytest.approx(gaussian_delta(epsilon, each), rel=5e-7, abs=1e-300)


def test_a_terminal_obeys_no_text_of_a_file_in_python_either(tmp_path):
    evil = "in\x1b]0;come\x07\x9b2J\u202e\u200f\u061c"
    schema = dpgram.Schema(unit="p\x1b", columns=[dpgram.Numeric(evil, 0, 1), dpgram.Numeric("y", 0, 1)])
    table = {evil: [0.1, 0.9] * 50, "y": [0.2, 0.7] * 50}
    release = dpgram.release(table, schema, epsilon=8, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    fit = dpgram.regress(release, "y")
    said = [str(fit), repr(fit), str(fit.summary()), repr(dataclasses.replace(release, mechanism=evil))]
    said += [str(dpgram.covariance(release)), str(dpgram.pca(release))]
    content = json.loads(content_of(release))
    for edit in (
        lambda c: c.update({evil: 1}),
        lambda c: c["mechanism"].update(name=evil),
        lambda c: c.update(arithmetic=evil),
    ):
        with pytest.raises(ReleaseFileError) as refused:
            loaded(tmp_path, changed(content, edit))
        said.append(str(refused.value))
    assert not set("".join(said)) & set("\x1b\x07\x9b\u202e\u200f\u061c")
    assert "\\x1b" in said[0]
