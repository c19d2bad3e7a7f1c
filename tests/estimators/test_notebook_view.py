"""What estimators, paths, datasets and evaluations show of themselves in notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs

EVIL = "<script>alert(1)</script>"


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.poisson(rng.gamma(0.5, size=(2, 12))[y])
    return pd.DataFrame(X, columns=[EVIL, *(f"word{i}" for i in range(11))]), np.array(["ham", EVIL])[y]


def test_a_fitted_estimator_shows_its_choice_above_its_parameters() -> None:
    X, y = data()
    model = nfs.SparseMultinomialNB(k="all")
    before = model._repr_mimebundle_()["text/html"]
    assert "nfs-fragment" not in before
    after = model.fit(X, y)._repr_mimebundle_()["text/html"]
    assert "12 of 12 features; all features" in after and "sk-top-container" in after
    assert EVIL not in after and "&lt;script&gt;" in after
    for top in model.top_features(5).values():
        for _, weight in top:
            assert f"{weight:+.3f}" in after


@pytest.mark.filterwarnings("ignore:there are 100 classes:nfs_dask.errors.DataWarning")
def test_only_some_of_many_classes_are_shown() -> None:
    y = np.arange(200) % 100
    X = np.random.default_rng(0).poisson(1, size=(200, 10))
    shown = nfs.SparseCentroid(k=5).fit(X, y)._repr_mimebundle_()["text/html"]
    assert "of 6 of 100 classes" in shown and shown.index("nfs-fragment") < shown.index("sk-top-container")


def test_tables_datasets_and_evaluations(tmp_path: Any) -> None:
    X, y = data()
    store = nfs.ingest(X, tmp_path / "x.zarr", labels=y)
    path, model = nfs.path(store, "multinomial", [2, 5]), nfs.SparseMultinomialNB(k=5).fit(store)
    table = nfs.cross_validate(store, method="multinomial", ks=[2, 5], folds=3)
    found = nfs.evaluate(model, store)
    for shown, said in (
        (path, [f"{path.value[0]:,.3f}", f"{path.bound[1]:,.3f}"]),
        (table, [f"{table.mean()[0, 0]:.4f}"]),
        (store, ["60", "12", "count", str(store.fingerprint)]),
        (found, [f"accuracy {found.accuracy:.4f}", f"{found.precision[0]:.4f}", f"{found.recall[1]:.4f}"]),
    ):
        fragment = shown._repr_html_()
        assert all(one in fragment for one in said) and EVIL not in fragment
        assert fragment.count("<table>") == 1 and "<caption>" in fragment
