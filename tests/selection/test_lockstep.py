"""Procedures in lockstep find what they find alone, and read the data no more often than the longest of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from nfs_dask.dataset import Dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError, PlanError
from nfs_dask.methods import memory_budget
from nfs_dask.methods.class_medians import class_medians, median_procedure
from nfs_dask.methods.procedure import Measure, Pass, Passes, Procedure, Sum, run
from nfs_dask.selection.joint import Joint, JointMember
from nfs_dask.selection.lockstep import in_lockstep
from nfs_dask.sources.folds import Folds, without_fold
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.views import some_blocks, some_columns
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.gram import Gram
from nfs_dask.statistics.medians.sample import RowSample
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from nfs_dask.testing import assert_same, check_statistic
from tests.helpers.grids import each_once

RNG = np.random.default_rng(3)
ROWS, WIDTH, CLASSES, FOLDS = 300, 40, 3, 3
Y = RNG.integers(0, CLASSES, ROWS)
DENSE = RNG.normal(size=(ROWS, WIDTH)) + (np.arange(WIDTH) % CLASSES == Y[:, None])
SPARSE = RNG.poisson(0.05 + 0.9 * ((np.arange(WIDTH) % CLASSES == Y[:, None]) & (np.arange(WIDTH) < 12)))
FOUND = RNG.integers(0, FOLDS, ROWS)
FOLDED = Folds(FOLDS, FOUND)
WEIGHTS = RNG.integers(0, 3, ROWS).astype(float)


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("together") / "some.zarr"
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=300)
    write_store(open_source(sparse.csr_array(SPARSE), Y), path, layout=layout)
    return path


def together(
    procedures: Sequence[Procedure[Any]], source: Any, engine: Engine | None = None
) -> tuple[list[Any], list[Pass]]:
    """What all procedures find, and the passes over the source."""
    passes = Passes(Dataset(source, reuse=False))
    return run(in_lockstep(procedures, passes), passes.dataset, engine or SerialEngine()), passes.done


def state_of(statistic: Any, source: Any) -> Procedure[Any]:
    found: Reduction = yield Sum("some", statistic, source)
    return found.state


def alone(statistic: Any, source: Any) -> Any:
    return Dataset(source, reuse=False).reduce(statistic, SerialEngine()).state


def test_different_statistics_share_a_pass(store: Path) -> None:
    source = open_source(store)
    numbers = np.arange(1, source.n_blocks, 3)
    columns = np.array([1, 5, 30])
    views = [
        (ClassCounts(CLASSES), source),
        (RowSample(CLASSES, 7), some_columns(without_fold(source, FOLDED, 1), columns)),
        (Gram(CLASSES, np.zeros(3)), some_columns(some_blocks(source, numbers), columns)),
        (RowSample(CLASSES, 5), some_blocks(without_fold(source, FOLDED, 0), numbers)),
    ]
    found, done = together([state_of(statistic, view) for statistic, view in views], source)
    assert [(one.name, one.share) for one in done] == [("class_counts, row_sample, gram", 1.0)]
    for (statistic, view), state in zip(views, found, strict=True):
        assert_same(state, alone(statistic, view), exact=not isinstance(statistic, Gram))


def test_only_blocks_that_somebody_wants_are_read(store: Path) -> None:
    source = open_source(store)
    numbers = [np.arange(0, 4), np.arange(2, 6)]
    views = [some_blocks(some_blocks(source, own), np.array([1, 2])) for own in numbers]
    found, done = together([state_of(RowSample(CLASSES, 400), view) for view in views], source)
    assert done[0].plan is not None
    assert done[0].plan.n_blocks == 4  # 1 and 2, 3 and 4
    assert done[0].share == pytest.approx(4 / source.n_blocks, rel=0.1)
    for view, state in zip(views, found, strict=True):
        assert_same(state, alone(RowSample(CLASSES, 400), view), exact=True)


def test_those_with_more_passes_go_on(store: Path) -> None:
    source = open_source(store)

    def some(n: int) -> Procedure[list[int]]:
        states = []
        for i in range(n):
            states.append((yield from state_of(RowSample(CLASSES, 2 + i), source)))
        return [int(state.totals["rows"].sum()) for state in states]

    found, done = together([some(n) for n in (0, 3, 1, 2)], source)
    assert found == [[], [ROWS] * 3, [ROWS], [ROWS] * 2]
    assert len(done) == 3


def test_counts_outside_of_each_fold_come_from_counts_of_each(store: Path, tmp_path: Path) -> None:
    source = open_source(store)
    views = [without_fold(source, FOLDED, f) for f in range(FOLDS)]
    engine = SerialEngine(panels=3, spool=str(tmp_path))
    found, done = together([state_of(ClassCounts(CLASSES), view) for view in views], source, engine)
    assert done[0].plan is not None
    assert (done[0].plan.strategy, done[0].plan.statistic["n_classes"]) == ("scatter", FOLDS * CLASSES)
    for f, state in enumerate(found):
        rows = f != FOUND
        expected = np.array([SPARSE[rows & (c == Y)].sum(axis=0) for c in range(CLASSES)])
        np.testing.assert_array_equal(state.arrays["sums"], expected)
        np.testing.assert_array_equal(state.totals["rows"], np.bincount(Y[rows]))


def test_nothing_is_read_where_sums_are_invented(store: Path) -> None:
    """The combination is a procedure itself: what it wants is one sum, in whose parts each finds its own."""
    source = open_source(store)
    passes = Passes(Dataset(source, reuse=False))
    views = [without_fold(source, FOLDED, f) for f in range(2)]
    both = in_lockstep([state_of(RowSample(CLASSES, 2 + f), view) for f, view in enumerate(views)], passes)
    want = next(both)
    assert isinstance(want, Sum)
    assert isinstance(want.statistic, Joint)
    assert (want.name, want.lasting, want.kept) == ("row_sample", False, None)
    state = want.statistic.zero()
    state.totals["member1_rows"] += 7
    with pytest.raises(StopIteration) as end:
        both.send(Reduction(MemoryPanels(state, WIDTH), None, 0.0))
    assert [found.totals["rows"].tolist() for found in end.value.value] == [[0] * CLASSES, [7] * CLASSES]


# Medians


def medians_of(source: Any) -> Procedure[Any]:
    return (yield from median_procedure(Dataset(source, reuse=False))).medians


@pytest.mark.parametrize(("kind", "weighted"), each_once(["dense", "sparse", "store", "delayed"], [False, True]))
def test_medians_of_all_training_sets(
    kind: str, weighted: bool, store: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any
) -> None:
    monkeypatch.setattr(memory_budget, "MOST_ROWS", 20)  # so that it takes all kinds of passes
    monkeypatch.setattr(memory_budget, "MOST_EDGES", 16)
    monkeypatch.setattr(memory_budget, "PILOT_BLOCKS", 2)
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 40 * WIDTH * 12)
    weights = WEIGHTS if weighted else None
    matrix = DENSE if kind in ("dense", "delayed") else SPARSE
    if kind == "delayed":
        lazy = None if weights is None else da.from_array(weights, chunks=60)
        source = open_source(da.from_array(DENSE, chunks=(60, WIDTH)), da.from_array(Y, chunks=60), lazy)
    elif kind == "store":
        source = open_source(open_source(store), None, weights)
    else:
        source = open_source(matrix if kind == "dense" else sparse.csr_array(matrix), Y, weights)
    views = [without_fold(source, FOLDED, f) for f in range(FOLDS)]
    engine = DaskEngine() if kind in ("store", "delayed") else SerialEngine()
    found, done = together([medians_of(view) for view in views], source, engine)
    for f in range(FOLDS):
        rows = f != FOUND
        own = open_source(matrix[rows], Y[rows], None if weights is None else weights[rows])
        result = class_medians(Dataset(own, reuse=False), SerialEngine())
        same = medians_values(result.medians)
        for name, value in medians_values(found[f]).items():
            np.testing.assert_array_equal(value, same[name], err_msg=name)
    longest = max(len(class_medians(Dataset(view, reuse=False), SerialEngine()).passes) for view in views)
    assert len(done) <= longest + 1
    names = [one.name.split()[0] for one in done]
    assert names[0] == ("class_signs" if kind in ("sparse", "store") else "row_sample")


def medians_values(medians: Any) -> dict[str, Any]:
    """What medians say of all columns."""
    dense: dict[str, Any] = {"weight": medians.weight}
    for name in ("centers", "pooled", "gains"):
        part = getattr(medians, name)
        dense[name] = np.zeros((*part.shape[:-1], medians.n_features))
        dense[name][..., medians.columns] = part
    return dense


def test_memory_is_shared(store: Path) -> None:
    source = open_source(store)

    def budget() -> Procedure[float]:
        return (yield Measure(RowSample(CLASSES, 3), source)).task_budget  # type: ignore[no-any-return]

    four, done = together([budget() for _ in range(4)], source)
    whole = SerialEngine().plan(RowSample(CLASSES, 3), source).resources.task_budget
    for share in four:
        assert 0.15 * whole < share < 0.35 * whole
    assert not done


def test_states_that_do_not_fit_together_are_refused(store: Path, cluster: Any) -> None:
    views = [without_fold(open_source(store), FOLDED, f) for f in range(FOLDS)]
    source = views[0].underlying  # type: ignore[attr-defined]
    size = (300 << 20) // (CLASSES * 8 * WIDTH)  # of 2 GiB
    Dataset(source, reuse=False).reduce(RowSample(CLASSES, 10), DaskEngine())
    with pytest.raises(PlanError, match="Give each worker"):
        together([state_of(RowSample(CLASSES, size), view) for view in views], source, DaskEngine())


# Faults


def test_the_first_error_is_raised_and_nobody_is_left_waiting(store: Path) -> None:
    source = open_source(store)
    ended: list[str] = []

    def fails() -> Procedure[None]:
        yield from state_of(RowSample(CLASSES, 3), source)
        raise InputError("this is not what was wanted")

    def waits() -> Procedure[None]:
        try:
            for i in range(3):
                yield from state_of(RowSample(CLASSES, 4 + i), source)
        finally:
            ended.append("waits")

    with pytest.raises(InputError, match="not what was wanted"):
        together([waits(), fails(), waits()], source)
    assert ended == ["waits", "waits"]


def test_an_error_of_the_pass_is_raised_here() -> None:
    bad = np.where(np.arange(WIDTH) == 3, np.nan, DENSE)
    source = open_source(bad, Y)
    procedures = [medians_of(without_fold(source, FOLDED, f)) for f in range(FOLDS)]
    with pytest.raises(InputError, match="NaN value nan in row 0, column 3"):
        together(procedures, source)
    assert all(next(procedure, "ended") == "ended" for procedure in procedures)


def test_an_interrupt_ends_all(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(store)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SerialEngine, "reduce", interrupted)
    procedures = [state_of(RowSample(CLASSES, 3), source) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        together(procedures, source)
    assert all(next(procedure, "ended") == "ended" for procedure in procedures)


def test_passes_over_other_data_are_not_shared(store: Path) -> None:
    sources = [open_source(store), open_source(DENSE, Y), open_source(store)]
    found, done = together([state_of(RowSample(CLASSES, 3), one) for one in sources], sources[0])
    assert [one.name for one in done] == ["row_sample", "row_sample 2", "row_sample 3"]
    for source, state in zip(sources, found, strict=True):
        assert_same(state, alone(RowSample(CLASSES, 3), source), exact=True)


def test_a_joint_statistic_obeys_the_laws() -> None:
    source = open_source(sparse.csr_array(SPARSE), Y)
    choice: Any = some_columns(source, np.array([0, 2, 7]))
    members = (
        JointMember(ClassCounts(CLASSES), WIDTH),
        JointMember(ClassCounts(CLASSES, with_documents=True), 3, steps=(choice.step,)),
    )
    (block,) = source.blocks(0, 1)
    check_statistic(Joint(CLASSES, members), [block], exact=True)


def test_blocks_have_no_more_columns_than_somebody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    update = Joint.update

    def watched(self: Joint, state: Any, block: Any) -> None:
        widths.append(block.n_features)
        update(self, state, block)

    monkeypatch.setattr(Joint, "update", watched)
    source = open_source(sparse.csr_array(SPARSE), Y)
    wanted = [np.array([3, 7, 9]), np.array([7, 30]), np.arange(5, 25)]
    for some in (wanted[:2], wanted):
        views = [some_columns(without_fold(source, FOLDED, fold), columns) for fold, columns in enumerate(some)]
        alone = [run(counting(view), Dataset(source, reuse=False), SerialEngine()) for view in views]
        found, _ = together([counting(view) for view in views], source)
        for one, other in zip(found, alone, strict=True):
            assert_same(one, other, exact=True)
    assert widths == [4, WIDTH]


def counting(view: Any) -> Procedure[Any]:
    """One pass over a view, by a statistic that needs all columns of a row."""
    return (yield Sum("sample", RowSample(CLASSES, ROWS), view)).state
