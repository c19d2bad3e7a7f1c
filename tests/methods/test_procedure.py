"""Procedures are sent sums of our own invention: what they want, in which order, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from scipy import sparse

from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.methods import slopes
from nfs_dask.methods.class_medians import class_medians, median_procedure
from nfs_dask.methods.hybrid import HybridSettings, fit_hybrid, hybrid_procedure
from nfs_dask.methods.procedure import Measure, Passes, Procedure, Sum, Want, Write, Written, run
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.medians.sample import RowSample
from nfs_dask.statistics.medians.signs import ClassSigns
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.testing import fold

T = TypeVar("T")

N, M = 40, 4
RNG = np.random.default_rng(1)
Y = np.arange(N) % 2
COUNTS = RNG.poisson(1 + (np.arange(M) % 2 == Y[:, None]))
REALS = RNG.normal(size=(N, M)) + Y[:, None]


def dataset_of(matrix: Any) -> Dataset:
    return Dataset(open_source(matrix, Y), reuse=False)


def unread(matrix: Any) -> Dataset:
    """Data that nobody may read."""

    def refuse(*_: int) -> None:
        raise AssertionError("a procedure reads nothing itself")

    source: Any = open_source(matrix, Y)
    source.blocks = refuse
    return Dataset(source, reuse=False)


def carried_out(procedure: Procedure[T], answer: Callable[[Any], Any]) -> tuple[T, list[Want]]:
    """What a procedure makes of our answers, and what it asked."""
    wants = []
    try:
        want = next(procedure)
        while True:
            wants.append(want)
            want = procedure.send(answer(want))
    except StopIteration as end:
        return end.value, wants


def sum_of(want: Any, matrix: Any) -> Reduction:
    """The sum that is wanted, of other rows."""
    state = fold(want.statistic, [*open_source(matrix, Y).blocks(0, 1)])
    return Reduction(MemoryPanels(state, want.source.n_features), None, 0.0)


def test_medians_are_those_of_the_sums_that_are_sent() -> None:
    def answer(want: Any) -> Any:
        return Resources() if isinstance(want, Measure) else sum_of(want, REALS + 7)

    found, wants = carried_out(median_procedure(unread(sparse.csr_array(REALS))), answer)
    measure, sample = wants
    assert isinstance(measure, Measure)
    assert measure.lasting
    assert isinstance(sample, Sum)
    assert (sample.name, sample.statistic, sample.kept) == ("sample", RowSample(2, N), None)
    expected = class_medians(dataset_of(REALS + 7)).medians
    np.testing.assert_array_equal(found.medians.centers, expected.centers)
    assert [one.name for one in found.passes] == ["sample"]


def test_signs_may_settle_all_medians() -> None:
    matrix = sparse.csr_array(np.eye(N, M))
    dataset = unread(matrix)
    found, (want,) = carried_out(median_procedure(dataset), lambda want: sum_of(want, matrix))
    assert isinstance(want, Sum)
    assert (want.name, want.statistic) == ("signs", ClassSigns(2))
    assert want.source is dataset.source
    assert len(found.medians.columns) == 0


def test_a_class_that_is_sent_no_weight_has_no_say_in_a_hybrid() -> None:
    def answer(want: Any) -> Any:
        reduction = sum_of(want, COUNTS)
        if want.statistic.n_classes == 1:
            return reduction
        reduction.panels.totals["weight"][1] = 0
        return reduction

    def one_class(want: Any) -> Any:
        if want.statistic.n_classes == 2:
            return answer(want)
        (block,) = open_source(COUNTS[Y == 0], np.zeros(N // 2, int)).blocks(0, 1)
        return Reduction(MemoryPanels(fold(want.statistic, [block]), M), None, 0.0)

    found, wants = carried_out(hybrid_procedure(unread(COUNTS), HybridSettings(2)), one_class)
    assert [want.name for want in wants if isinstance(want, Sum)] == ["counts", "counts of the classes with documents"]
    assert len(wants) == 2
    np.testing.assert_array_equal(found.counts, [COUNTS[Y == 0].reshape(-1, 2, 2).sum(axis=(0, 1)), [0, 0]])
    assert not found.theta.any()


def test_features_of_a_hybrid_may_be_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or anywhere: each step of the fit is about the rows that were sent."""
    monkeypatch.setattr(slopes, "HELD", 0)
    expected = fit_hybrid(dataset_of(COUNTS), HybridSettings(2))
    sent: list[Any] = []

    def answer(want: Any) -> Any:
        if isinstance(want, Measure):
            return Resources(spool="/nowhere")
        if isinstance(want, Write):
            sent.append(want)
            return Written(want.view, 2.0, 0.5)
        return Reduction(Dataset(want.source, reuse=False).reduce(want.statistic).panels, None, 0.0)

    found, wants = carried_out(hybrid_procedure(dataset_of(COUNTS), HybridSettings(2)), answer)
    (write,) = sent
    assert write.folder.location.startswith("/nowhere/.nfs-features-")
    steps = [want for want in wants if isinstance(want, Sum) and want.name == "fit"]
    assert len(steps) == found.logistic.n_evaluations
    assert all(want.source is write.view for want in steps)
    assert [(one.name, one.seconds, one.share) for one in found.passes][1] == ("features", 2.0, 0.5)
    np.testing.assert_array_equal(found.theta, expected.theta)


# Those that are carried out


def test_what_wants_nothing_starts_no_engine() -> None:
    def at_once() -> Procedure[int]:
        yield from ()
        return 3

    engine: Any = "no engine"
    assert run(at_once(), dataset_of(REALS), engine) == 3
    with pytest.raises(InputError, match="give nfs_dask.SerialEngine"):
        run(median_procedure(dataset_of(REALS)), dataset_of(REALS), engine)


def test_an_error_of_a_pass_is_raised_where_it_is_waited_for() -> None:
    dataset = dataset_of(np.where(np.arange(M) == 1, np.nan, REALS))

    def tolerant() -> Procedure[str]:
        try:
            yield from Passes(dataset).sum("sample", RowSample(2, 3))
        except InputError as error:
            return str(error)
        return "nothing happened"

    assert "NaN value nan in row 0, column 1" in run(tolerant(), dataset, SerialEngine())


def test_passes_of_one_name_are_numbered() -> None:
    dataset = dataset_of(REALS)
    passes = Passes(dataset)

    def twice() -> Procedure[None]:
        for size in (2, 3):
            yield from passes.sum("sample", RowSample(2, size), dataset.source)

    run(twice(), dataset)
    assert [(one.name, one.share) for one in passes.done] == [("sample", 1.0), ("sample 2", 1.0)]
