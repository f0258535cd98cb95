"""What may be declared, and what each mistake is called."""

import math
from fractions import Fraction

import pytest

from dpgram import Boolean, Categorical, Neighbours, Numeric, Schema
from dpgram.errors import SchemaError
from dpgram.terms.schema_file import draft

FILE = """
unit = "flight"            # what one row is; required
neighbours = "replace"     # or "add-remove"
row_bound = 2.5            # optional, in scaled units
intercept = true

[[columns]]
name = "arr_delay"
kind = "numeric"
lower = -120
upper = 240
missing = "midpoint"

[[columns]]
name = "carrier"
kind = "categorical"
categories = ["UA", "AA", "DL"]
"""


def load(tmp_path, text) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return Schema.load(path)


def test_a_file_reads_as_declared(tmp_path):
    schema = load(tmp_path, FILE)
    assert schema == Schema(
        unit="flight",
        neighbours=Neighbours.REPLACE,
        row_bound=2.5,
        columns=[Numeric("arr_delay", -120, 240, "midpoint"), Categorical("carrier", ["UA", "AA", "DL"])],
    )
    assert schema.encoded_names == ("(intercept)", "arr_delay", "carrier[AA]", "carrier[DL]")
    assert (schema.encoded[1].centre, schema.encoded[1].half) == (60, 180)


def test_plain_fields_read_back_equal():
    schema = Schema(
        unit="visit",
        neighbours="add-remove",
        intercept=False,
        columns=[
            Numeric("n", 0, 1, missing=0.25),
            Categorical("k", [1, 2], other=True, missing="level"),
            Boolean("b", missing=True),
        ],
    )
    assert Schema.from_dict(schema.to_dict()) == schema


COLUMN = '[[columns]]\nname = "x"\n'
NUMBER = COLUMN + 'kind = "numeric"\n'
LEVELS = COLUMN + 'kind = "categorical"\n'


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (NUMBER + 'lower = ""\nupper = ""', "column 'x': lower is blank"),
        (NUMBER + "lower = 1", "column 'x': upper is blank"),
        (NUMBER + "lower = \nupper = 1", "not valid TOML.*A value is empty. Fill it in"),
        (NUMBER + "lower = 2\nupper = 2", "column 'x': lower is 2 and upper is 2, but lower must be smaller"),
        (NUMBER + "lower = 3\nupper = 2", "lower must be smaller than upper"),
        (NUMBER + "lower = nan\nupper = 2", "column 'x': lower is nan and must be finite"),
        (NUMBER + "lower = 0\nupper = inf", "column 'x': upper is inf and must be finite"),
        (NUMBER + 'lower = "low"\nupper = 2', "column 'x': lower is 'low' and must be a number"),
        (NUMBER + "lower = true\nupper = 2", "column 'x': lower is True and must be a number"),
        (NUMBER + "lower = 0\nupper = 1\nmissing = 2", r"missing is 2 and must lie within \[0, 1\]"),
        (NUMBER + 'lower = 0\nupper = 1\nmissing = "mean"', "missing is 'mean' and must be \"drop-row\", "),
        (NUMBER + "lower = 1e16\nupper = 10000000000000002.0", "too close together"),
        (NUMBER + "lower = -1.7e308\nupper = 1.7e308", "too large"),
        (NUMBER + "lower = 0\nupper = 5e-324", "too small"),
        (NUMBER + "lower = 0\nupper = 1\nuper = 2", "unknown key 'uper'"),
        (COLUMN + 'kind = ""', "column 'x': kind is blank and must be one of numeric, categorical, boolean"),
        (COLUMN, "column 'x': kind is blank"),
        (COLUMN + 'kind = "number"', "kind is 'number' and must be one of"),
        ("[[columns]]\nkind = 'numeric'", "column number 1 has no name"),
        (NUMBER + "lower = 0\nupper = 1\n" + NUMBER + "lower = 0\nupper = 1", "column 'x' is declared twice"),
        (LEVELS + "categories = []", "categories is blank"),
        (LEVELS, "categories is blank"),
        (LEVELS + 'categories = ["a"]', "there is only one category"),
        (LEVELS + 'categories = ["a", 1]', "all strings or all integers"),
        (LEVELS + "categories = [true, false]", "all strings or all integers"),
        (LEVELS + 'categories = ["a", "a"]', "listed twice"),
        (LEVELS + 'categories = ["a", ""]', "the empty text cannot be a category"),
        (LEVELS + 'categories = ["a", "other"]\nother = true', "'other' is a declared category, but"),
        (LEVELS + 'categories = ["a", "b"]\nmissing = "drop"', 'must be "reference", "level" or "drop-row"'),
        (COLUMN + 'kind = "boolean"\nmissing = 0', 'missing is 0 and must be true, false or "drop-row"'),
        ("", "declares no columns"),
        ("columns = 3", "Write each column under"),
    ],
)
def test_bad_columns_are_named(tmp_path, columns, message):
    with pytest.raises(SchemaError, match=message):
        load(tmp_path, f'unit = "person"\n{columns}')


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("", "unit is missing"),
        ('unit = " "', "unit is blank"),
        ('unit = "a"\nneighbours = "swap"', 'neighbours is \'swap\' and must be "replace" or "add-remove"'),
        ('unit = "a"\nrow_bound = 0', "row_bound is 0 and must be"),
        ('unit = "a"\nrow_bound = nan', "row_bound is nan and must be"),
        ('unit = "a"\nrow_bound = "2"', "row_bound is '2' and must be a number"),
        ('unit = "a"\nintercept = 1', "intercept is 1 and must be true or false"),
        ('unit = "a"\nrowbound = 1', "the schema has an unknown key 'rowbound'"),
    ],
)
def test_bad_top_fields_are_named(tmp_path, top, message):
    with pytest.raises(SchemaError, match=message):
        load(tmp_path, f"{top}\n{NUMBER}lower = 0\nupper = 1\n")


