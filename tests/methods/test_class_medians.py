"""Medians of classes are those of fractions, to the last bit, wherever the data are and whoever reads them."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.methods import memory_budget
from nfs_dask.methods.cached_medians import ClassMedians
from nfs_dask.methods.class_medians import MedianResult, class_medians, median_plans
from nfs_dask.methods.memory_budget import MemoryBudget
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.grids import each_once

N, M = 400, 6
SMALL = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=200)


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little memory that all passes are needed: few rows in samples, few edges, few values, blocks of few rows."""
    monkeypatch.setattr(memory_budget, "MOST_ROWS", 12)
    monkeypatch.setattr(memory_budget, "MOST_ALL", 12)
    monkeypatch.setattr(memory_budget, "LEAST_EDGES", 4)
    monkeypatch.setattr(memory_budget, "MOST_EDGES", 5)
    monkeypatch.setattr(memory_budget, "PILOT_BLOCKS", 3)
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 20 * M * 20)


# The truth, by fractions


def median_of(values: list[float], weights: list[Fraction]) -> Fraction:
    """The least value at which half of the weight is reached; where it is just half, the midpoint to the next value."""
    pairs = sorted((Fraction(v), w) for v, w in zip(values, weights, strict=True) if w > 0)
    half, seen = sum(w for _, w in pairs) / 2, Fraction(0)
    for place, (value, weight) in enumerate(pairs):
        seen += weight
        if seen >= half and (place + 1 == len(pairs) or pairs[place + 1][0] > value):
            partner = pairs[place + 1][0] if seen == half else value
            return Fraction(0.5 * (float(value) + float(partner)))
    raise AssertionError("no weights")


def dispersion(values: list[float], weights: list[Fraction], center: Fraction) -> Fraction:
    return sum((w * abs(Fraction(v) - center) for v, w in zip(values, weights, strict=True)), Fraction(0))


def truth(X: Any, y: Any, weights: Any = None) -> dict[str, Any]:
    """Everything that medians hold, of all columns, in fractions."""
    classes, codes = np.unique(y, return_inverse=True)
    w = [Fraction(v) for v in (np.ones(len(y), int) if weights is None else weights).tolist()]
    rows = [np.flatnonzero(codes == c) for c in range(len(classes))]
    of_class = [sum((w[i] for i in r), Fraction(0)) for r in rows]
    share = [v / of_class[c] for v, c in zip(w, codes, strict=True)]
    out: dict[str, list[Any]] = {n: [] for n in ("centers", "pooled", "dispersions", "pooled_dispersions", "gains")}
    for column in np.asarray(X, np.float64).T:
        views = [(column[r].tolist(), [share[i] for i in r]) for r in rows]
        centers = [median_of(*view) for view in views]
        each = [dispersion(*view, center) for view, center in zip(views, centers, strict=True)]
        pooled = median_of(column.tolist(), share)
        together = dispersion(column.tolist(), share, pooled)
        for name, value in zip(out, (centers, pooled, each, together, together - sum(each)), strict=True):
            out[name].append(value)
    return {name: np.array(value, object).T for name, value in out.items()} | {"weight": np.array(of_class, object)}


def spread_out(result: MedianResult) -> dict[str, Any]:
    """What was found, with zeros for the columns that were settled."""
    medians = result.medians
    out = {}
    for name in ("centers", "pooled", "dispersions", "pooled_dispersions", "gains"):
        found = getattr(medians, name)
        out[name] = np.zeros((*found.shape[:-1], medians.n_features))
        out[name][..., medians.columns] = found
    return out | {"weight": medians.weight}


def assert_true(result: MedianResult, X: Any, y: Any, weights: Any = None) -> None:
    expected, found = truth(X, y, weights), spread_out(result)
    settled = np.setdiff1d(np.arange(X.shape[1]), result.medians.columns)
    assert not expected["centers"][:, settled].any()
    assert not expected["gains"][settled].any()
    np.testing.assert_allclose(result.medians.settled, float(expected["dispersions"][:, settled].sum()), rtol=1e-14)
    for name in ("dispersions", "pooled_dispersions"):
        expected[name][..., settled] = Fraction(0)
    lost = [Fraction(10) ** -29 * value for value in expected["pooled_dispersions"]]  # beyond what pairs hold
    for name, values in expected.items():
        slack = np.broadcast_to(lost if name == "gains" else Fraction(0), values.shape)
        for got, value, more in zip(found[name].flat, values.flat, slack.flat, strict=True):
            assert_rounded(float(got), value, more)
    assert (result.medians.n_features, result.medians.rows) == (X.shape[1], len(y))


def assert_rounded(found: float, exact: Fraction, slack: Fraction) -> None:
    """One of the doubles nearest to a number; there are two if it lies halfway, but for digits that pairs lose."""
    error = abs(Fraction(found) - exact)
    assert error <= Fraction(math.ulp(found)) / 2 * (1 + Fraction(10) ** -12) + slack, (found, float(exact))


