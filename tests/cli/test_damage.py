"""Damaged stores and models at the command line: exit code 3, and one sentence that names the place."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.files.folder import Folder
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.shards import ArrayWriter
from nfs_dask.store.writer import write_store
from tests.helpers.commands import run

RNG = np.random.default_rng(0)
X = sp.csr_array(RNG.poisson(0.5, (60, 12)))
SMALL = Layout(chunk=16, shard=64, row_chunk=8, row_shard=32, block=50)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: Any) -> Path:
    place: Path = tmp_path_factory.mktemp("sound")
    write_store(open_source(X, np.array(["a", "b"])[np.arange(60) % 2]), place / "store", layout=SMALL)
    nfs.SparseMultinomialNB(k=4, engine=SerialEngine()).fit(nfs.open_dataset(place / "store")).save(place / "model")
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy, and no more than a minute for whoever reads it."""

    def late(*_: Any) -> None:
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield Path(shutil.copytree(sound, tmp_path / "copy"))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def codes(place: Path) -> None:
    """Label codes beyond the classes, under checksums that fit."""
    folder = Folder(str(place / "store"))
    numbers = read_header(folder).codes
    assert numbers is not None
    with ArrayWriter(folder, numbers) as writer:
        writer.add(np.full(60, 2**31 - 1, np.int32))


def truncated(name: str) -> Callable[[Path], None]:
    return lambda place: os.truncate(place / name, (place / name).stat().st_size // 2)


def in_place(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def harm(place: Path) -> None:
        (place / name).unlink()
        make(place / name)

    return harm


def of_header(old: str, new: str) -> Callable[[Path], None]:
    def harm(place: Path) -> None:
        content = (place / "store" / "zarr.json").read_text()
        assert old in content
        (place / "store" / "zarr.json").write_text(content.replace(old, new))

    return harm


STORES = {
    "codes beyond the classes": codes,
    "a header cut off": truncated("store/zarr.json"),
    "an array cut off": truncated("store/obs/label/codes/c/0"),
    "a pipe for a header": in_place("store/zarr.json", os.mkfifo),
    "a pipe for an array": in_place("store/obs/label/codes/c/0", os.mkfifo),
    "a folder for an array": in_place("store/obs/label/codes/c/0", os.mkdir),
    "a link to itself": in_place("store/obs/label/codes/c/0", lambda path: path.symlink_to(path)),
    "chunks of nothing": of_header('"row_chunk": 8', '"row_chunk": 0'),
    "half chunks": of_header('"row_chunk": 8', '"row_chunk": 8.0'),
    "another class": of_header('"b"', '"c"'),
}
MODELS = {
    "cut off": truncated("model/model.json"),
    "a pipe": in_place("model/model.json", os.mkfifo),
    "a digit changed": lambda place: (place / "model" / "model.json").write_text(
        (place / "model" / "model.json").read_text().replace('"alpha": 1.0', '"alpha": 2.0')
    ),
}


def assert_refused(place: Path, *command: Any) -> None:
    shown = run(*command, code=3).output.strip().splitlines()
    assert shown[-1].startswith("Error: ") and str(place) in shown[-1], shown
    assert not [line for line in shown if "Traceback" in line]


@pytest.mark.parametrize("harm", STORES)
def test_a_damaged_store_is_said_to_be(harm: str, place: Path) -> None:
    shutil.rmtree(place / "store" / "nfs_dask" / "statistics")
    STORES[harm](place)
    store = place / "store"
    for command in (("info", store), ("info", store, "--verify"), ("fit", store, place / "new", "-k", 3)):
        assert_refused(place, *command)
    assert_refused(place, "path", store)
    assert_refused(place, "evaluate", place / "model", store)
    if "header" in harm or "chunk" in harm or harm[-5:] == "class":  # what a plan looks at
        assert_refused(place, "plan", store)


@pytest.mark.parametrize("harm", MODELS)
def test_a_damaged_model_is_said_to_be(harm: str, place: Path) -> None:
    MODELS[harm](place)
    for command in ("info",), ("predict",), ("evaluate",):
        assert_refused(place, *command, place / "model", *([] if command == ("info",) else [place / "store"]))


@pytest.mark.parametrize("kind", ["", ".npz", ".svmlight", ".h5ad", ".zarr"])
@pytest.mark.parametrize("command", [("info",), ("plan",), ("path",), ("fit", "-k", "3")])
def test_a_pipe_is_no_dataset(command: tuple[str, ...], kind: str, place: Path) -> None:
    os.mkfifo(place / f"pipe{kind}")
    name, *options = command
    assert_refused(place, name, place / f"pipe{kind}", *([place / "new"] if name == "fit" else []), *options)


@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".jsonl", ".parquet", ".txt", ".tar"])
def test_a_pipe_is_no_document(kind: str, place: Path) -> None:
    os.mkfifo(place / f"pipe{kind}")
    options = [] if kind in (".txt", ".tar") else ["--text-column", "text"]
    assert_refused(place, "ingest", place / f"pipe{kind}", place / "new", *options)
