"""Panels give the same model as one piece, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.block import Array
from nfs_dask.corpus import GeneratedCorpus
from nfs_dask.dataset import Dataset
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError, PlanError
from nfs_dask.estimators.bernoulli import SparseBernoulliNB
from nfs_dask.estimators.multinomial import SparseMultinomialNB
from nfs_dask.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.statistics.panels import Panels
from nfs_dask.totals import ArrayTotals, PanelTotals


class Cut(Panels):
    """A table cut into panels."""

    def __init__(self, table: Array, bounds: tuple[int, ...]) -> None:
        self.table, self.bounds, self.totals = table, bounds, {}

    def arrays(self, panel: int) -> dict[str, Array]:
        return {"sums": self.table[:, self.bounds[panel] : self.bounds[panel + 1]]}


def panelled(table: Array, cuts: set[int]) -> PanelTotals:
    bounds = (0, *sorted(c for c in cuts if 0 < c < table.shape[1]), table.shape[1])
    return PanelTotals(Cut(table, bounds), lambda arrays: arrays["sums"])


@given(st.data())
def test_every_cut_gives_the_same_model(data: st.DataObject) -> None:
    n_classes = data.draw(st.integers(2, 3))
    m = data.draw(st.integers(2, 14))
    rows = st.lists(st.integers(0, data.draw(st.sampled_from([1, 3, 40]))), min_size=m, max_size=m)
    table = np.array([data.draw(rows) for _ in range(n_classes)], np.int64)
    totals = panelled(table, data.draw(st.sets(st.integers(1, m), max_size=5)))
    k = data.draw(st.integers(1, m))
    always = np.array(data.draw(st.lists(st.integers(0, m - 1), max_size=min(2, k), unique=True)), np.int64)
    settings = Settings(k=k, alpha=data.draw(st.sampled_from([0.0, 1.0])), always=always if len(always) else None)
    documents = table.max(axis=1).astype(float) + 1
    for fit in (fit_multinomial, fit_bernoulli):
        one = fit(Counts(np.arange(n_classes), documents, ArrayTotals(table)), settings)
        many = fit(Counts(np.arange(n_classes), documents, totals), settings)
        np.testing.assert_array_equal(one.support, many.support)
        np.testing.assert_array_equal(one.present, many.present)
        assert one.evidence.objective == many.evidence.objective
        assert one.evidence.gap == many.evidence.gap


@pytest.mark.parametrize("made", [SparseMultinomialNB, SparseBernoulliNB])
def test_wide_counts_stay_in_panels(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset(GeneratedCorpus(2000, 3000, 2, block_rows=500))
    more: dict[str, Any] = {"binarize": 0.0} if made is SparseBernoulliNB else {}
    whole = made(k=40, engine=SerialEngine(), **more).fit(dataset)
    monkeypatch.setattr("nfs_dask.estimators.base.MOST_COUNTS", 1000)
    loads = []
    monkeypatch.setattr(Panels, "state", lambda self: loads.append(self))
    wide = made(k=40, engine=SerialEngine(panels=7), **more).fit(dataset)
    np.testing.assert_array_equal(wide.get_support(indices=True), whole.get_support(indices=True))
    np.testing.assert_array_equal(wide.model_.present, whole.model_.present)
    assert wide.upper_bound_ == whole.upper_bound_
    assert wide.provenance_["rows"] == 2000
    assert not loads
    with pytest.raises(InputError, match="holds no counts"):
        wide.forget(dataset)
    with pytest.raises(PlanError, match="too many to hold"):
        made(k=40, **more).partial_fit(dataset, classes=["astronomy", "cooking"])


def test_reals_in_panels_are_refused() -> None:
    totals = panelled(np.ones((2, 4)), {2})
    with pytest.raises(PlanError, match="whole numbers"):
        fit_multinomial(Counts(np.arange(2), np.ones(2), totals), Settings(k=2))
