"""The page in a real browser, opened from disk: clicked through, typed into, compared with Python, looked at in every form.

Screenshots are kept in the folder that DPGRAM_SCREENSHOTS names, if it does."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import moments
from tests.needs import PROGRAMS, program
from tests.page.releases import CELLS, HOSTILE, borrowed_names, hard_release, release_of, tailed_release

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE, PAPER = {"width": 1280, "height": 900}, {"width": 360, "height": 740}, {"width": 794, "height": 1123}
CONTRAST = """() => {
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return ["body", ".lead", ".small", "dt", "nav a", "th", "text.edge"].map((which) => {
    const one = document.querySelector(which), style = getComputedStyle(one);
    const text = light(one instanceof SVGElement ? style.fill : style.color);
    return [which, (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05)];
  });
}"""
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".bar .name, .bar .track")].map((one) => one.getBoundingClientRect());
  const shown = boxes.filter((box) => box.width * box.height > 0);
  const sideways = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const shared = (a, b) => sideways(a, b) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return shown.filter((a, i) => shown.some((b, j) => i < j && shared(a, b))).length;
}"""
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    where = program(*PROGRAMS["chromium"][0])
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=where, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def releases() -> dict[str, dpgram.GramRelease]:
    return {
        "hard": hard_release(),
        "kinds": release_of("gaussian-noise", "replace", epsilon=60.0),
        "sketch": release_of("gaussian-sketch", "add-remove"),
        "borrowed": borrowed_names(),
        "origin": release_of("gaussian-noise", "add-remove", intercept=False, epsilon=60.0),
        "tailed": tailed_release(),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, releases) -> Path:
    """A page of each release, and the release beside it."""
    root = tmp_path_factory.mktemp("pages")
    for name, release in releases.items():
        dpgram.write_report(release, root / f"{name}.html", bootstrap=["cost"] if name == "kinds" else ())
        release.save(root / f"{name}.json")
    return root


@pytest.fixture
def open_page(browser, folder):
    """Opens a page and keeps what it asks for and complains about; at the end there must be nothing of either."""
    contexts, asked, complaints = [], [], []

    def opened(name: str, viewport: dict | None = None, **options):
        context = browser.new_context(viewport=viewport or DESK, permissions=["clipboard-read", "clipboard-write"], **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector("#table tbody tr")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert {url.rsplit("/", 1)[-1].split("#")[0] for url in asked} <= {path.name for path in folder.glob("*.html")}
    assert all(url.startswith("file:") for url in asked)
    assert len(asked) == len(contexts)  # the page itself, each time, and nothing else
    assert complaints == []


def keep(page, name: str) -> None:
    where = os.environ.get("DPGRAM_SCREENSHOTS")
    if where:
        Path(where).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(where) / f"{name}.png"), full_page=True)


def shown(page) -> dict[str, dict[str, str]]:
    """The table of coefficients as it stands in the page."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#table tr[data-name]")].map((row) =>
             [row.dataset.name, [...row.querySelectorAll("td")].map((cell) => [cell.dataset.column, cell.textContent])])"""
    )
    return {name: dict(cells) for name, cells in rows}


def number(text: str) -> float:
    return float(text.replace("∞", "inf"))


def matches(text: str, value: float) -> bool:
    """Whether ``text`` is ``value`` in five digits."""
    return number(text) == pytest.approx(value, rel=6e-5, abs=1e-12)


def assert_table(page, fit: dpgram.Fit) -> None:
    found, wanted = shown(page), fit.to_dict()["coefficients"]
    assert list(found) == list(wanted)
    ends = [name for name in next(iter(found.values())) if "[" in name or "]" in name]
    for name, row in found.items():
        other = wanted[name]
        assert matches(row["coef"], other["coefficient"]), name
        assert matches(row["std err"], other["se"]), name
        clipping = other["se_clipping"]
        assert matches(row["clipping"], clipping) if clipping else "clipping" not in row, name
        assert matches(row["shrunk"], other["shrunk"]), name
        for end, value in zip(ends, (other["lower"], other["upper"]), strict=True):
            assert ("∞" in row[end]) == (value is None)
            assert value is None or matches(row[end], value), (name, end)
        assert (row["interval by"] == "not identified at this budget") == (not other["identified"])


def fact(page, name: str) -> str:
    return page.locator(f'[data-fact="{name}"]').text_content()


