"""The demo does the main job on the bundled table, and its pieces are what they say."""

import matplotlib.image
import numpy as np
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.demo import script
from dpgram.errors import MissingExtraError, OutputError


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return script.run(tmp_path_factory.mktemp("demo") / "new" / "folder")


def test_one_release_and_three_different_regressions(result):
    assert result.release.private
    assert len({panel.target for panel in result.panels}) == 3
    assert len({panel.names for panel in result.panels}) == 3
    assert dpgram.load(result.written[0][0]) == result.release


def test_private_coefficients_lie_near_the_others(result):
    """Within 5 standard errors: a wrong unit or column would be off by hundreds."""
    for panel in result.panels:
        assert (np.abs(panel.private - panel.non_private) < 5 * panel.se).all()


def test_intervals_hold_the_others(result):
    """Of 30 intervals at most 6 miss: a false alarm in some thousand runs where coverage is 95 %. Without what clipping leaves open, a
    third of those of dep_delay would miss in every release."""
    missed = sum(int(((p.non_private < p.lower) | (p.non_private > p.upper)).sum()) for p in result.panels)
    assert missed <= 6


def test_the_figure_is_a_picture(result):
    picture = matplotlib.image.imread(result.written[1][0])
    assert picture.shape[0] > 400
    assert picture.shape[1] > 1000
    assert picture.std() > 0.05


def test_the_command_prints_tables_and_says_what_it_wrote(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    for word in ("Regression of arr_delay", "Regression of air_time", "Regression of dep_delay", "private", "non-private"):
        assert word in out
    assert f"wrote {tmp_path / 'demo' / 'release.json'}" in err
    assert f"wrote {tmp_path / 'demo' / 'coefficients.png'}" in err
    assert "these data are public" in err
    assert f"wrote {tmp_path / 'demo' / 'report.html'}" in err
    assert "Flights from New York in 2013" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")


def test_the_bundled_table_is_what_its_provenance_says():
    file = pq.ParquetFile(script.TABLE)
    assert file.metadata.num_rows == 327_346 >= 100_000
    assert file.metadata.num_columns == 13 >= 8
    assert script.TABLE.stat().st_size < 5_000_000
    assert "public domain" in (script.HERE / "PROVENANCE.md").read_text()
    assert set(dpgram.Schema.load(script.SCHEMA).names) == set(file.schema_arrow.names)


def test_without_matplotlib_it_says_what_to_install_and_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("dpgram.report.figures.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpgram\[plot\]'"):
        script.run(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be created"):
        script.run(tmp_path / "file" / "demo")


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "precious.json").write_text("{}")
    (tmp_path / "release.json").symlink_to("precious.json")
    with pytest.raises(OutputError, match="release.json is a link, and the demo would replace"):
        script.run(tmp_path)
    assert (tmp_path / "precious.json").read_text() == "{}"
