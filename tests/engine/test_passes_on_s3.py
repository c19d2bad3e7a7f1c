"""Whole passes whose temporary files, runs and kept statistics lie behind a real S3 protocol."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from distributed import Client

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.cache import Kept
from nfs_dask.testing import assert_same
from tests.helpers.misbehaving import Misbehaving
from tests.helpers.wrapped import Wrapped

CORPUS = GeneratedCorpus(1000, 900, 3, words_per_document=20, block_rows=250)
COUNTS = ClassCounts(3, with_documents=True)


class Negative(Wrapped):
    def blocks(self, start: int, stop: int) -> Any:
        for block in super().blocks(start, stop):
            yield replace(block, data=block.data * -0.5)


def objects(url: str) -> list[str]:
    """All objects of a bucket, seen with another client than the one that wrote them."""
    listing = boto3.client("s3").list_objects_v2(Bucket=url.split("/")[2])
    return [item["Key"] for item in listing.get("Contents", [])]


def uploads(url: str) -> Any:
    return boto3.client("s3").list_multipart_uploads(Bucket=url.split("/")[2]).get("Uploads", [])


def test_a_scatter_pass_and_its_kept_statistics(s3_cluster: Client, s3: str) -> None:
    want = SerialEngine(panels=1).reduce(COUNTS, CORPUS).state
    result = DaskEngine(panels=5, spool=f"{s3}/spool").reduce(COUNTS, CORPUS)
    assert result.plan is not None
    assert result.plan.strategy == "scatter"
    assert len(result.panels) >= 5
    assert result.plan.resources.spool == f"{s3}/spool"
    assert_same(result.state, want, exact=True)
    assert {key.split("/")[1].rsplit("-", 1)[0] for key in objects(s3)} == {".nfs-panels"}
    del result
    gc.collect()
    deadline = time.monotonic() + 10
    while objects(s3) and time.monotonic() < deadline:  # they go in a thread of their own
        time.sleep(0.05)
    assert objects(s3) == []

    kept = Kept(Folder(f"{s3}/store/nfs_dask/kept"), "abc")
    engine = DaskEngine(panels=5, spool=f"{s3}/spool")
    assert_same(engine.reduce(COUNTS, CORPUS, kept=kept).state, want, exact=True)
    assert all(key.startswith("store/nfs_dask/kept/") for key in objects(s3))
    again = SerialEngine().reduce(COUNTS, CORPUS, kept=kept)
    assert again.reused
    assert_same(again.state, want, exact=True)

    before = objects(s3)
    with pytest.raises(InputError, match="negative value"):
        engine.reduce(COUNTS, Negative(CORPUS, kind="real", trusted=False), kept=replace(kept, fingerprint="other"))
    assert objects(s3) == before
    assert uploads(s3) == []


@pytest.mark.parametrize("panels", [1, 5])
def test_an_interrupted_run_resumes(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panels: int) -> None:
    monkeypatch.setattr("nfs_dask.engine.tasks.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("nfs_dask.engine.plan.BATCH_NBYTES", CORPUS.block_nbytes)
    engine = SerialEngine(panels=panels, run=f"{s3}/run")
    source = Misbehaving(CORPUS, "raise", at_block=2, marks=str(tmp_path))
    with pytest.raises(OSError, match="enough"):
        engine.reduce(COUNTS, source)
    result = engine.reduce(COUNTS, source)
    assert_same(result.state, SerialEngine(panels=1).reduce(COUNTS, CORPUS).state, exact=True)
    assert [source.reads(n) for n in range(4)] == [1, 1, 2, 1]
    assert engine.reduce(COUNTS, source).reused
    assert not [key for key in objects(s3) if "spool" in key or "checkpoints" in key]
    assert uploads(s3) == []


SCRIPT = """
import sys
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.statistics.counts import ClassCounts

result = SerialEngine(panels=3, spool=sys.argv[1]).reduce(ClassCounts(3), GeneratedCorpus(100, 90, 3, block_rows=50))
print(result.panels.totals["rows"].sum())
"""


def test_a_script_that_ends_with_a_result_in_hand_leaves_nothing(s3: str) -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, f"{s3}/spool"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "100", "")
    assert objects(s3) == []