def assert_same(left: MedianResult, right: MedianResult) -> None:
    for field in fields(left.medians):
        a, b = (np.asarray(getattr(side.medians, field.name)) for side in (left, right))
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=field.name)


# Data


def normal(rng: Any, n: int, m: int) -> Any:
    return rng.normal(size=(n, m))


def tied(rng: Any, n: int, m: int) -> Any:
    return rng.integers(-2, 3, (n, m)).astype(np.float64)


def gappy(rng: Any, n: int, m: int) -> Any:
    """Columns with more and more zeros."""
    return rng.normal(size=(n, m)) * (rng.random((n, m)) < np.linspace(0.9, 0.05, m))


def extreme(rng: Any, n: int, m: int) -> Any:
    return rng.normal(size=(n, m)) * 10.0 ** rng.integers(-280, 280, (n, m))


def narrow(rng: Any, n: int, m: int) -> Any:
    return (1e6 + rng.normal(size=(n, m))).astype(np.float32)


def constant(_: Any, n: int, m: int) -> Any:
    return np.tile(np.linspace(-1, 1, m), (n, 1))


KINDS = [normal, tied, gappy, extreme, narrow, constant]
WEIGHTS = {
    "none": lambda rng, n: None,
    "whole": lambda rng, n: rng.integers(0, 5, n),
    "real": lambda rng, n: rng.choice([0.0, 0.1, 1 / 3, 2.5], n),
}


def dataset_of(X: Any, y: Any, weights: Any = None) -> Dataset:
    return Dataset(open_source(X, y, weights))


def labels(rng: Any, n: int, n_classes: int) -> Any:
    return rng.permutation(np.arange(n) % n_classes)


# Exact


@pytest.mark.filterwarnings("ignore:all labels are:nfs_dask.errors.DataWarning")
@given(st.integers(0, 999), st.sampled_from(KINDS), st.sampled_from([*WEIGHTS]), st.integers(1, 4), st.booleans())
def test_small_data_take_one_pass(seed: int, kind: Any, weights: str, n_classes: int, as_sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(n_classes, 25))
    X, y = kind(rng, n, 3), labels(rng, n, n_classes)
    w = WEIGHTS[weights](rng, n)
    if w is not None:
        w[np.unique(y, return_index=True)[1]] += 1  # each class has a weight
    result = class_medians(dataset_of(sparse.csr_array(X) if as_sparse else X, y, w))
    assert_true(result, X, y, w)
    assert [one.name for one in result.passes][-1:] in (["sample"], ["signs"])


@pytest.mark.usefixtures("cramped")
@pytest.mark.parametrize(("kind", "weights"), each_once(KINDS, WEIGHTS))
def test_all_passes_give_the_same_medians(kind: Any, weights: str) -> None:
    rng = np.random.default_rng(5)
    for n_classes, as_sparse in ((2, False), (3, True)):
        X, y = kind(rng, N, M), labels(rng, N, n_classes)
        w = WEIGHTS[weights](rng, N)
        result = class_medians(dataset_of(sparse.csr_array(X) if as_sparse else X, y, w))
        assert_true(result, X, y, w)
        if len(result.medians.columns):
            assert {"sample", "cells", "pinned"} <= {one.name for one in result.passes}


@pytest.mark.usefixtures("cramped")
def test_classes_may_have_any_sizes() -> None:
    rng = np.random.default_rng(2)
    y = np.array([0] * 3 + [1] * 150 + [2] * 1 + [3] * (N - 154))  # in order: most blocks are of one class
    X = tied(rng, N, M) + y[:, None]
    assert_true(class_medians(dataset_of(X, y)), X, y)


@pytest.mark.usefixtures("cramped")
@pytest.mark.parametrize("offset", [0, -50])  # at -50 an edge that nothing equals is as far away as there are doubles
def test_a_sample_that_misleads_only_costs_passes(offset: int) -> None:
    """The blocks of the pilot hold other numbers than all the rest."""
    rng = np.random.default_rng(4)
    X, y = normal(rng, N, M) + offset, labels(rng, N, 2)
    source = open_source(X, y)
    pilot = MemoryBudget(2, memory_budget.STATE_NBYTES, False).sample_of(source)[1]
    for block in pilot.blocks(0, pilot.n_blocks):
        X[block.first_row : block.first_row + block.n_rows, :3] += 1e6
    result = class_medians(dataset_of(X, y))
    assert_true(result, X, y)
    names = [one.name for one in result.passes]
    assert names[:3] == ["sample", "cells", "cells 2"]
    assert names[-1] == "pinned"
    assert len(names) < 24


