"""The full run: all settings have a name of their own, and the page takes what was found."""

from __future__ import annotations

import json

from experiments.audits.study import everything
from experiments.audits.table import update

START, END = "<!-- audits: made by `make audit` -->\n", "<!-- end of audits -->"


def test_every_setting_has_a_name_of_its_own():
    names = [setting.name for setting in everything()]
    assert len(set(names)) == len(names)
    printed = {setting.mechanism for setting in everything() if setting.calibration == "paper"}
    assert {setting.mechanism for setting in everything()} - printed == {"whitened-noise", "looks"}


def test_the_page_takes_the_best_pair_of_each_setting(tmp_path):
    numbers = {"proven_epsilon": 1.0, "pair_epsilon": 0.9, "shaped_epsilon": 0.8, "broken": False}
    audits = [{"pair": f"pair {place}", "counted_epsilon": 0.1 * place, **numbers} for place in (5, 7, 6)]
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    results.write_text(json.dumps({f"{everything()[0].name}, 1000 draws": audits}), encoding="utf-8")
    page.write_text(f"before\n{START}old\n{END}\nafter\n", encoding="utf-8")
    update(page, results, 1000)
    text = page.read_text(encoding="utf-8")
    assert "| gaussian-noise, exact | replace | pair 7 | 1.000 | 0.900 | 0.700 | 0.800 | 70% | nothing |" in text
    assert text.startswith("before\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
