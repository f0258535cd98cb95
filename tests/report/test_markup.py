"""Tables in LaTeX and Markdown: they can be compiled, they hold the numbers, and no name can break out of its cell."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError
from dpgram.report.markup import latex_cell, latex_text, markdown_text
from dpgram.report.summary import Block, Summary

NASTY = "50 % of_$x$ & {y} \\ ~^#<b>|*`[a](b)\nline"


@pytest.fixture(scope="module")
def models(small_release):
    return dpgram.compare(
        {"small": dpgram.regress(small_release, "y", ["x"]), "a_b": dpgram.regress(small_release, "y", ["x", "c"])}
    )


def compiled(text: str) -> list[list[list[str]]]:
    """The cells of every tabular; fails on what LaTeX would not take: braces, environments, special signs, numbers of cells."""
    plain = re.sub(r"\\[&%$#_{}]", "x", text)  # escaped signs are only text
    assert plain.count("{") == plain.count("}")
    depth = 0
    for sign in plain:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert plain.count("$") % 2 == 0
    assert not set("#%~") & set(plain)
    open_environments: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", plain):
        if kind == "begin":
            open_environments.append(name)
        else:
            assert open_environments.pop() == name
    assert not open_environments
    assert not re.search(r"\\\\\s*[\[*]", plain), "a bracket or star would belong to the end of the line"
    tables = []
    for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", plain, flags=re.DOTALL):
        lines = [line for line in body.splitlines() if not line.startswith(("\\toprule", "\\midrule", "\\bottomrule"))]
        rows = [[cell.strip() for cell in line.removesuffix(r"\\").split("&")] for line in lines]
        assert all(line.endswith(r"\\") for line in lines)
        assert {len(row) for row in rows} == {len(columns)}
        tables.append(rows)
    outside = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", plain, flags=re.DOTALL)
    assert "&" not in outside
    assert not re.search(r"(?<!\$)[\^](?!\{)", plain)
    return tables


def test_a_comparison_in_latex(models):
    text = models.to_latex()
    ((header, *rows),) = compiled(text)
    assert header == ["", "small", "axb"]  # the underscore is escaped
    by_name = {row[0]: row[1:] for row in rows if row[0]}
    assert by_name["x"][0] == f"{models.models['small'].params['x']:.5g}$^{{***}}$"
    assert by_name["Observations"] == ["4,000", "4,000"]
    assert by_name["R-squared"] == [f"{fit.rsquared:.3f}" for fit in models.models.values()]
    assert f"({models.models['small'].bse['x']:.5g})" in [row[1] for row in rows]
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert rule in text
    assert "NOT PRIVATE" in text
    assert text.startswith("\\begingroup")


def test_no_stars_and_intervals_instead_of_standard_errors(models):
    assert "$^{" not in models.to_latex(stars=False)
    assert "p<0.001" not in str(models.summary(stars=False))
    low, high = models.models["small"].conf_int().loc["x"]
    assert f"{{[}}{low:.3g}, {high:.3g}]" in models.to_latex(below="interval", digits=3)
    compiled(models.to_latex(below="interval"))


def test_a_category_can_be_one_row(models):
    text = str(models.summary(fixed=["c"], extra={"made by": ["me", "you"]}))
    assert "c[b]" not in text
    assert re.search(r"^c, all levels +no +yes$", text, flags=re.MULTILINE)
    assert re.search(r"^made by +me +you$", text, flags=re.MULTILINE)
    compiled(models.to_latex(fixed=["c"], extra={"made by": ["me", "you"]}))


def test_a_category_of_which_a_model_has_some_levels_is_told_apart(models):
    release = models.models["small"].release
    asked = {"one": ["x", "c[b]"], "both": ["x", "c"]}
    text = str(
        dpgram.compare({name: dpgram.regress(release, "y", features) for name, features in asked.items()}).summary(fixed=["c"])
    )
    assert "c[b]" not in text
    assert re.search(r"^c, all levels +some +yes$", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"fixed": ["cc"]}, "fixed names 'cc', but no model has such a column. Did you mean 'c'?"),
        ({"fixed": "c"}, "fixed is 'c' and must be a list of columns"),
        ({"stars": 3}, "stars is 3 and must be True or False"),
        ({"below": "sd"}, "below is 'sd' and must be"),
        ({"digits": 0}, "digits is 0 and must be a whole number from 1 to 15"),
        ({"extra": {"a": ["x"]}}, "the extra row 'a' needs a list with 2 entries"),
    ],
)
def test_what_a_table_cannot_look_like(models, style, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        models.to_latex(**style)


def test_one_fit_and_its_whole_summary(small_release):
    fit = dpgram.regress(small_release, "y")
    ((_, *rows),) = compiled(fit.to_latex(caption="A table of 5 % & more", label="tab:one"))
    assert [row[0] for row in rows if row[0]][:5] == [name.replace("_", "x") for name in fit.names]
    assert r"\caption{A table of 5 \% \& more}" in fit.to_latex(caption="A table of 5 % & more")
    assert r"\label{tab:one}" in fit.to_latex(label="tab:one")
    whole = compiled(fit.summary().to_latex())
    assert len(whole) == 3  # facts, coefficients, joint tests
    assert whole[1][0][1:3] == ["coef", "std err"]


def test_markdown_tables_have_as_many_cells_in_every_row(small_release, models):
    fit = dpgram.regress(small_release, "y")
    for text in (models.to_markdown(), fit.to_markdown(), fit.summary().to_markdown()):
        for block in text.split("\n\n"):
            if block.startswith("|"):
                rows = [re.split(r"(?<!\\)\|", line) for line in block.splitlines()]
                assert len({len(row) for row in rows}) == 1
                assert set("".join(rows[1])) <= set(":-")
    assert r"\*\*\*" in models.to_markdown()
    assert f"{fit.params['x']:.5g}" in fit.to_markdown()


def test_names_are_escaped():
    for text in (NASTY, "a--b ``c'' ?`", "[first", "*first", "a\\b", "x^2"):
        summary = Summary(text, [(text, text)], [Block(["", text], [[text, text]])], [text])
        compiled(summary.to_latex(caption=text))
        assert "\n" not in markdown_text(text)
        assert not re.search(r"(?<!\\)(?:\\\\)*[|<*`\[]", markdown_text(text))
    assert latex_text("[a") == "{[}a"
    assert latex_text("a--b---c") == "a-{}-b-{}-{}-c"
    assert latex_text("``q'' ,,r'' !` ?`") == "`{}`q'{}' ,{},r'{}' !{}` ?{}`"
    assert latex_text("<<a>> -> b-c, d`") == r"\textless{}\textless{}a\textgreater{}\textgreater{} -\textgreater{} b-c, d`"
    assert latex_cell("--") == "-{}-"
    assert latex_cell("-1.5**") == "$-$1.5$^{**}$"
    assert latex_cell("-inf") == r"$-$$\infty$"
    assert latex_cell("1e-05") == "1e-05"


def test_a_release_with_nasty_names_gives_a_table_that_compiles():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(NASTY.replace("\n", " "), -5, 5), dpgram.Numeric("y", -5, 5)])
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=500) for name in schema.names}
    release = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    compiled(dpgram.regress(release, "y").to_latex())
    compiled(dpgram.regress(release, schema.names[0], ["y"]).summary().to_latex())


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX on this machine")
def test_latex_compiles(models, tmp_path):
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + models.to_latex(caption="x") + "\n\\end{document}"
    )
    subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True, capture_output=True
    )