@pytest.mark.usefixtures("cramped")
def test_columns_are_done_in_groups_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    X, y = normal(rng, N, M), labels(rng, N, 2)
    once = class_medians(dataset_of(X, y))
    monkeypatch.setattr(memory_budget, "LEAST_ROWS", 12)
    monkeypatch.setattr(memory_budget, "STATE_NBYTES", 2 * 2 * 12 * 8 * 2)
    result = class_medians(dataset_of(X, y))
    assert sum(one.name.startswith("sample") for one in result.passes) == 3
    assert_same(result, once)


# Sparse data


@pytest.mark.parametrize("signed", [False, True])
def test_columns_that_are_mostly_zero_are_settled_by_signs(signed: bool) -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 5, (N, 40)) * (rng.random((N, 40)) < 0.1)
    counts[:, 7] = rng.integers(0, 3, N)
    y = labels(rng, N, 3)
    counts[y == 1, 9] = 2
    X = counts - 3 * (counts > 3) * signed
    result = class_medians(dataset_of(sparse.csr_array(X), y))
    assert {7, 9} <= set(result.medians.columns.tolist()) <= {7, 9} | set(np.flatnonzero((X != 0).mean(axis=0) > 0.3))
    assert_true(result, X, y)
    assert [one.name for one in result.passes] == ["signs", "sample"]


