import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.papers import sc_figure_1, sc_figure_2, sc_generated
from benchmarks.papers.experiment import Settings, there


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Genes of two tissues, and texts of two kinds; no tweets, and no set of Chin."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 200)) + 2 * np.outer(y, np.arange(200) < 10)
    np.savez(tmp_path / "west.npz", X=X, y=y, classes=["a", "b"])
    often = np.exp(rng.normal(0, 1, (2, 100)))
    words = [
        " ".join(f"w{i:03d}" for i in rng.choice(100, 12, p=often[c] / often[c].sum())) for c in np.arange(200) % 2
    ]
    frame = pd.DataFrame({"text": words, "label": np.arange(200) % 2, "split": "train"})
    for name in ("mpqa", "sst2_phrases"):
        table = pa.Table.from_pandas(frame).replace_schema_metadata({"classes": json.dumps(["a", "b"])})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    shares = (0.02, 0.1)
    monkeypatch.setattr(sc_figure_1, "SHARES", dict.fromkeys(sc_figure_1.FILES, shares))
    monkeypatch.setattr(sc_figure_2, "SHARES", shares)
    monkeypatch.setattr(sc_figure_1, "QUICK_SPLITS", dict.fromkeys(sc_figure_1.FILES, 1))
    sc_figure_1.counted.cache_clear()
    sc_figure_2.measured.cache_clear()
    return Settings(tmp_path, quick=True)


def test_least_angles_find_as_many_features_as_asked():
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 100)) + 3 * np.outer(y, np.arange(100) < 2)
    few, more = sc_figure_2.lasso_path(X, y, (2, 12))
    assert few.support.tolist() == [0, 1]
    assert len(more.support) == 12 and {0, 1} < {*more.support.tolist()}


def test_genes_that_differ_are_chosen_by_all_ways_and_missing_sets_are_told(settings):
    values = sc_figure_2.run(settings)
    assert list(there(values)) == ["west"]
    for way, shares in values["west"]["ways"].items():
        assert np.mean(shares["0.1"]["accuracy"]) > 0.8, way
    shown = sc_figure_2.table(values)
    assert "Chin et al. 2006 (118 x 22,215) is not to be had" in shown and "l1 centers alone" in shown
    assert shown.count("not to be had") == 1
    assert len(sc_figure_2.draw(values).axes) == 2


def test_words_are_chosen_by_all_ways(settings):
    values = sc_figure_1.run(settings)
    assert list(there(values)) == ["MPQA", "SST"]
    found = values["MPQA"]["ways"]
    for way, shares in found.items():
        least = 0.5 if way == "l2 centers, variances" else 0.65
        assert np.mean(shares["0.1"]["accuracy"]) > least, way
    assert found[sc_figure_1.OURS]["0.1"]["accuracy"] == found["Mahalanobis centers"]["0.1"]["accuracy"]
    assert "MPQA, 1 splits: accuracy" in sc_figure_1.table(values)
    assert "LASSO" in found and "LASSO" not in values["SST"]["ways"]
    assert len(sc_figure_1.draw(values).axes) == 4


def test_generated_tweets_have_their_size_and_each_way_its_seconds():
    X, y = sc_generated.tweets(500, 80, 0)
    assert X.shape == (500, 80) and X.sum() == 500 * sc_generated.WORDS_EACH and set(y) == {0, 1}
    found = sc_generated.timed(sc_figure_1.FAST, {"counts": X, "divided": X.astype(float)}, y, (0.05, 0.1))
    assert set(found) == set(sc_figure_1.FAST)
    assert all(cell["search"] >= cell["seconds"] > 0 for cells in found.values() for cell in cells.values())