def test_the_page_starts_with_the_model_that_regress_would_fit(open_page, releases):
    for name, target in (("kinds", "age"), ("sketch", "age"), ("origin", "age"), ("tailed", "age")):
        page = open_page(name)
        fit = dpgram.regress(releases[name], target)
        assert_table(page, fit)
        low, high = fit.goodness.r_squared_interval
        assert fact(page, "r-squared") == f"{fit.rsquared:.3f} [{low:.3f}, {high:.3f}]"
        keep(page, f"{name}-desk")


def test_target_and_features_are_chosen_by_clicking(open_page, releases):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    assert_table(page, dpgram.regress(releases["kinds"], "cost"))
    page.click("#none")
    assert_table(page, dpgram.regress(releases["kinds"], "cost", []))
    for name in ("age", "region", "urban"):
        page.locator(".features label", has=page.get_by_text(name, exact=True)).click()
    assert_table(page, dpgram.regress(releases["kinds"], "cost", ["age", "region", "urban"]))
    page.select_option("#confidence", "0.8")
    assert_table(page, dpgram.regress(releases["kinds"], "cost", ["age", "region", "urban"], confidence=0.8))
    page.select_option("#intervals", "fieller")
    assert_table(
        page, dpgram.regress(releases["kinds"], "cost", ["age", "region", "urban"], confidence=0.8, intervals="fieller")
    )
    page.click("#intercept")
    page.select_option("#intervals", "wald")
    fit = dpgram.regress(
        releases["kinds"], "cost", ["age", "region", "urban"], confidence=0.8, intervals="wald", intercept=False
    )
    assert_table(page, fit)
    page.click("#none")
    assert "no feature and no intercept" in page.locator("#facts").text_content()
    page.click("#usual")
    page.fill('.chooser input[type="search"]', "AGE")
    assert page.locator(".features label:visible").count() == 3
    page.click("#only")
    assert list(shown(page)) == ["age", "age_urban", "age_squared"]


def test_everything_can_be_done_with_the_keyboard(open_page, releases):
    """From the top of the page by Tab: the order is the eye's, and focus is seen wherever it is."""
    page = open_page("kinds")
    visited = []
    for _ in range(60):
        page.keyboard.press("Tab")
        visited.append(
            page.evaluate(
                """() => { const one = document.activeElement, box = one.getBoundingClientRect();
                  return [one.id || one.getAttribute("class") || one.tagName, getComputedStyle(one).outlineStyle, box.width > 0]; }"""
            )
        )
        if visited[-1][0] == "heatmap":
            break
    names = [name for name, _, _ in visited]
    for earlier, later in (
        ("theme", "target"),
        ("target", "none"),
        ("none", "confidence"),
        ("confidence", "scale"),
        ("scale", "copy"),
    ):
        assert names.index(earlier) < names.index(later)
    assert names[-1] == "heatmap"
    assert [name for name, outline, wide in visited if outline == "none" or not wide] == []
    page.focus("#target")
    page.keyboard.type("cost")
    page.keyboard.press("Enter")
    assert fact(page, "target") == "cost"
    page.focus("#none")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # "Those found"
    page.keyboard.press("Tab")  # the first feature
    page.keyboard.press("Space")
    assert_table(page, dpgram.regress(releases["kinds"], "cost", ["age"]))
    page.focus("#order")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "order"  # drawing again does not take the focus away
    page.focus(".heatmap")
    page.keyboard.press("ArrowRight")
    found = moments(Evidence.of(releases["kinds"]))
    assert page.locator(".readout").text_content().startswith(f"age and weight: {found.correlation[0, 1]:.3f}, standard error")


def test_every_control_has_a_name(open_page):
    page = open_page("hard")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [role=img], [role=region], [role=group]")].filter((one) =>
             !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_predictions_for_typed_cells_are_those_of_python(open_page, releases):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.fill('[data-cell="age"]', "41.5")
    page.fill('[data-cell="weight"]', "70")
    page.select_option('[data-cell="region"]', label="south")
    page.select_option('[data-cell="urban"]', label="yes")
    page.fill('[data-cell="seen"]', "2021-05-17T13:30")
    fit = dpgram.regress(releases["kinds"], "cost")
    frame = {name: [value] for name, value in CELLS.items()}
    assert number(fact(page, "prediction")) == pytest.approx(float(fit.predict(frame)[0]), rel=6e-6)
    for kind in ("mean", "observation"):
        made = fit.predict(frame, interval=kind)
        low, high = (number(end) for end in re.fullmatch(r"\[(.*), (.*)\]", fact(page, kind)).groups())
        assert low == pytest.approx(float(made["lower"][0]), rel=6e-6)
        assert high == pytest.approx(float(made["upper"][0]), rel=6e-6)
    page.fill('[data-cell="age"]', "")
    assert "missing: counts as 60" in page.locator(".cells").text_content()
    missing = {**frame, "age": [None]}
    assert number(fact(page, "prediction")) == pytest.approx(float(fit.predict(missing)[0]), rel=6e-6)
    page.fill('[data-cell="age"]', "500")
    assert "outside 0 to 120" in page.locator(".cells").text_content()
    assert number(fact(page, "prediction")) == pytest.approx(float(fit.predict({**frame, "age": [120]})[0]), rel=6e-6)