def test_nothing_may_be_left_after_signs(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.integers(1, 5, (N, 8)) * (rng.random((N, 8)) < 0.05), labels(rng, N, 2)
    with caplog.at_level("INFO", "nfs_dask"):
        result = class_medians(dataset_of(sparse.csr_array(X), y))
    assert "8 of 8 columns are mostly zero in every class" in caplog.text
    assert [one.name for one in result.passes] == ["signs"]
    assert result.medians.columns.tolist() == []
    assert_true(result, X, y)


def test_delayed_sparse_chunks_are_seen_to_be_sparse() -> None:
    rng = np.random.default_rng(9)
    X, y = gappy(rng, N, 20) * (rng.random((N, 20)) < 0.3), labels(rng, N, 2)
    chunks = da.from_array(X, chunks=(80, 20)).map_blocks(sparse.csr_matrix)
    result = class_medians(Dataset(open_source(chunks, y)))
    assert_true(result, X, y)
    assert result.passes[0].name == "signs"


# Wherever the data are, and whoever reads them


@pytest.fixture(scope="module")
def measured() -> tuple[Any, Any]:
    rng = np.random.default_rng(11)
    y = labels(rng, N, 3)
    X = np.concatenate((narrow(rng, N, 3), gappy(rng, N, 3).astype(np.float32) + y[:, None]), axis=1).astype(np.float32)
    return X, y


@pytest.mark.usefixtures("cramped")
@pytest.mark.parametrize("where", ["memory", "sparse memory", "delayed", "store", "labelled store"])
@pytest.mark.parametrize("distributed", [False, True])
def test_every_place_and_engine_gives_the_same_bits(
    where: str, distributed: bool, measured: Any, tmp_path: Path, cluster: Any
) -> None:
    X, y = measured
    data: Any = X
    if where == "sparse memory":
        data = sparse.csr_array(X)
    elif where == "delayed":
        data = da.from_array(X, chunks=(70, M))
    elif "store" in where:
        data = tmp_path / "X.zarr"
        write_store(open_source(X, y), data, layout=SMALL)
    source = open_source(data) if where == "store" else open_source(data, y)
    result = class_medians(Dataset(source), DaskEngine() if distributed else SerialEngine())
    assert_true(result, X, y)
    assert len(result.passes) >= 3


@pytest.mark.parametrize("offset", [0, 1e11, 1e15])
def test_any_block_size_gives_the_same_bits(offset: float, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    """Also those of small data, which take one pass, under weights whose products with values have many digits."""
    rng = np.random.default_rng(12)
    X, y, w = offset + normal(rng, N, M) / 3, labels(rng, N, 2), rng.random(N)
    results = [class_medians(dataset_of(X, y, w))]
    assert_true(results[0], X, y, w)
    request.getfixturevalue("cramped")
    for nbytes in (500, 3000, 10_000, 1 << 20):
        monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", nbytes)
        results.append(class_medians(dataset_of(X, y, w)))
    assert len({one.passes[-1].plan.n_blocks for one in results[1:] if one.passes[-1].plan}) == 4
    for result in results[1:]:
        assert_same(result, results[0])


def test_an_engine_without_a_client_starts_one_cluster_for_all_passes(
    measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nfs_dask.cluster import finding as cluster

    started = []
    start = cluster.start_cluster

    def counted(*args: Any, **options: Any) -> Any:
        started.append(1)
        return start(*args, **options)

    monkeypatch.setattr(cluster, "start_cluster", counted)
    monkeypatch.setattr(cluster, "current_client", lambda: None)
    monkeypatch.setattr("nfs_dask.engine.distributed.current_client", lambda: None)
    monkeypatch.setattr(memory_budget, "MOST_ROWS", 12)
    monkeypatch.setattr(memory_budget, "MOST_ALL", 12)
    X, y = measured
    result = class_medians(dataset_of(X, y), DaskEngine())
    assert_true(result, X, y)
    assert len(started) == 1


# What is kept


@pytest.mark.parametrize("form", ["dense", "settled"])
def test_kept_medians_are_found_again(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(13)
    X = normal(rng, 60, M) if form == "dense" else sparse.random_array((60, M), density=0.05, rng=rng).toarray()
    write_store(open_source(X, labels(rng, 60, 2)), tmp_path / "X.zarr")
    dataset = open_dataset(tmp_path / "X.zarr")
    first = class_medians(dataset)
    again = class_medians(dataset)
    assert (first.reused, again.reused, again.passes, again.reads) == (False, True, (), 0.0)
    assert_same(again, first)
    assert dataset.statistics is not None
    assert dataset.statistics.descriptions() == [ClassMedians(2).describe()]
    assert (
        class_medians(open_dataset(tmp_path / "X.zarr", labels=labels(rng, 60, 3))).medians.weight.tolist() == [20] * 3
    )


def test_nothing_is_kept_unasked(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    write_store(open_source(normal(rng, 60, M), labels(rng, 60, 2)), tmp_path / "X.zarr")
    dataset = open_dataset(tmp_path / "X.zarr", reuse=False)
    for _ in range(2):
        assert not class_medians(dataset).reused
    assert dataset.statistics is not None
    assert dataset.statistics.descriptions() == []
    assert {path.name for path in tmp_path.iterdir()} == {"X.zarr"}


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    X, y = normal(rng, 60, M), labels(rng, 60, 2)
    write_store(open_source(X, y), tmp_path / "X.zarr")
    dataset = open_dataset(tmp_path / "X.zarr")

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("nfs_dask.store.states.write_state", full)
    assert_true(class_medians(dataset), X, y)
    assert dataset.statistics is not None
    assert dataset.statistics.folder.names() == []


# Plans and reports


@pytest.mark.usefixtures("cramped")
def test_plans_are_those_of_the_passes(measured: Any) -> None:
    X, y = measured
    plans = median_plans(dataset_of(X, y))
    result = class_medians(dataset_of(X, y))
    foreseen = [one for one in result.passes if one.name in ("sample", "cells", "pinned")]
    assert [plan.statistic["statistic"] for plan in plans] == ["row_sample", "class_cells", "pinned"]
    for plan, one in zip(plans, foreseen, strict=True):
        assert one.plan is not None
        assert (plan.runs, plan.read_nbytes, plan.strategy) == (one.plan.runs, one.plan.read_nbytes, one.plan.strategy)
        assert plan.peak_nbytes + 32e6 > one.plan.peak_nbytes
    (signs,) = median_plans(dataset_of(sparse.csr_array(X * (X.max(axis=0) == X)), y))
    assert signs.statistic["statistic"] == "class_signs"


def test_small_data_are_planned_as_one_pass(measured: Any) -> None:
    (plan,) = median_plans(dataset_of(*measured))
    assert plan.statistic["statistic"] == "row_sample"


@pytest.mark.usefixtures("cramped")
def test_reports_are_json_and_count_reads(measured: Any) -> None:
    X, y = measured
    source = open_source(X, y)
    result = class_medians(Dataset(source))
    report = json.loads(json.dumps(result.to_json()))
    assert [*report["seconds"]] == [one["name"] for one in report["passes"]]
    shares = [one["share"] for one in report["passes"]]
    assert shares[0] == pytest.approx(3 / source.n_blocks, rel=0.01)
    assert set(shares[1:]) == {1.0}
    assert report["reads"] == pytest.approx(sum(shares))


# What is refused


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_have_no_order_are_refused(bad: float, as_sparse: bool) -> None:
    X = np.zeros((30, 8))
    X[:, 0], X[7, 3] = 1, bad
    with pytest.raises(InputError, match="row 7, column 3"):
        class_medians(
            dataset_of(
                sparse.csr_array(X) if as_sparse else X + (np.arange(8) != 3), labels(np.random.default_rng(0), 30, 2)
            )
        )


def test_whole_numbers_that_doubles_cannot_hold_are_refused() -> None:
    X = np.ones((30, 2), np.int64)
    X[4, 1] = 2**53 + 1
    with pytest.raises(InputError, match="row 4, column 1"):
        class_medians(dataset_of(X, labels(np.random.default_rng(0), 30, 2)))


def test_labels_are_needed() -> None:
    with pytest.raises(InputError, match="has no labels"):
        class_medians(Dataset(open_source(np.ones((3, 2)))))
