"""Choices and classifiers of real rows of a small set, and what tables say of what there was no time for."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers import nfs_figure_1, nfs_figure_1_all_sets
from benchmarks.papers.__main__ import show
from benchmarks.papers.choosers import CHOOSERS
from benchmarks.papers.experiment import Settings


@pytest.fixture
def settings(tmp_path) -> Settings:
    """Texts of two kinds."""
    rng = np.random.default_rng(0)
    often = np.exp(rng.normal(0, 1, (2, 60)))
    labels = np.arange(120) % 2
    words = [" ".join(f"w{i:02d}" for i in rng.choice(60, 12, p=often[c] / often[c].sum())) for c in labels]
    frame = pd.DataFrame({"text": words, "label": labels, "split": np.where(np.arange(120) < 80, "train", "test")})
    table = pa.Table.from_pandas(frame).replace_schema_metadata({"classes": json.dumps(["a", "b"])})
    pq.write_table(table, tmp_path / "mpqa.parquet")
    return Settings(tmp_path, quick=True, progress=tmp_path / "progress")


def test_all_ways_choose_and_are_judged_piece_by_piece(settings):
    values = grid.measured(settings, {"mpqa": 2, "amazon": 1}, ["counts"], None)
    found = values["mpqa, counts"]
    assert (found["m"], found["n"], found["judge"], found["splits"]) == (60, 80, 40, 2)
    assert values["amazon, counts"] == {"skipped": "there is no amazon_mds.parquet in the folder that --data names"}
    assert list(found["ways"]) == list(CHOOSERS)
    for way, cells in found["ways"].items():
        assert list(cells) == ["0.001", "0.01", "0.05", "0.1"]
        assert all(len(cell[key]) == 2 for cell in cells.values() for key in ("seconds", "search", "n", *grid.SECOND))
        assert np.mean(cells["0.1"]["logistic"]) > (0 if way == "odds ratio" else 0.6), way
    pieces = {file.name for file in settings.progress.iterdir()}
    assert {"mpqa-counts-1-LASSO.json", "mpqa-counts-1-LASSO-naive-Bayes.json"} <= pieces
    grid.split.cache_clear()
    assert grid.measured(settings, {"mpqa": 2}, ["counts"], None)["mpqa, counts"] == found


def test_shares_that_no_time_was_left_for_are_told_as_such():
    cell = {"seconds": 2.0, "search": 30.0, "n": 7, "naive Bayes": 0.8, "logistic": 0.85}
    facts = {"m": 700, "n": 40, "judge": 10, "alpha": 1.0, "budget": 10.0}
    whole = {way: {str(share): cell for share in grid.SHARES} for way in CHOOSERS}
    few = whole | {"RFE SVM": {str(share): cell for share in grid.SHARES[:2]}}
    splits = [facts | {"ways": whole}, facts | {"ways": few}, {"skipped": "no time"}]
    values = {"toys, counts": grid.together(splits), "toys, tf-idf": grid.together(splits[2:])}
    shown = nfs_figure_1_all_sets.table(values)
    assert "| toys, counts, 700 features, 2 splits |" in shown and "toys, tf-idf: no time" in shown
    assert "| RFE SVM | 2 (30; 7 features) | 2 (30; 7 features) | over 10 min | over 10 min |" in shown
    assert "| RFE SVM | 0.800 | 0.800 |  |  | 0.850 | 0.850 |  |  |  |  |  |  |" in shown
    assert "over 10 min" in grid.at_one_share(values, 0.05) and "over" not in grid.at_one_share(values, 0.01)
    assert len(nfs_figure_1_all_sets.draw(values).axes) == 4


@pytest.mark.parametrize("module", [nfs_figure_1, nfs_figure_1_all_sets])
def test_without_any_set_a_table_says_so_and_nothing_is_drawn(module, tmp_path):
    values = {"imdb, counts": {"skipped": "there is no imdb.parquet"}}
    shown = show("a", module, {"values": values, "title": "b", "command": "c"}, tmp_path)
    assert "imdb, counts: there is no imdb.parquet" in shown
    assert [file.name for file in tmp_path.iterdir()] == ["a.md"]
