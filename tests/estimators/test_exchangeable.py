"""`ties_` are the features that can be exchanged for a chosen one: enumeration finds the same."""

from __future__ import annotations

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.errors import InputError

rng = np.random.default_rng(2)
BASE = rng.poisson(1.0, (30, 4))
X = np.hstack([BASE, BASE[:, [1, 2]], BASE[:, [1]]])  # columns 1, 4 and 6 are equal, and so are 2 and 5
Y = np.arange(30) % 3
MADE = {
    "bernoulli": lambda k, **more: nfs.SparseBernoulliNB(k, binarize=0, **more),
    "l2": lambda k, **more: nfs.SparseCentroid(k, **more),
    "mahalanobis": lambda k, **more: nfs.SparseCentroid(k, metric="mahalanobis", **more),
    "l1": lambda k, **more: nfs.SparseCentroid(k, metric="manhattan", **more),
    "multinomial": lambda k, **more: nfs.SparseMultinomialNB(k, **more),
}
PARTS = pytest.mark.parametrize("method", MADE)


def exchangeable(make, model, k, always=()):
    """Features outside that can take the place of a free one at the same objective, by refitting to each choice."""
    support = model.get_support(indices=True).tolist()
    found = set()
    for outside in set(range(X.shape[1])) - set(support):
        for inside in set(support) - set(always):
            wanted = sorted({*support, outside} - {inside})
            if make(k, always=wanted).fit(X, Y).objective_ == pytest.approx(model.objective_, rel=1e-12):
                found.add(outside)
    return sorted(found)


@PARTS
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_ties_are_what_can_be_exchanged(method, k):
    model = MADE[method](k).fit(X, Y)
    assert model.ties_.tolist() == exchangeable(MADE[method], model, k)


@PARTS
def test_features_that_are_wanted_are_exchanged_for_none(method):
    model = MADE[method](3, always=[1, 2]).fit(X, Y)
    assert model.ties_.tolist() == exchangeable(MADE[method], model, 3, always=[1, 2])
    assert MADE[method](2, always=[1, 2]).fit(X, Y).ties_.tolist() == []


@PARTS
def test_a_model_from_a_file_does_not_know(method, tmp_path):
    MADE[method](3).fit(X, Y).save(tmp_path / "m")
    with pytest.raises(InputError, match="holds no sums of all of them"):
        _ = nfs.load_model(tmp_path / "m").ties_
