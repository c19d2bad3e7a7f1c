"""Writing a store on a cluster: the same store, whoever writes it and whoever dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import Client

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.ingestion.ingest import ingest
from nfs_dask.sources import svmlight
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.receipts import verify
from nfs_dask.testing import assert_same
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(6000, 900, 3, words_per_document=20, block_rows=250)


def objects(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.fixture
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.ingestion.ingest.RUN_NBYTES", CORPUS.read_nbytes // 9)


@pytest.mark.usefixtures("many_runs")
def test_a_cluster_writes_the_bytes_that_one_process_writes(mortal_cluster: Client, tmp_path: Path) -> None:
    one = ingest(CORPUS, tmp_path / "one.zarr", engine=SerialEngine())
    many = ingest(CORPUS, tmp_path / "many.zarr", engine=DaskEngine())
    assert many.fingerprint == one.fingerprint
    assert objects(tmp_path / "many.zarr") == objects(tmp_path / "one.zarr")
    verify(tmp_path / "many.zarr")


@pytest.mark.usefixtures("many_runs")
def test_a_worker_killed_while_it_writes(mortal_cluster: Client, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    source = Misbehaving(CORPUS, "kill", at_block=13, marks=str(marks))
    written = ingest(source, tmp_path / "killed.zarr", engine=DaskEngine())
    assert written.fingerprint == ingest(CORPUS, tmp_path / "one.zarr", engine=SerialEngine()).fingerprint
    assert list(marks.glob("did-*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed.zarr", "marks", "one.zarr"]


def test_a_large_job_is_shipped_once_to_each_worker(mortal_cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.engine.distributed.SMALL_JOB", 0)
    replicated = []
    replicate = Client.replicate
    monkeypatch.setattr(Client, "replicate", lambda self, f, **k: (replicated.append(f), replicate(self, f, **k))[1])
    for panels, jobs in ((1, 1), (7, 2)):  # a scatter pass has two: to spool, and to fold
        replicated.clear()
        state = DaskEngine(panels=panels).reduce(ClassCounts(3), CORPUS).state
        assert_same(state, SerialEngine().reduce(ClassCounts(3), CORPUS).state, exact=True)
        assert len(replicated) == jobs


def test_lines_of_svmlight_are_read_by_workers_alone(
    cluster: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{i % 3} {i % 7 + 1}:{i % 5 + 1} 9:1\n" for i in range(300)))
    monkeypatch.setattr(svmlight, "PIECE_NBYTES", 500)
    one = ingest(path, tmp_path / "one.zarr", engine=SerialEngine())

    def parse(*_: object) -> None:
        raise AssertionError("the driver reads no lines")

    monkeypatch.setattr(svmlight, "parse", parse)
    many = ingest(path, tmp_path / "many.zarr", engine=DaskEngine())
    assert many.fingerprint == one.fingerprint and many.n_rows == 300
    assert objects(tmp_path / "many.zarr") == objects(tmp_path / "one.zarr")
