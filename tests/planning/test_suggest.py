"""Which derived columns wished models need: the lines load, the formulas then work, and the costs follow from public facts."""

import json

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError, PlanError, SchemaError
from dpgram.regression.formula import designs, instrumented

COLUMNS = [
    dpgram.Numeric("wage", 0, 100),
    dpgram.Numeric("age", 0, 120),
    dpgram.Numeric("debt", 0, 10, missing=4.0),
    dpgram.Numeric("hours", 1, 80, missing=40),
    dpgram.Boolean("female"),
    dpgram.Categorical("region", ["n", "s", "w"]),
    dpgram.Date("when", "2013-01-01", "2014-01-01"),
]
SCHEMA = dpgram.Schema(unit="person", columns=COLUMNS)
TOML = """
unit = "person"
[[columns]]
name = "wage"
kind = "numeric"
lower = 0
upper = 100
[[columns]]
name = "age"
kind = "numeric"
lower = 0
upper = 120
[[columns]]
name = "female"
kind = "boolean"
"""

WISHES = {
    "wage ~ age*female + I(age**2)": ["age_squared", "age_by_female"],
    "wage ~ I(age / 10) + region": [],
    "log1p(wage) ~ I((age - 40)**2) + age": ["age_squared", "log1p_wage"],
    "wage ~ np.log(hours) + I(np.log(2 * hours) + age)": ["log_hours"],
    "np.log(hours) ~ log1p(hours)": ["log1p_hours", "log_hours"],
    "wage ~ age*region": ["age_by_region"],
    "wage ~ age:`region[s]`": ["age_by_region_s"],
    "wage ~ region:female": ["female_by_region"],
    "wage ~ I((age >= 18) & (age < 65))": ["age_from_18_below_65"],
    "wage ~ I(age < 18)": ["age_below_18"],
    "wage ~ I(debt**2) + np.log1p(debt) + I(debt >= 3.5)": ["debt_squared", "log1p_debt", "debt_from_3_5"],
    "wage ~ C(when.dt.month) + {when.dt.hour}": ["when_month", "when_hour"],
    "wage ~ I(when >= '2013-07-01')": ["when_from_2013_07_01"],
    "wage ~ I(age**9)": ["age_power_9"],
}


@pytest.mark.parametrize("formula", WISHES)
def test_the_formula_works_with_what_is_suggested_and_not_with_less(formula):
    found = dpgram.suggest_derived(SCHEMA, formula)
    assert sorted(one.name for one in found.derived) == sorted(WISHES[formula])
    assert designs(found.extended, formula)
    for one in found.derived:
        assert found.needed_by[one.name] == (formula,)
        with pytest.raises(ModelError):
            designs(dpgram.Schema(unit="p", columns=COLUMNS, derived=[d for d in found.derived if d != one]), formula)
    assert not dpgram.suggest_derived(found.extended, formula).derived


WITH_INSTRUMENTS = {
    "wage ~ age + [debt ~ female]": [],
    "wage ~ age + I(age**2) + [debt ~ female + female:region]": ["age_squared", "female_by_region"],
    "log1p(wage) ~ [age + age:female ~ region + region:female] - 1": ["age_by_female", "female_by_region", "log1p_wage"],
    "wage ~ female*`region[s]` + [age ~ I(when >= '2013-07-01')]": ["female_by_region_s", "when_from_2013_07_01"],
}


@pytest.mark.parametrize("formula", WITH_INSTRUMENTS)
def test_formulas_with_instruments_work_with_what_is_suggested(formula):
    found = dpgram.suggest_derived(SCHEMA, ["wage ~ age", formula])
    assert sorted(one.name for one in found.derived) == WITH_INSTRUMENTS[formula]
    assert instrumented(found.extended, formula)
    for one in found.derived:
        assert found.needed_by[one.name] == (formula,)
        with pytest.raises(ModelError):
            instrumented(dpgram.Schema(unit="p", columns=COLUMNS, derived=[d for d in found.derived if d != one]), formula)
    assert not dpgram.suggest_derived(found.extended, formula).derived


def test_several_models_share_what_they_need():
    found = dpgram.suggest_derived(SCHEMA, list(WISHES)[:4])
    assert len(found.derived) == 4
    assert found.needed_by["age_squared"] == tuple(formula for formula in WISHES if "age_squared" in WISHES[formula])


