"""Models of many k from one pass are those that fits give."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.selection.make_path import models_of_path, tops_of_path

ESTIMATORS = {
    "multinomial": nfs.SparseMultinomialNB,
    "bernoulli": lambda k, **more: nfs.SparseBernoulliNB(k, binarize=0.0, **more),
    "l2": nfs.SparseCentroid,
    "mahalanobis": lambda k: nfs.SparseCentroid(k, metric="mahalanobis"),
    "l1": lambda k: nfs.SparseCentroid(k, metric="manhattan"),
}
KS = [2, 5, 11]


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_are_those_of_fits(method: str, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    y = np.arange(90) % n_classes
    X = rng.poisson(rng.gamma(0.5, size=(n_classes, 20))[y])
    options = {"alpha": 0.3} if method in ("multinomial", "bernoulli") else {}
    binary = {"binarize": 0.0} if method == "bernoulli" else {}
    path = nfs.path(X, y, method=method, ks=KS, **options, **binary)
    models, tops = models_of_path(path, KS), tops_of_path(path, KS, 4)
    assert models is not None and tops is not None
    for k, model, top in zip(KS, models, tops, strict=True):
        fitted: Any = ESTIMATORS[method](k, **options).fit(X, y)
        assert model.support.tolist() == fitted.model_.support.tolist()
        np.testing.assert_allclose(model.margins(), fitted.model_.margins(), rtol=1e-9)
        assert {label: [name for name, _ in pairs] for label, pairs in top.items()} == {
            label: [name for name, _ in pairs] for label, pairs in fitted.top_features(4).items()
        }


def test_there_are_none_where_the_data_were_left_behind(tmp_path: Any) -> None:
    X, y = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]], ["tea", "tea", "coffee", "coffee"]
    path = pickle.loads(pickle.dumps(nfs.path(X, y, method="multinomial")))
    assert models_of_path(path, [2]) is None and tops_of_path(path, [2], 3) is None


def test_what_was_counted_is_not_counted_again(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    store = nfs.ingest(rng.poisson(rng.gamma(0.5, size=(2, 20))[y]), tmp_path / "x.zarr", labels=y, names=None)
    path = nfs.path(store, "multinomial", KS)
    store.source.blocks = None  # type: ignore[assignment]  # whoever reads fails
    assert [len(model.support) for model in models_of_path(path, KS) or ()] == KS