def test_a_coefficient_moves_as_the_others_enter(open_page, folder, releases, monkeypatch):
    """The steps in the table, in the picture, and by the line of Python below them."""
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.click("#none")
    assert "needs a model of two features" in page.locator("#moves").text_content()
    for name in ("age", "region", "urban"):
        page.locator(".features label", has=page.get_by_text(name, exact=True)).click()
    page.select_option("#confidence", "0.8")
    for followed, groups, others in (("urban", ["age", "region"], []), ("region[west]", ["age", "urban"], None)):
        page.select_option("#followed", label=followed)
        levels = [name for name in releases["kinds"].schema.encoded_names if name.startswith("region[") and name != followed]
        features = levels if others is None else others
        moved = dpgram.controls(releases["kinds"], "cost", followed, groups, features=features, confidence=0.8)
        rows = page.evaluate(
            """() => [...document.querySelectorAll("#steps tbody tr")].map((row) => [...row.children].map((one) => one.textContent))"""
        )
        assert rows[0][0] == shortened(", ".join(features) or "no controls")
        assert [row[0] for row in rows[1:]] == [f"+ {name}" for name in groups]
        for row, step in zip(rows, moved.steps, strict=True):
            for text, value in zip(row[1:], (step.coefficient, step.se, step.lower, step.upper), strict=True):
                assert matches(text, value)
        assert page.locator("#moves li.bar svg[role=img]").count() == len(rows)
        monkeypatch.chdir(folder)
        code = page.locator("#moves code").text_content()
        again = eval(code, {"dpgram": dpgram, "release": releases["kinds"]})
        assert [step.coefficient for step in again.steps] == [step.coefficient for step in moved.steps]
    page.locator(".features label", has=page.get_by_text("region", exact=True)).click()  # what is followed has left the model
    assert page.locator("#followed option:checked").text_content() == "age"
    keep(page, "moves")


def shortened(name: str, length: int = 30) -> str:
    return name if len(name) <= length else f"{name[: length - 1 - length // 4]}\u2026{name[-(length // 4) :]}"


def test_steps_beside_simulated_intervals_have_their_own(open_page, releases):
    """Intervals of whole models alone are simulated: the line of Python asks for others, too, and the page says so."""
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.select_option("#intervals", "bootstrap")
    assert "Simulated intervals are there for whole models only" in page.locator("#moves").text_content()
    moved = eval(page.locator("#moves code").text_content(), {"dpgram": dpgram, "release": releases["kinds"]})
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#steps tbody tr")].map((row) => [...row.children].map((one) => one.textContent))"""
    )
    for row, step in zip(rows, moved.steps, strict=True):
        for text, value in zip(row[1:], (step.coefficient, step.se, step.lower, step.upper), strict=True):
            assert matches(text, value)


def test_two_coefficients_are_compared(open_page, releases):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    fit = dpgram.regress(releases["kinds"], "cost")
    for first, second in (("age", "urban"), ("region[west]", "region[south]")):
        page.select_option("#first", label=first)
        page.select_option("#second", label=second)
        said = page.locator("#difference").text_content()
        tested = eval(page.locator("#difference code").text_content(), {"fit": fit})
        assert said.startswith(f"{first} \u2212 {second} = ")
        if not np.isfinite(np.asarray(tested.conf_int())).all():
            assert "not identified at this budget" in said
            continue
        found = [number(text) for text in re.search(r"= (\S+) \(std err (\S+)\).*\[(\S+), (\S+)\]", said).groups()]
        wanted = [np.asarray(tested.effect)[0], np.asarray(tested.sd)[0], *np.asarray(tested.conf_int())[0]]
        assert found == pytest.approx([float(one) for one in wanted], rel=6e-5)
    page.select_option("#first", label="region[south]")
    assert page.locator("#difference").text_content() == "Choose two different coefficients."
    page.click("#none")
    assert "two coefficients or more" in page.locator("#difference-of").text_content()