def test_the_noise_grows_with_the_square_of_the_row_bound():
    found = dpgram.suggest_derived(SCHEMA, "wage ~ age*region + I(age**2)")
    assert found.noise_growth == pytest.approx((8 + 2) / 8)
    plans = [
        dpgram.plan(schema, epsilon=1, delta=1e-6, table_rows=9999, mechanisms=["gaussian-noise"])
        .forecast.mechanisms[0]
        .noise_sd
        for schema in (SCHEMA, found.extended)
    ]
    assert plans[1] / plans[0] == pytest.approx(found.noise_growth, rel=1e-6)
    bounded = dpgram.suggest_derived(dpgram.Schema(unit="p", columns=COLUMNS, row_bound=1.5), "wage ~ I(age**2)")
    assert bounded.noise_growth == 1
    assert "more rows may be clipped" in " ".join(bounded.costs)


def test_a_name_that_is_taken_gets_a_number():
    schema = dpgram.Schema(unit="p", columns=[*COLUMNS, dpgram.Boolean("age_squared")])
    assert dpgram.suggest_derived(schema, "wage ~ I(age**2)").derived[0].name == "age_squared_2"


@pytest.mark.parametrize(
    ("formulas", "options", "error", "message"),
    [
        ([], {}, PlanError, "no formula is given"),
        ("wage ~ age:female:region", {}, ModelError, "No derived column computes it"),
        ("wage ~ debt:age", {}, ModelError, "A product would be another number where a cell of 'debt' is missing"),
        ("wage ~ [age ~ age]", {}, ModelError, "is an endogenous regressor, so it cannot be an instrument too"),
        ("wage ~ [age ~ female", {}, ModelError, "must have one part in square brackets"),
        ("wage ~ region[s]", {}, ModelError, "Write a level in backquotes"),
        ([7], {}, ModelError, "the formula is a int and must be text"),
        ("wage ~ salary", {}, ModelError, "there is no column 'salary'"),
        ("wage ~ age", {"epsilon": 1.0}, PlanError, "needs epsilon, delta and table_rows together"),
        ("wage ~ age*female", {"epsilon": 1.0, "delta": 1e-6, "table_rows": 0}, PlanError, "table_rows is 0"),
    ],
)
def test_what_cannot_be_suggested(formulas, options, error, message):
    with pytest.raises(error, match=message):
        dpgram.suggest_derived(SCHEMA, formulas, **options)


def test_the_schema_must_be_one():
    with pytest.raises(SchemaError, match="must be a Schema"):
        dpgram.suggest_derived("schema.toml", "y ~ x")


def test_the_command_writes_lines_that_a_schema_file_takes(tmp_path, capsys):
    path = tmp_path / "schema.toml"
    path.write_text(TOML)
    formula = "wage ~ age*female + I((age - 40)**2)"
    assert run(["schema", "suggest-derived", "--schema", str(path), "--formula", formula]) == 0
    out, words = capsys.readouterr()
    assert "2 derived columns to declare" in words
    assert "multiplied by 1.5" in words
    path.write_text(TOML + out)
    assert designs(dpgram.Schema.load(path), formula)
    assert run(["schema", "suggest-derived", "--schema", str(path), "--formula", formula]) == 0
    out, words = capsys.readouterr()
    assert out == ""
    assert "Nothing has to be declared" in words


def test_the_command_as_json_with_a_forecast(tmp_path, capsys):
    path = tmp_path / "schema.toml"
    path.write_text(TOML)
    options = ["--epsilon", "1", "--delta", "1e-6", "--table-rows", "20000", "--json"]
    assert run(["schema", "suggest-derived", "--schema", str(path), "--formula", "wage ~ age:female", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["computes"] for one in told["derived"]] == ["age:female"]
    assert told["noise_growth"] == pytest.approx(1.25)
    assert [one["mechanism"] for one in told["widening"]] == ["gaussian-noise", "whitened-noise"]
    for one in told["widening"]:
        assert 1 < one["width_after"] / one["width_before"] < 1.4
    assert run(["schema", "suggest-derived", "--schema", str(path)]) == 2
    assert "no formula is given" in capsys.readouterr().err


def test_a_forecast_counts_marks_of_missing_cells_once():
    """Their names were given twice: with their column, and by themselves."""
    columns = [dpgram.Numeric("y", 0, 1), dpgram.Numeric("x", 0, 1, missing="indicator"), dpgram.Numeric("w", 0, 1)]
    for order in (columns, columns[::-1], [columns[1], columns[0], columns[2]]):
        schema = dpgram.Schema(unit="p", columns=order)
        found = dpgram.suggest_derived(schema, "y ~ y:w", epsilon=1.0, delta=1e-6, table_rows=100_000)
        assert found.widening


def test_formulas_that_are_none():
    with pytest.raises(PlanError, match="formulas is None and must be a formula"):
        dpgram.suggest_derived(dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", 0, 1)]), None)
