"""A task that is told to stop leaves what it has done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import make_plan
from nfs_dask.engine.run_directory import kept_blocks
from nfs_dask.engine.tasks import Job, fold_run
from nfs_dask.errors import ClusterError
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50)  # 12 blocks
COUNTS = ClassCounts(3)


def test_a_cancelled_run_is_kept_up_to_the_block_it_was_at(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    source = Misbehaving(CORPUS, "none", at_block=-1, marks=str(tmp_path / "marks"))
    plan = replace(make_plan(COUNTS, CORPUS, Resources()), runs=((0, 12),), batch=1)
    job = Job(COUNTS, source, plan, True, checkpoints=Folder(str(tmp_path / "checkpoints")))
    done = 0

    def tick(blocks: int) -> None:
        nonlocal done
        done += blocks
        if done == 5:
            raise ClusterError("the pass was cancelled")

    with pytest.raises(ClusterError, match="cancelled"):
        fold_run(job, 0, tick)
    assert kept_blocks(Folder(str(tmp_path))) == 5
    fold = fold_run(job, 0, lambda blocks: None)
    assert [source.reads(block) for block in range(12)] == [1] * 12, "none is read again"
    want = np.zeros((3, 300), np.int64)
    for block in CORPUS.blocks(0, 12):
        np.add.at(want, (np.repeat(block.codes, np.diff(block.indptr)), block.indices), block.data)
    assert np.array_equal(fold.state.arrays["sums"], want)
