"""Ingests of texts that are disturbed: the same store, whoever dies, and nothing done again that was finished."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client

from nfs_dask import ClusterError, DaskEngine, DataWarning, InputError, SerialEngine, ingest
from nfs_dask.documents import lines as cutting
from nfs_dask.documents.open_documents import open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.engine.distributed import ClusterExecutor
from nfs_dask.engine.serial import SerialExecutor
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion import text_ingest as texts
from nfs_dask.store.publish import ingest_folder
from nfs_dask.store.receipts import verify
from tests.helpers import halting
from tests.helpers.commands import as_json
from tests.helpers.fatal import Fatal

SETTINGS: dict[str, Any] = {"ngrams": (1, 2), "min_df": 2, "tfidf": True}
WORKERS = ("--workers", "2")
OPTIONS = ("--label-column", "label", "--ngrams", "1,2", "--min-df", "2", "--tfidf")


def write_mail(folder: Path) -> Path:
    """A file of documents with labels."""
    rng = np.random.default_rng(5)
    words = [f"word{i}" for i in range(300)]
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(400)]
    file = folder / "mail.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": len(text) % 3}) + "\n" for text in texts))
    return file


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    return write_mail(tmp_path)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, segments and ranges so small that there are many of each."""
    make = texts.make_text_plan
    monkeypatch.setattr(cutting, "PIECE_NBYTES", halting.PIECE_NBYTES)
    tiny = {"segment_nbytes": 1, "range_nbytes": 2000}
    monkeypatch.setattr(texts, "make_text_plan", lambda *given: replace(make(*given), **tiny))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of one process, one piece and one segment."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ingest(write_mail(folder), folder / "mail.zarr", label_column="label", engine=SerialEngine(), **SETTINGS)
    return folder / "mail.zarr"


