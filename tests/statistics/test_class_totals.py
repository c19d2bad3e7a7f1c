"""Panels give the same model as one piece: to the bit for whole numbers, to the last digits for reals."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.arrays.block import Array
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.dataset import Dataset
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError, PlanError, StoreError
from nfs_dask.estimators.scikit_learn import SparseBernoulliNB, SparseMultinomialNB
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.solvers.naive_bayes import multinomial, panel_columns
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.statistics.class_totals import ArrayTotals, HeldTotals, PanelTotals
from nfs_dask.statistics.panels import HeldPanels, Panels


class Cut(Panels):
    """A table cut into panels."""

    def __init__(self, table: Array, bounds: tuple[int, ...]) -> None:
        self.table, self.bounds, self.totals = table, bounds, {}

    def arrays(self, panel: int) -> dict[str, Array]:
        return {"sums": self.table[:, self.bounds[panel] : self.bounds[panel + 1]]}


def panelled(table: Array, cuts: set[int]) -> PanelTotals:
    bounds = (0, *sorted(c for c in cuts if 0 < c < table.shape[1]), table.shape[1])
    return PanelTotals(Cut(table, bounds), lambda arrays: arrays["sums"])


class Narrow(Cut):
    """The same, where each panel has a type of its own: that of a byte, of whole numbers, or of reals."""

    def stored(self, panel: int) -> dict[str, Array]:
        part = self.arrays(panel)["sums"]
        return {"sums": part.astype(np.uint8 if part.dtype.kind != "f" and part.max(initial=0) < 256 else part.dtype)}


@given(st.integers(0, 10**6), st.sampled_from([3, 300, 10**6]), st.sets(st.integers(1, 29), max_size=6))
def test_totals_held_in_panels_are_those_in_one_piece(seed: int, most: int, cuts: set[int]) -> None:
    table = np.random.default_rng(seed).integers(0, most, (3, 30)) // np.arange(1, 31)
    panels = HeldPanels(Narrow(table, (0, *sorted(cuts), 30)))
    totals, one = HeldTotals(panels, lambda arrays: arrays["sums"]), ArrayTotals(table)
    wanted = np.array([29, 0, 7, 7, 3])
    for mine, other in ((totals, one), (totals.of(np.array([0, 2])), one.of(np.array([0, 2])))):
        assert mine.n_features == 30
        (cells, where), (known, listed) = mine.grouped(), other.grouped()
        for name in ("totals", "sizes", "firsts"):
            np.testing.assert_array_equal(getattr(cells, name), getattr(known, name))
        assert where is not None and listed is not None
        np.testing.assert_array_equal(where.columns_of(np.arange(30)), listed.columns_of(np.arange(30)))
        np.testing.assert_array_equal(mine.at(wanted), other.at(wanted))
        assert mine.at(wanted).dtype == np.int64
        np.testing.assert_array_equal(mine.array, other.array)
    np.testing.assert_array_equal(panels.state().arrays["sums"], table)


def test_models_have_the_same_bits_from_panels_that_are_held() -> None:
    """Sums of smoothed counts are rounded, so that their order matters."""
    dataset = Dataset(GeneratedCorpus(400, 300, 2, words_per_document=20))
    for made in (SparseMultinomialNB, partial(SparseBernoulliNB, binarize=0.0)):
        one, many = (made(k=100, alpha=0.1, engine=SerialEngine(panels=panels)).fit(dataset) for panels in (None, 5))
        assert len(many.provenance_["plan"]["task_nbytes"]) == 2  # it spooled, and folded panels
        np.testing.assert_array_equal(one.feature_log_prob_, many.feature_log_prob_)
        np.testing.assert_array_equal(one.feature_count_, many.feature_count_)
        np.testing.assert_array_equal(one.scores_, many.scores_)


def test_reals_held_in_panels_are_not_grouped() -> None:
    table = np.random.default_rng(0).random((2, 9))
    totals = HeldTotals(HeldPanels(Narrow(table, (0, 4, 9))), lambda arrays: arrays["sums"])
    cells, where = totals.grouped()
    assert where is None
    np.testing.assert_array_equal(cells.totals, table)
    np.testing.assert_array_equal(totals.at(np.array([8, 1])), table[:, [8, 1]])


def test_a_panel_that_cannot_be_read_is_told_when_it_is_asked_for() -> None:
    class Damaged(Narrow):
        def stored(self, panel: int) -> dict[str, Array]:
            if panel == 1:
                raise StoreError("panel-00001 is damaged")
            return super().stored(panel)

    panels = HeldPanels(Damaged(np.zeros((2, 9), np.int64), (0, 4, 9)))
    panels.stored(0)
    with pytest.raises(StoreError, match="panel-00001"):
        panels.state()


@given(st.data())
def test_every_cut_gives_the_same_model(data: st.DataObject) -> None:
    n_classes = data.draw(st.integers(2, 3))
    m = data.draw(st.integers(2, 14))
    rows = st.lists(st.integers(0, data.draw(st.sampled_from([1, 3, 40]))), min_size=m, max_size=m)
    table = np.array([data.draw(rows) for _ in range(n_classes)], np.int64)
    totals = panelled(table, data.draw(st.sets(st.integers(1, m), max_size=5)))
    k = data.draw(st.integers(1, m))
    always = np.array(data.draw(st.lists(st.integers(0, m - 1), max_size=min(2, k), unique=True)), np.int64)
    settings = Settings(k=k, alpha=data.draw(st.sampled_from([0.0, 0.1, 1.0])), always=always if len(always) else None)
    documents = table.max(axis=1).astype(float) + 1
    for fit in (fit_multinomial, fit_bernoulli):
        one = fit(Counts(np.arange(n_classes), documents, ArrayTotals(table)), settings)
        many = fit(Counts(np.arange(n_classes), documents, totals), settings)
        np.testing.assert_array_equal(one.support, many.support)
        np.testing.assert_array_equal(one.present, many.present)
        assert one.evidence.objective == many.evidence.objective
        assert one.evidence.gap == many.evidence.gap


def fitted_both_ways(
    made: Any, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> tuple[Any, Any, list[Any]]:
    """A fit in memory, one over panels, and whatever the second one loaded whole."""
    whole = made(k=40, engine=SerialEngine(), **more).fit(dataset)
    loads: list[Any] = []
    monkeypatch.setattr("nfs_dask.estimators.classifier.MOST_COUNTS", 1000)
    monkeypatch.setattr(Panels, "state", lambda self: loads.append(self))
    return whole, made(k=40, engine=SerialEngine(panels=7), **more).fit(dataset), loads


@pytest.mark.parametrize("made", [SparseMultinomialNB, SparseBernoulliNB])
def test_wide_counts_stay_in_panels(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset(GeneratedCorpus(2000, 3000, 2, block_rows=500))
    more: dict[str, Any] = {"binarize": 0.0} if made is SparseBernoulliNB else {}
    whole, wide, loads = fitted_both_ways(made, dataset, monkeypatch, **more)
    np.testing.assert_array_equal(wide.get_support(indices=True), whole.get_support(indices=True))
    np.testing.assert_array_equal(wide.model_.present, whole.model_.present)
    assert wide.upper_bound_ == whole.upper_bound_
    assert wide.provenance_["rows"] == 2000
    assert not loads
    with pytest.raises(InputError, match="holds no sums"):
        wide.forget(dataset)
    with pytest.raises(PlanError, match="too many to hold"):
        made(k=40, **more).partial_fit(dataset, classes=["astronomy", "cooking"])


@given(st.data())
def test_every_cut_of_reals_gives_as_good_a_model(data: st.DataObject) -> None:
    """Supports may differ among equals only: they are compared through what they gain."""
    n_classes = data.draw(st.integers(2, 3))
    m = data.draw(st.integers(2, 14))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.5, 7.25]) | st.floats(0.01, 40.0)
    columns = data.draw(st.lists(st.tuples(*[values] * n_classes), min_size=m, max_size=m))
    columns += data.draw(st.lists(st.sampled_from(columns), max_size=6))  # equal ones
    table = np.array(columns).T
    m = table.shape[1]
    totals, others = (panelled(table, data.draw(st.sets(st.integers(1, m), max_size=5))) for _ in range(2))
    k = data.draw(st.integers(1, m))
    always = np.array(data.draw(st.lists(st.integers(0, m - 1), max_size=min(2, k), unique=True)), np.int64)
    settings = Settings(k=k, alpha=data.draw(st.sampled_from([0.0, 0.1, 1.0])), always=always if len(always) else None)
    documents = table.max(axis=1) + 1
    for fit in (fit_multinomial, fit_bernoulli):
        one = fit(Counts(np.arange(n_classes), documents, ArrayTotals(table)), settings)
        many = fit(Counts(np.arange(n_classes), documents, totals), settings)
        again = fit(Counts(np.arange(n_classes), documents, others), settings)
        np.testing.assert_array_equal(many.support, again.support)
        assert (many.evidence.objective, many.evidence.gap) == (again.evidence.objective, again.evidence.gap)
        assert_as_good(many, one, table.sum() + m * n_classes)
        assert len(many.support) == len(one.support)
        assert np.isin(always, many.support).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("k", [3, 60, 2000])
def test_wide_reals_choose_the_same_features(n_classes: int, alpha: float, k: int) -> None:
    rng = np.random.default_rng(k)
    table = rng.gamma(0.3, 10, (n_classes, 2000)) * (rng.random((n_classes, 2000)) < 0.6)
    settings = Settings(k=k, alpha=alpha, always=np.array([5, 1500]))
    documents = table.max(axis=1) + 1
    for fit in (fit_multinomial, fit_bernoulli):
        one = fit(Counts(np.arange(n_classes), documents, ArrayTotals(table)), settings)
        many = fit(Counts(np.arange(n_classes), documents, panelled(table, {1, 300, 301, 1100})), settings)
        assert_as_good(many, one, table.sum() + table.size)
        np.testing.assert_array_equal(many.support, one.support)
        np.testing.assert_allclose(many.present, one.present, rtol=1e-12)


def assert_as_good(model: NaiveBayesModel, other: NaiveBayesModel, scale: float) -> None:
    """The same objective and bound, to the last digits that sums of so much have."""
    assert model.evidence.objective == pytest.approx(other.evidence.objective, rel=1e-12, abs=1e-12 * scale)
    assert model.evidence.gap == pytest.approx(other.evidence.gap, abs=1e-12 * scale)


@pytest.mark.parametrize("fit", [fit_multinomial, fit_bernoulli])
def test_features_absent_from_the_data_are_not_chosen_for_being_smoothed(fit: Any) -> None:
    table = np.zeros((2, 9))
    table[:, [1, 4, 7]] = [[0.5, 9.5, 2.0], [0.25, 1.5, 30.5]]
    counts = Counts(np.arange(2), np.array([10.0, 90.0]), panelled(table, {2, 5}))
    assert fit(counts, Settings(k=5)).support.tolist() == [1, 4, 7]
    assert fit(counts, Settings(k=5, always=np.array([8]))).support.tolist() == [1, 4, 7, 8]
    assert fit(counts, Settings(k=9)).support.tolist() == list(range(9))


def test_ties_of_reals_are_counted_beyond_those_that_are_held() -> None:
    """A hundred equal features in each direction, of which the best k take some of both."""
    table = np.tile(np.array([[1.5, 0.5], [0.5, 1.5]]), 100)
    whole = multinomial.solve(multinomial.count(table), 6)
    totals = panelled(table, {30, 31, 120})
    solution = panel_columns.solve(totals, panel_columns.TotalsSums.of(totals, 0.0), 6)
    assert solution.ties == whole.ties == 200
    assert solution.value == pytest.approx(whole.value, rel=1e-12)
    assert solution.gap == pytest.approx(whole.gap, abs=1e-12)


@pytest.mark.parametrize("fit", [fit_multinomial, fit_bernoulli])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_reals_are_never_put_together(fit: Any, n_classes: int) -> None:
    """Of a table that is made as it is read, no more than a panel, and what the answer holds, is in memory."""
    wide, panel = 400_000, 20_000
    made = Made(n_classes, wide, panel)
    totals = PanelTotals(made, lambda arrays: arrays["sums"])
    counts = Counts(np.arange(n_classes), np.full(n_classes, 100.0), totals)
    fit(counts, Settings(k=50))  # compiles
    tracemalloc.start()
    fit(counts, Settings(k=50))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_classes * wide * 8 / 2
    assert made.widest == panel


class Made(Panels):
    """A table of reals that exists nowhere as a whole."""

    def __init__(self, n_classes: int, m: int, width: int) -> None:
        self.bounds, self.totals, self.n_classes, self.widest = tuple(range(0, m + 1, width)), {}, n_classes, 0

    def arrays(self, panel: int) -> dict[str, Array]:
        width = self.bounds[panel + 1] - self.bounds[panel]
        self.widest = max(self.widest, width)
        return {"sums": np.random.default_rng(panel).gamma(0.3, 10, (self.n_classes, width))}


@pytest.mark.parametrize("made", [SparseMultinomialNB, SparseBernoulliNB])
def test_wide_reals_stay_in_panels(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = sparse.random(300, 500, 0.1, "csr", random_state=3)
    dataset = Dataset(MatrixSource(X, rng.integers(0, 2, 300), rng.random(300)))
    more: dict[str, Any] = {"binarize": 0.0} if made is SparseBernoulliNB else {}
    whole, wide, loads = fitted_both_ways(made, dataset, monkeypatch, **more)
    np.testing.assert_array_equal(wide.get_support(indices=True), whole.get_support(indices=True))
    np.testing.assert_allclose(wide.model_.present, whole.model_.present, rtol=1e-12)
    assert wide.upper_bound_ == pytest.approx(whole.upper_bound_, rel=1e-12)
    assert not loads


def test_reals_beyond_floats_are_refused() -> None:
    totals = panelled(np.full((2, 4), 1e308), {2})
    with pytest.raises(InputError, match="more than a float holds"):
        fit_multinomial(Counts(np.arange(2), np.ones(2), totals), Settings(k=2))


def test_paths_of_reals_in_panels_are_refused() -> None:
    with pytest.raises(PlanError, match="fit an estimator for each k"):
        panelled(np.ones((2, 4)), {2}).grouped()
