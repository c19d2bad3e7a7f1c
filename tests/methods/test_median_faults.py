"""Workers die and processes end between and within the passes of medians; what comes of it is the same to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.arrays.block import Block
from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.run_status import read_run
from nfs_dask.engine.serial import SerialEngine, SerialExecutor
from nfs_dask.errors import ResumeError
from nfs_dask.methods import memory_budget
from nfs_dask.methods.class_medians import MedianResult, class_medians, median_plans
from nfs_dask.methods.memory_budget import MemoryBudget
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.misbehaving import Misbehaving

N, M = 600, 8
NAMES = ["sample", "cells", "pinned"]


@dataclass
class Later(Misbehaving):
    """Misbehaves when the block is read for the n-th time."""

    occasion: int = 1

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            self._note(f"read-{number}")
            done = any(Path(self.marks).glob("did-*"))
            if number == self.at_block and self.reads(number) >= self.occasion and not done:
                self._note("did")
                self._do()
            yield from self.inner.blocks(number, number + 1)


@pytest.fixture(autouse=True)
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_budget, "MOST_ROWS", 40)
    monkeypatch.setattr(memory_budget, "MOST_ALL", 40)
    monkeypatch.setattr(memory_budget, "PILOT_BLOCKS", 3)
    monkeypatch.setattr(memory_budget, "PILOT_SHARE", 1000)


@pytest.fixture
def source(tmp_path: Path) -> Any:
    """Dense values in 24 blocks; those of the pilot are 4, 12 and 20."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, N)
    layout = Layout(chunk=128, shard=1024, row_chunk=5, row_shard=50, block=200)
    write_store(open_source(rng.normal(size=(N, M)), y), tmp_path / "X.zarr", layout=layout)
    found = open_source(tmp_path / "X.zarr")
    assert found.n_blocks == 24
    return found


@pytest.fixture
def marks(tmp_path: Path) -> str:
    (tmp_path / "marks").mkdir()
    return str(tmp_path / "marks")


def assert_same(left: MedianResult, right: MedianResult) -> None:
    for field in fields(left.medians):
        a, b = (np.asarray(getattr(side.medians, field.name)) for side in (left, right))
        np.testing.assert_array_equal(a, b, err_msg=field.name)


@pytest.mark.slow
@pytest.mark.parametrize("occasion", [1, 2, 3])
def test_a_killed_worker_changes_nothing(occasion: int, source: Any, marks: str, mortal_cluster: Any) -> None:
    undisturbed = class_medians(Dataset(source))
    bad = Later(source, "kill", at_block=12, marks=marks, occasion=occasion)
    result = class_medians(Dataset(bad), DaskEngine())
    assert list(Path(marks).glob("did-*"))
    assert [one.name for one in result.passes] == NAMES
    assert_same(result, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("occasion", [1, 2, 3])
def test_a_run_goes_on_in_the_pass_that_was_interrupted(
    occasion: int, source: Any, marks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfs_dask.engine.tasks.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("nfs_dask.engine.plan.BATCH_NBYTES", 1)
    undisturbed = class_medians(Dataset(source))
    bad = Later(source, "raise", at_block=12, marks=marks, occasion=occasion)
    engine = SerialEngine(run=str(tmp_path / "run"))
    with pytest.raises(OSError, match="enough"):
        class_medians(Dataset(bad), engine)
    run = read_run(tmp_path / "run")
    assert (len(run.passes), run.finished, run.features) == (occasion, False, M)
    result = class_medians(Dataset(bad), engine)
    assert_same(result, undisturbed)
    assert [one.name for one in result.passes] == NAMES
    assert [one.plan is None for one in result.passes] == [at < occasion - 1 for at in range(3)]
    assert bad.reads(4) == 3  # once in each pass, as it comes before the block that failed
    assert bad.reads(12) == 4
    assert read_run(tmp_path / "run").finished
    again = class_medians(Dataset(bad), engine)
    assert again.reads == 0
    assert_same(again, undisturbed)


def test_a_run_goes_on_with_as_much_memory_as_it_began_with(
    source: Any, marks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that is free is never the same twice, and how many rows are drawn depends on it."""
    undisturbed = class_medians(Dataset(source))
    measure, free = SerialExecutor.resources, count(12_000, -400)

    def less_each_time(self: SerialExecutor, *args: Any, **options: Any) -> Resources:
        return replace(measure(self, *args, **options), warm=next(free))

    def of_what_is_free(n_classes: int, source: Any, resources: Resources) -> MemoryBudget:
        return MemoryBudget(n_classes, resources.warm, source.weighted)

    monkeypatch.setattr(memory_budget, "LEAST_ROWS", 4)
    monkeypatch.setattr(memory_budget, "MOST_ROWS", 100)
    monkeypatch.setattr(SerialExecutor, "resources", less_each_time)
    monkeypatch.setattr(MemoryBudget, "of", of_what_is_free)
    engine = SerialEngine(run=str(tmp_path / "run"))
    bad = Later(source, "raise", at_block=12, marks=marks, occasion=3)
    with pytest.raises(OSError, match="enough"):
        class_medians(Dataset(bad), engine)
    assert len(read_run(tmp_path / "run").passes) == 3
    result = class_medians(Dataset(bad), engine)
    assert [one.plan is None for one in result.passes] == [True, True, False]
    assert_same(result, undisturbed)


def test_a_plan_begins_no_run(source: Any, tmp_path: Path) -> None:
    assert len(median_plans(Dataset(source), SerialEngine(run=str(tmp_path / "run")))) == 3
    assert not (tmp_path / "run").exists()


def test_a_run_knows_its_data(source: Any, tmp_path: Path) -> None:
    engine = SerialEngine(run=str(tmp_path / "run"))
    class_medians(Dataset(source), engine)
    assert [one.name for one in read_run(tmp_path / "run").passes] == ["class_cells", "pinned", "row_sample"]
    with pytest.raises(ResumeError, match="other data"):
        class_medians(Dataset(open_source(tmp_path / "X.zarr", labels=np.arange(N) % 2)), engine)