def objects(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


# Workers that die, and tasks that are repeated


@pytest.fixture
def dying(mail: Path, tmp_path: Path, small: None) -> Callable[[int], Fatal]:
    """The mail, opened, with so many deaths in it."""
    marks = tmp_path / "marks"
    marks.mkdir()
    return lambda times: Fatal(open_documents(mail, DocumentParameters(label_column="label")), 7, str(marks), times)


def test_a_worker_killed_while_it_counts(
    mortal_cluster: Client, dying: Callable[[int], Fatal], undisturbed: Path, tmp_path: Path
) -> None:
    documents = dying(1)
    assert documents.n_pieces > 20
    ingest(documents, tmp_path / "mail.zarr", engine=DaskEngine(), **SETTINGS)
    assert documents.deaths == 1
    assert objects(tmp_path / "mail.zarr") == objects(undisturbed)
    verify(tmp_path / "mail.zarr")
    assert not list(tmp_path.glob(".*"))


def test_workers_that_die_each_time_leave_what_the_others_finished(
    mortal_cluster: Client, dying: Callable[[int], Fatal], undisturbed: Path, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match="workers died"):
        ingest(dying(99), tmp_path / "mail.zarr", engine=DaskEngine(), **SETTINGS)
    kept = Path(ingest_folder(Folder.of(tmp_path / "mail.zarr")).location)
    assert halting.finished(kept)
    ingest(dying(0), tmp_path / "mail.zarr", engine=SerialEngine(), **SETTINGS)
    assert objects(tmp_path / "mail.zarr") == objects(undisturbed)
    assert not kept.exists()


@pytest.mark.usefixtures("small")
def test_every_task_run_twice_at_once(
    mortal_cluster: Client, mail: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ClusterExecutor.map_items

    def twice_at_once(
        self: ClusterExecutor, function: Callable[[Any], Any], items: Sequence[Any], **how: Any
    ) -> list[Any]:
        return run(self, function, [item for item in items for _ in range(2)], **how)[::2]

    monkeypatch.setattr(ClusterExecutor, "map_items", twice_at_once)
    ingest(mail, tmp_path / "mail.zarr", label_column="label", engine=DaskEngine(), **SETTINGS)
    assert objects(tmp_path / "mail.zarr") == objects(undisturbed)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "forgetful",
    [pytest.param(False, id="one after another", marks=pytest.mark.slow), pytest.param(True, id="as if not finished")],
)
def test_every_task_run_twice(
    mail: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    run = SerialExecutor.map_items
    functions = set()

    def twice(self: SerialExecutor, function: Callable[[Any], Any], items: Sequence[Any], **how: Any) -> list[Any]:
        @functools.wraps(function)
        def again(item: Any) -> Any:
            function(item)
            if forgetful and hasattr(item, "manifest"):
                os.unlink(Path(item.folder, item.manifest))
            return function(item)

        functions.add(function.__name__)
        return run(self, again, items, **how)

    monkeypatch.setattr(SerialExecutor, "map_items", twice)
    ingest(mail, tmp_path / "mail.zarr", label_column="label", engine=SerialEngine(), **SETTINGS)
    assert {"count_texts", "merge_range"} < functions, "and those that write"
    assert objects(tmp_path / "mail.zarr") == objects(undisturbed)


# The command itself


def start(*arguments: Any, log: Path, **environment: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, halting.__file__, *map(str, arguments)]
    with log.open("wb") as file:
        added = {name.upper(): str(value) for name, value in environment.items()}
        return subprocess.Popen(command, env=os.environ | added, stdout=file, stderr=file)


@contextmanager
def halted(*arguments: Any, store: Path, log: Path, seconds: float = 3600, after: int = 5) -> Iterator[Any]:
    """The command, once it has counted some pieces and not all."""
    process = start(*arguments, log=log, halt_after=after, halt_seconds=seconds)
    kept = Path(ingest_folder(Folder.of(store)).location)
    try:
        deadline = time.monotonic() + 60
        while len(list(kept.glob("*-*.json"))) < after:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def manifests(times: dict[str, int]) -> list[str]:
    return [name for name in times if name.endswith(".json")]


@pytest.mark.parametrize(
    "where", [pytest.param((), id="here", marks=pytest.mark.slow), pytest.param(WORKERS, id="workers")]
)
def test_a_killed_command_goes_on(mail: Path, undisturbed: Path, tmp_path: Path, where: tuple[str, ...]) -> None:
    store, log = tmp_path / "mail.zarr", tmp_path / "log"
    command = ("ingest", mail, store, *OPTIONS, *where)
    with halted(*command, store=store, log=log) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        _, alive = psutil.wait_procs(family, timeout=60)
        assert not alive, "workers outlive the command, and may write when it goes on"
    kept = Path(ingest_folder(Folder.of(store)).location)
    before = halting.finished(kept)
    assert len(manifests(before)) >= 5
    assert not store.exists()

    assert start(*command, log=log, note=tmp_path / "note").wait(timeout=60) == 0, log.read_text()
    assert "going on with the ingest" in log.read_text()
    after = json.loads((tmp_path / "note").read_text())
    assert len(manifests(after)) > len(manifests(before)) + 5
    assert before.items() <= after.items(), "what was finished has not been written again"
    assert objects(store) == objects(undisturbed)
    assert sorted(os.listdir(tmp_path)) == ["log", "mail.jsonl", "mail.zarr", "note"]


@pytest.mark.parametrize(
    "where", [pytest.param((), id="here"), pytest.param(WORKERS, id="workers", marks=pytest.mark.slow)]
)
def test_an_interrupted_command_says_how_to_go_on(mail: Path, tmp_path: Path, where: tuple[str, ...]) -> None:
    store, log = tmp_path / "mail.zarr", tmp_path / "log"
    with halted("ingest", mail, store, *OPTIONS, *where, store=store, log=log, seconds=1) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
    kept = Path(ingest_folder(Folder.of(store)).location)
    said = log.read_text()
    assert f"what was finished is kept in {kept}" in said
    assert f"Error: interrupted; {store} is as it was before" in said
    assert "the same command goes on with what was finished" in said
    assert "Traceback" not in said
    assert halting.finished(kept)
    written = as_json("ingest", mail, store, "--clean-up", "--ngrams", "2")
    assert written["rows"] == 400
    assert sorted(os.listdir(tmp_path)) == ["log", "mail.jsonl", "mail.zarr"]


def test_other_documents_are_not_mixed_with_those_that_were_counted(mail: Path, tmp_path: Path) -> None:
    store, log = tmp_path / "mail.zarr", tmp_path / "log"
    command = ("ingest", mail, store, *OPTIONS)
    with halted(*command, store=store, log=log) as process:
        process.kill()
    kept = Path(ingest_folder(Folder.of(store)).location)
    before = halting.finished(kept)
    with mail.open("a") as file:
        file.write('{"text": "one more", "label": 1}\n')
    refused = as_json(*command, code=3)
    assert refused["kind"] == "ResumeError"
    assert "other documents" in refused["error"] and "--clean-up" in refused["error"]
    assert halting.finished(kept) == before
    assert as_json(*command, "--clean-up")["rows"] == 401
    assert not kept.exists()


@pytest.mark.usefixtures("small")
def test_an_ingest_that_failed_goes_on_without_the_bad_documents(mail: Path, tmp_path: Path) -> None:
    lines = mail.read_text().splitlines(keepends=True)
    mail.write_text("".join([*lines[:300], '{"text": \n', *lines[300:]]))
    store = tmp_path / "mail.zarr"
    kept = Path(ingest_folder(Folder.of(store)).location)
    with pytest.raises(InputError, match=r"line 301.*on_error=.skip"):
        ingest(mail, store, engine=SerialEngine())
    before = halting.finished(kept)
    assert before

    class Interrupted(Exception):
        pass

    def interrupt(*_: Any, **__: Any) -> None:
        assert before.items() <= halting.finished(kept).items()
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "write_store", interrupt)
        with pytest.raises(Interrupted):
            ingest(mail, store, on_error="skip", engine=SerialEngine())
    with pytest.raises(InputError, match="line 301"):  # who has not asked to skip does not get what was skipped
        ingest(mail, store, engine=SerialEngine())
    with pytest.warns(DataWarning, match="1 of 401 documents"):
        assert ingest(mail, store, on_error="skip", engine=SerialEngine()).n_rows == 400


def test_what_another_version_counted_is_not_taken_over(
    mail: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = tmp_path / "mail.zarr", tmp_path / "log"
    with halted("ingest", mail, store, store=store, log=log) as process:
        process.kill()
    monkeypatch.setattr("nfs_dask.ingestion.ingest_folder.__version__", "9.9")
    assert "other version of nfs-dask" in as_json("ingest", mail, store, code=3)["error"]
