"""Pipes in the place of files are refused rather than waited for, and an interruption ends whatever waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anndata
import numpy as np
import pytest
from pandas import DataFrame
from scipy.sparse import csr_matrix

import nfs_dask as nfs
from tests.helpers.slow_blocks import slow_environment

READ_ALL = """
import os, sys
import nfs_dask as nfs
place, *names = sys.argv[1:]
for name in names:
    os.rename(f"{place}/{name}", "aside")
    os.mkfifo(f"{place}/{name}")
    try:
        data = nfs.open_dataset(place, labels="kind")
        model = nfs.SparseMultinomialNB(k=2).fit(data)
        nfs.ingest(place, "copy.zarr", labels="kind", overwrite=True)
        print(name, "was read")
    except nfs.NfsDaskError as error:
        print(name, "refused:", error)
    os.replace("aside", f"{place}/{name}")
"""
OPEN = """
import sys
import nfs_dask as nfs
for name in sys.argv[1:]:
    try:
        nfs.ingest(name, "new.zarr", label_column="kind")
        print(name, "was read")
    except nfs.NfsDaskError as error:
        print(name, "refused:", error)
"""
# A thread that nothing ends, as one that waits for a pipe or a disk that has gone.
STUCK = """
import threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
from nfs_dask.cli.main import cli
cli(prog_name="nfs-dask")
"""


def said(folder: Path, program: str, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.filterwarnings("ignore:zarr v3 will become the only option")
@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_pipe_in_the_place_of_a_chunk(tmp_path: Path, layout: str, version: int) -> None:
    counts = np.random.default_rng(0).poisson(1.0, (40, 6)).astype(np.float32)
    obs = DataFrame({"kind": ["b", "t"] * 20, "age": np.arange(40)}, index=[f"cell{i}" for i in range(40)])
    var = DataFrame(index=[f"gene{i}" for i in range(6)])
    data = anndata.AnnData(csr_matrix(counts) if layout == "csr" else counts, obs=obs, var=var)
    with anndata.settings.override(zarr_write_format=version):
        data.write_zarr(tmp_path / "cells.zarr")
    metadata = {".zgroup", ".zarray", ".zattrs", ".zmetadata", "zarr.json"}
    read = ("X", "obs/kind", "obs/age", "obs/_index", "var/_index")
    files = (path.relative_to(tmp_path / "cells.zarr") for path in (tmp_path / "cells.zarr").rglob("*"))
    names = [str(name) for name in files if name.name not in metadata and (tmp_path / "cells.zarr" / name).is_file()]
    names = [name for name in names if name.startswith(read)]
    assert len(names) > 5
    for line in said(tmp_path, READ_ALL, "cells.zarr", *names):
        assert "is not a file" in line, line


def test_a_pipe_at_any_other_door(tmp_path: Path) -> None:
    endings = ("csv", "csv.gz", "tsv", "jsonl", "txt", "parquet", "xlsx", "zip", "tar", "tar.gz", "npz", "h5ad", "svm")
    names = [f"mail.{ending}" for ending in endings]
    for name in names:
        os.mkfifo(tmp_path / name)
    lines = said(tmp_path, OPEN, *names)
    assert len(lines) == len(names)
    for line in lines:
        assert " refused: " in line, line


@pytest.mark.slow  # other jobs of the machine take from its seconds
@pytest.mark.parametrize("again", [False, True])
def test_an_interruption_ends_a_process_whose_threads_wait(tmp_path: Path, again: bool) -> None:
    texts = [f"word{i % 7} more{i % 3}" for i in range(600)]
    nfs.ingest(texts, tmp_path / "m.zarr", labels=[i % 2 for i in range(600)], block_bytes=1000)
    words = ["fit", "m.zarr", "model", "-k", "2", "--no-cache", "--run", "run"]
    environment = slow_environment(tmp_path / "slow", 3.0)
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "events.jsonl").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        for line in process.stderr:
            if "ended by SIGTERM" in line:
                break
        ended = time.monotonic()
        if again:
            process.send_signal(signal.SIGTERM)
        code = process.wait(20)
        assert code == (-signal.SIGTERM if again else 143)
        assert time.monotonic() - ended < (2 if again else 7)