def test_names_that_collide_after_encoding_are_refused():
    with pytest.raises(SchemaError, match=r"encoded column 'c\[b\]' is declared twice"):
        Schema(unit="p", columns=[Categorical("c", ["a", "b"]), Numeric("c[b]", 0, 1)])
    with pytest.raises(SchemaError, match="declared twice"):
        Schema(unit="p", columns=[Numeric("(intercept)", 0, 1)])


def test_too_many_columns_are_refused():
    with pytest.raises(SchemaError, match="at most 4096"):
        Schema(unit="p", columns=[Categorical("c", [str(i) for i in range(5000)])])


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(SchemaError, match="cannot be read: No such file"):
        Schema.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'unit = "caf\xe9"')
    with pytest.raises(SchemaError, match="is not UTF-8"):
        Schema.load(tmp_path / "latin.toml")


@pytest.mark.parametrize("columns", range(1, 60))
def test_the_default_row_bound_is_the_largest_norm_from_above(columns):
    schema = Schema(unit="p", columns=[Numeric(f"x{i}", 0, 1) for i in range(columns)])
    bound = schema.effective_row_bound
    assert Fraction(bound) ** 2 >= columns + 1 > Fraction(math.nextafter(bound, 0)) ** 2


def test_a_row_bound_above_the_largest_norm_costs_nothing():
    columns = [Numeric("x", 0, 1), Categorical("c", ["a", "b", "c"]), Boolean("b")]  # at most one level is lit
    assert Schema(unit="p", columns=columns, row_bound=100.0).effective_row_bound == 2.0
    assert Schema(unit="p", columns=columns, row_bound=1.5).effective_row_bound == 1.5


def test_without_an_intercept_numbers_are_scaled_about_zero():
    schema = Schema(unit="p", columns=[Numeric("x", -1, 4)], intercept=False)
    assert (schema.encoded[0].centre, schema.encoded[0].half) == (0.0, 4.0)


def test_a_draft_names_every_blank(tmp_path):
    text = draft([("n", "numeric"), ("c", "categorical"), ("b", "boolean"), ("?", None), ("t", "!its type is not supported")])
    assert '# "t" is left out: its type is not supported.' in text
    with pytest.raises(SchemaError, match="column 'n': lower is blank"):
        load(tmp_path, text.replace('unit = ""', 'unit = "p"'))


def test_a_draft_survives_strange_names(tmp_path):
    names = ['with "quotes"', "back\\slash", "tab\tand\nline", "naïve", "#hash", "[x]", "\x7f", "\x9b2J"]
    text = draft([(name, "boolean") for name in names]).replace('unit = ""', 'unit = "p"')
    assert load(tmp_path, text).names == tuple(names)
    assert "\x9b" not in text


def test_a_draft_says_what_becomes_of_missing_cells_in_every_column(tmp_path):
    """With the values that hold where nothing is said, so that whoever fills it in sees the choice and has to make none."""
    kinds = {"n": "numeric", "d": "date", "c": "categorical", "b": "boolean"}
    text = draft([*kinds.items(), ("?", None)])
    assert len([line for line in text.splitlines() if line.startswith("missing = ")]) == len(kinds) + 1
    filled = text.replace('unit = ""', 'unit = "p"').replace("categories = []", 'categories = ["a", "b"]')
    filled = filled.replace('lower = ""', "lower = 2013-01-01").replace('upper = ""', "upper = 2014-01-01")
    filled = filled.replace("2013-01-01", "0", 1).replace("2014-01-01", "1", 1)
    filled = filled.replace('kind = "" ', 'kind = "boolean"')
    schema = load(tmp_path, filled)
    assert [column.missing for column in schema.columns] == ["drop-row", "drop-row", "reference", False, "drop-row"]
    said = {column.name: column.missing for column in schema.columns if column.name != "?"}
    assert said == {column.name: column.unsaid for column in schema.columns if column.name != "?"}


def test_a_draft_of_a_column_of_unknown_kind_has_the_choices_of_every_kind():
    """All columns of a CSV file are of unknown kind."""
    unknown = draft([("?", None)]).partition("[[columns]]")[2].partition("# Declare")[0]
    assert all(f'"{choice}"' in unknown for choice in ("drop-row", "indicator", "midpoint", "reference", "level"))
    assert "false or true" in unknown


def test_the_lines_of_a_draft_that_are_comments_are_keys_of_a_schema(tmp_path):
    text = (
        draft([("b", "boolean")]).replace('unit = ""', 'unit = "p"').replace('provenance = ""', 'provenance = "the codebook"')
    )
    for key in ("unit_id", "rows_per_unit", "weight", "largest_weight", "provenance", "row_bound"):
        assert text.count(f"# {key} = ") == 1
        text = text.replace(f"# {key} = ", f"{key} = ")
    schema = load(tmp_path, text)
    assert (schema.unit_id, schema.rows_per_unit, schema.weight, schema.largest_weight) == ("person_id", 5, "weight", 4.0)
    assert schema.provenance == "the codebook"
