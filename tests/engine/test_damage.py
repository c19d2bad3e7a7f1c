"""Damage to what a pass left on its way: it is made again when the run resumes, and never counted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine import engine as base
from nfs_dask.engine import tasks
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import StoreError
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import assert_same
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(600, 3000, 3, words_per_document=30, block_rows=50)
COUNTS = ClassCounts(3)


@pytest.fixture(scope="module")
def want() -> State:
    return SerialEngine(panels=1).reduce(COUNTS, CORPUS).state


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.engine.plan.BATCH_NBYTES", 2 * CORPUS.block_nbytes)


def spool_files(run: Path) -> list[Path]:
    return sorted(run.rglob("*.spool"))


def flip(path: Path, at: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def interrupted(run: Path, marks: Path) -> tuple[SerialEngine, Any]:
    """A scatter pass that stopped before block 8."""
    marks.mkdir()
    engine, source = SerialEngine(panels=3, run=str(run)), Misbehaving(CORPUS, "raise", at_block=8, marks=str(marks))
    with pytest.raises(OSError, match="enough"):
        engine.reduce(COUNTS, source)
    return engine, source


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_damaged_spool_file_is_made_again_when_a_run_resumes(
    part: float, tmp_path: Path, small_batches: None, want: State, caplog: pytest.LogCaptureFixture
) -> None:
    engine, source = interrupted(tmp_path / "run", tmp_path / "marks")
    harmed = spool_files(tmp_path / "run")[1]
    flip(harmed, int(part * harmed.stat().st_size), 6)
    assert_same(engine.reduce(COUNTS, source).state, want, exact=True)
    assert f"{harmed.name} is truncated, damaged" in caplog.text
    assert [source.reads(n) for n in (0, 1, 2, 3, 4, 9)] == [1, 1, 2, 2, 1, 1]  # its blocks alone


def test_swapped_spool_files_are_made_again(tmp_path: Path, small_batches: None, want: State) -> None:
    engine, source = interrupted(tmp_path / "run", tmp_path / "marks")
    a, b, *_ = spool_files(tmp_path / "run")
    a.rename(tmp_path / "aside")
    b.rename(a)
    (tmp_path / "aside").rename(b)
    assert_same(engine.reduce(COUNTS, source).state, want, exact=True)


def test_files_of_other_data_in_the_same_place_are_not_taken_for_those_of_the_last_pass(
    tmp_path: Path, small_batches: None
) -> None:
    """A run folder that was deleted, and one of the same name for other documents, in a process that goes on."""
    for seed in (0, 1):
        corpus = GeneratedCorpus(600, 3000, 3, words_per_document=30, block_rows=50, seed=seed)
        found = SerialEngine(panels=3, run=str(tmp_path / "run")).reduce(COUNTS, corpus)
        assert_same(found.state, SerialEngine(panels=1).reduce(COUNTS, corpus).state, exact=True)
        shutil.rmtree(tmp_path / "run")


@pytest.mark.parametrize("kept", [False, True])
def test_damage_behind_the_back_of_a_pass_is_an_error_and_the_next_try_mends_it(
    kept: bool, tmp_path: Path, small_batches: None, want: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits that flip between writing and reading: what made 85 out of 21."""
    options = {"run": str(tmp_path / "place")} if kept else {"spool": str(tmp_path / "place")}
    engine = SerialEngine(panels=3, **options)

    def harm_and_fold(job: Any, start: int, stop: int, tick: Any) -> Any:
        path = spool_files(tmp_path / "place")[2]
        for at in range(64, path.stat().st_size // 2, 500):
            flip(path, at, 6)
        return tasks.fold_panels(job, start, stop, tick)

    (tmp_path / "place").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(base, "fold_panels", harm_and_fold)
        with pytest.raises(StoreError, match=r"place/.*\.spool is truncated, damaged .* run again"):
            engine.reduce(COUNTS, CORPUS)
    assert_same(engine.reduce(COUNTS, CORPUS).state, want, exact=True)


def test_damaged_results_of_a_run_are_named(tmp_path: Path, small_batches: None, want: State) -> None:
    engine = SerialEngine(panels=3, run=str(tmp_path / "run"))
    engine.reduce(COUNTS, CORPUS)
    rng, noticed = np.random.default_rng(1), 0
    for path in [path for path in (tmp_path / "run").rglob("*") if path.is_file()]:
        size = path.stat().st_size
        for at in rng.integers(0, size, 6).tolist():
            flip(path, at)
            try:
                assert_same(engine.reduce(COUNTS, CORPUS).state, want, exact=True)
            except StoreError as error:
                noticed += str(tmp_path / "run") in str(error)
            flip(path, at)
    assert noticed > 30