def test_what_cannot_be_computed_is_said_and_the_rest_is_drawn(open_page):
    """A failure in the steps leaves the model, and the next choice, as they are."""
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    names = page.locator("#table th[scope=row]").all_text_contents()
    page.evaluate("() => { Math.hypot = () => { throw new Error('planted'); }; }")
    page.select_option("#followed", index=1)
    assert page.locator("#moves").text_content().endswith("This could not be computed here (planted). Use Python instead.")
    assert page.locator("#table th[scope=row]").all_text_contents() == names


def test_the_copied_code_gives_the_same_model(open_page, folder, releases, monkeypatch, capsys):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.locator(".features label", has=page.get_by_text("hour", exact=True)).click()
    page.select_option("#confidence", "0.9")
    page.select_option('[data-cell="region"]', label="missing")
    page.click("#copy")
    page.locator("#python [role=status]", has_text="copied").wait_for()  # not by a function: the page's policy forbids eval
    code = page.evaluate("navigator.clipboard.readText()")
    assert code == page.locator("#code").text_content()
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(code.replace("release.json", "kinds.json"), names)
    assert_table(page, names["fit"])
    assert number(fact(page, "prediction")) == pytest.approx(float(names["fit"].predict(names["row"])[0]), rel=6e-6)
    assert "Private linear regression of cost" in capsys.readouterr().out


def test_bootstrap_intervals_are_those_of_the_day_it_was_made(open_page, releases):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.select_option("#intervals", "bootstrap")
    assert_table(page, dpgram.regress(releases["kinds"], "cost", intervals="bootstrap"))
    assert "simulated when this page was made" in page.locator("#notes").text_content()
    page.select_option("#confidence", "0.9")
    assert "Bootstrap intervals are not computed here" in page.locator("#facts").text_content()


def test_what_is_not_identified_is_said_in_words_everywhere(open_page, releases):
    page = open_page("hard")
    page.select_option("#target", label="income")
    fit = dpgram.regress(releases["hard"], "income")
    assert fit.not_identified
    assert_table(page, fit)
    assert page.locator("#picture text.lost").count() == len([name for name in fit.not_identified if name != "(intercept)"])
    assert "Not identified at this budget" in page.locator("#notes").text_content()
    assert "not identified" in fact(page, "counted")


def test_names_that_are_markup_do_nothing(open_page):
    page = open_page("hard")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 2
    page.select_option("#target", label=f"{HOSTILE}[<b>bold</b>]")
    assert fact(page, "target").startswith("</script><script>")
    assert page.locator("#explore b, #schema b").count() == 0


def test_names_that_every_object_has_are_names_like_others(open_page, folder, releases, monkeypatch):
    page = open_page("borrowed")
    page.select_option("#target", label="toString")
    page.fill('[data-cell="__proto__"]', "0.75")
    page.select_option('[data-cell="constructor"]', label="other")
    fit = dpgram.regress(releases["borrowed"], "toString")
    assert_table(page, fit)
    wanted = float(fit.predict({"__proto__": [0.75], "constructor": [7]})[0])
    assert number(fact(page, "prediction")) == pytest.approx(wanted, rel=6e-6)
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(page.locator("#code").text_content().replace("release.json", "borrowed.json"), names)
    assert float(names["fit"].predict(names["row"])[0]) == wanted


def test_the_heat_map_has_the_correlations(open_page, releases):
    page = open_page("kinds")
    found = moments(Evidence.of(releases["kinds"]))
    expected = int(np.sum(np.abs(found.correlation) >= 0.004))
    assert page.locator(".heatmap rect.positive, .heatmap rect.negative").count() == expected
    page.click("#hide")
    assert page.locator(".heatmap rect.positive, .heatmap rect.negative").count() < expected
    box = page.locator(".heatmap").bounding_box()
    page.locator(".heatmap").hover(position={"x": box["width"] - 8, "y": box["height"] - 8})
    last = found.names[-1]
    assert page.locator(".readout").text_content() == f"{last} and {last}: 1.000"
    touched = open_page("kinds", has_touch=True)
    touched.locator(".heatmap").tap(position={"x": box["width"] - 8, "y": box["height"] - 8})
    assert touched.locator(".readout").text_content() == f"{last} and {last}: 1.000"
    page.select_option("#which", "model")
    page.click("#none")
    assert page.locator(".heatmap rect.positive").count() == 1
    assert "need the intercept" in open_page("origin").locator("#heatmap").text_content()


