"""Renew the pictures of the README and the guides: coefficients, label, models and graph from `dpgram demo`, and the figure of a plan.

Needs the extras plot and browser, and a Chromium on the path:  python tools/make_pictures.py"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from dpgram.cli import app
from dpgram.demo import script

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FEATURES = ("hour", "month", "temp", "wind_speed", "visib", "carrier", "origin")
PLAN = (
    "--table-rows 300000 --epsilon 1 --delta 1e-7 --target arr_delay --features dep_delay,month,carrier"  # as in docs/plan.md
)
FIT = "--target arr_delay --features dep_delay,distance,carrier"  # as in docs/analyst.md
GRAPH = "--columns arr_delay,dep_delay,distance,air_time,month,hour,temp,visib,wind_speed,seats,plane_year,origin"
LABEL, MODELS = {"width": 1160, "height": 1000}, {"width": 1180, "height": 980}


def main() -> None:
    """Run the demo in an empty folder and take its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        script.run(Path(folder))
        shutil.copy(Path(folder) / "coefficients.png", IMAGES / "coefficients.png")
        app.run(["plan", "--schema", str(script.SCHEMA), *PLAN.split(), "--plot", str(IMAGES / "plan.png"), "--overwrite"])
        app.run(["regress", str(Path(folder) / "release.json"), *FIT.split(), "--plot", str(IMAGES / "fit.png"), "--overwrite"])
        app.run(
            ["graph", str(Path(folder) / "release.json"), *GRAPH.split(), "--plot", str(IMAGES / "graph.png"), "--overwrite"]
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport=LABEL, color_scheme="light")
            page.goto((Path(folder) / "report.html").as_uri())
            page.screenshot(path=IMAGES / "label.png")
            choose_model(page)
            page.screenshot(path=IMAGES / "report.png")
            browser.close()


def choose_model(page: Page) -> None:
    """Departure delays on weather, time, carrier and airport."""
    page.set_viewport_size(MODELS)
    page.select_option("#target", label="dep_delay")
    page.get_by_role("button", name="None", exact=True).click()
    for name in FEATURES:
        page.locator(".features label", has=page.get_by_text(name, exact=True)).click()
    page.locator("nav a", has_text="Models").click()


if __name__ == "__main__":
    main()