def test_the_heat_map_has_partial_correlations_of_the_model(open_page, releases, folder, monkeypatch):
    page = open_page("kinds")
    page.select_option("#target", label="cost")
    page.click("#none")
    for name in ("age", "region", "urban"):
        page.locator(".features label", has=page.get_by_text(name, exact=True)).click()
    page.select_option("#kind", "partial")
    assert "are computed from others" in page.locator("#heatmap").text_content()
    page.select_option("#which", "model")
    found = dpgram.partial_correlations(releases["kinds"], ["age", "region", "urban", "cost"])
    assert "are computed from others" not in page.locator("#heatmap").text_content()
    lost, pairs = int(np.sum(~found.identified)) // 2, len(found.names) * (len(found.names) - 1) // 2
    crossed = f"{lost} of {pairs} pairs are not identified at this budget, and crossed out." if lost else ""
    given = page.locator("#heatmap .heat > div p").first.text_content()
    assert given == f"Each pair given the other {len(found.names) - 2} columns. {crossed}"
    assert page.locator(".heatmap path.unknown").count() == 2 * lost
    expected = int(np.sum(found.identified & (np.abs(found.estimate) >= 0.004)))
    assert page.locator(".heatmap rect.positive, .heatmap rect.negative").count() == expected
    page.click("#hide")
    apart = np.abs(found.estimate) >= 2 * found.se
    assert (
        page.locator(".heatmap rect.positive, .heatmap rect.negative").count()
        == int(np.sum(apart & found.identified))
        < expected
    )
    page.focus(".heatmap")
    page.keyboard.press("ArrowRight")
    names: dict = {"dpgram": dpgram, "release": dpgram.load(folder / "kinds.json")}
    exec(f"again = {page.locator('#heatmap code').text_content()}", names)
    assert set(names["again"].names) == set(found.names)
    first, second = names["again"].names[:2]
    pair = next(pair for pair in found.pairs if {pair["first"], pair["second"]} == {first, second})
    words = f"{first} and {second}: {pair['partial']:.3f}, standard error {pair['se']:.3f}, 95 % interval ["
    assert page.locator(".readout").text_content().startswith(words)
    page.click("#none")
    assert "needs two columns" in page.locator("#heatmap").text_content()


def test_the_spectrum_shows_the_edge_of_the_noise(open_page, releases):
    page = open_page("hard")
    release = releases["hard"]
    edge = 2 * release.noise.sd_off_diagonal * np.sqrt(len(release.columns))
    above = int(np.sum(np.linalg.eigvalsh(release.gram) > edge))
    assert f"{above} of {len(release.columns)} directions stand out" in page.locator("#edge-words").text_content()
    assert page.locator("circle.stands").count() == above
    assert page.locator("line.edge").count() == 1


@pytest.mark.parametrize("name", ["hard", "kinds", "sketch", "tailed"])
@pytest.mark.parametrize(
    ("form", "viewport", "media"),
    [
        ("desk", DESK, {}),
        ("phone", PHONE, {}),
        ("dark", DESK, {"color_scheme": "dark"}),
        ("phone-dark", PHONE, {"color_scheme": "dark"}),
        ("print", PAPER, {"media": "print"}),
    ],
)
def test_it_fits_and_can_be_read_in_every_form(open_page, name, form, viewport, media):
    page = open_page(name, viewport)
    page.emulate_media(**media)
    keep(page, f"{name}-{form}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    for which, contrast in page.evaluate(CONTRAST):
        assert contrast >= (3 if which == "text.edge" else 4.5), f"{which} has a contrast of {contrast:.2f}"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == ("dark" in form)
    if form == "print":
        assert page.locator(".chooser").is_hidden()
        assert page.locator("nav").is_hidden()
        assert len(page.pdf(format="A4")) > 20_000


def test_names_of_the_picture_do_not_overlap(open_page):
    """Neither each other nor the bars beside them, at any width."""
    for viewport in (DESK, PHONE):
        page = open_page("hard", viewport)
        overlaps = page.evaluate(OVERLAPS)
        assert overlaps == 0


def test_colours_follow_the_button(open_page):
    page = open_page("kinds", color_scheme="dark")
    colours = []
    for _ in range(3):
        colours.append(
            (page.locator("#theme").text_content(), page.evaluate("getComputedStyle(document.body).backgroundColor"))
        )
        page.click("#theme")
    assert [name for name, _ in colours] == ["Colours: system", "Colours: light", "Colours: dark"]
    assert colours[1][1] == "rgb(255, 255, 255)" != colours[0][1] == colours[2][1]
