"""What the image does in containers without network, rights, or a place to write to: what pages say, and the same bits.

tests/deploy/kubernetes/build.sh FOLDER
NFS_DASK_KUBERNETES=FOLDER python -m pytest -m slow tests/deploy/test_image.py tests/deploy/test_image_runs.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse

from tests.helpers import built_image
from tests.helpers.commands import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def image() -> None:
    built_image.built()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of user 1000 with the same documents in the formats that the page of formats lists, and a matrix."""
    folder = tmp_path_factory.mktemp("data")
    texts = [f"{'win a cheap watch' if spam else 'see you at lunch'} {i} {i % 7} {i % 11}" for i, spam in rows()]
    labels = [("ham", "spam")[spam] for _, spam in rows()]
    table = pa.table({"text": texts, "label": labels})
    parquet.write_table(table, folder / "mail.parquet", compression="zstd")
    csv.write_csv(table, folder / "mail.csv")
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    (folder / "mail.jsonl").write_text(lines)
    (folder / "mail.jsonl.zst").write_bytes(pa.compress(lines.encode(), "zstd", asbytes=True))
    counts = sparse.random(300, 40, 0.2, format="csr", random_state=0, data_rvs=lambda n: np.ones(n))
    obs = pd.DataFrame({"label": labels}, index=[str(i) for i in range(300)])
    anndata.AnnData(counts, obs=obs).write_h5ad(folder / "cells.h5ad")
    for path in (folder, *folder.iterdir()):
        os.chown(path, 1000, 1000)
    return folder


def rows() -> list[tuple[int, bool]]:
    return [(i, i % 3 == 0) for i in range(300)]


FORMATS = ("csv", "jsonl", "jsonl.zst", "parquet")
FIT = "--method multinomial -k 10"


def test_every_library_that_is_left_in_the_image_loads() -> None:
    """Those that are stripped, too. Two of numba's look whether there is a TBB or an OpenMP: there never was one."""
    failed = json.loads(built_image.in_image("python", "-c", LOAD_ALL))
    missing = {name.partition(".")[0]: told.partition(":")[0].partition(".so")[0] for name, told in failed.items()}
    assert missing == {"tbbpool": "libtbb", "omppool": "libgomp"}, failed
    assert all("cannot open shared object file: No such file" in told for told in failed.values())


LOAD_ALL = """
import ctypes, glob, json, os, sys
import numpy, scipy, sklearn, pyarrow, numba
failed = {}
for path in sorted(glob.glob("/opt/nfs-dask/lib/**/*.so*", recursive=True)):
    try:
        ctypes.CDLL(path)
    except OSError as error:
        failed[os.path.basename(path)] = str(error)
json.dump(failed, sys.stdout)
"""


def test_the_image_reads_each_format_and_fits_as_this_machine_does(data: Path, tmp_path: Path) -> None:
    run("ingest", data / "mail.csv", tmp_path / "mail.zarr", "--label-column", "label")
    run("fit", tmp_path / "mail.zarr", tmp_path / "model", *FIT.split())
    want = run("features", tmp_path / "model", "--json").stdout
    for ending in FORMATS:
        store, model = f"/data/{ending}.zarr", f"/data/{ending}.model"
        built_image.in_image("sh", "-c", f"nfs-dask ingest /data/mail.{ending} {store} --label-column label "
                             f"&& nfs-dask fit {store} {model} {FIT}", folder=data)  # fmt: skip
        assert run("features", data / f"{ending}.model", "--json").stdout == want, ending


def test_the_image_does_what_pages_say_of_it(data: Path) -> None:
    """Each in a container of its own, with no network."""
    assert "The words that were chosen" in built_image.in_image("nfs-dask", "demo")
    ingest = "ingest /data/cells.h5ad /data/cells.zarr --label-column label --overwrite"
    built_image.in_image("nfs-dask", *ingest.split(), folder=data)
    fit = f"fit /data/cells.zarr /data/cells.model {FIT} --workers 2 --memory-limit 1GiB --overwrite"
    built_image.in_image("nfs-dask", *fit.split(), folder=data)
    model = "/data/parquet.model"
    for words in (
        f"evaluate {model} /data/mail.csv --label-column label",
        f"predict {model} /data/mail.parquet --out /data/told.csv --overwrite",
        f"features {model} --out /data/words.csv --overwrite",
        f"sql {model} --table words",
        "doctor --store /data/cells.zarr",
        "info /data/cells.zarr",
        "plan /data/cells.zarr --workers 4",
    ):
        assert built_image.in_image("nfs-dask", *words.split(), folder=data), words
    assert "spam" in built_image.in_image("nfs-dask", "explain", model, "win a cheap watch", folder=data)


def test_a_scheduler_and_a_worker_of_the_image_tell_their_health_and_metrics() -> None:
    told = json.loads(built_image.in_image("python", "-c", ASK))
    assert {name: one[0] for name, one in told.items()} == dict.fromkeys(told, 200)
    assert "dask_scheduler_workers" in told["8787/metrics"][1]
    assert "dask_worker_threads" in told["8788/metrics"][1]


ASK = """
import json, subprocess, sys, time, urllib.request
address = "tcp://127.0.0.1:8786"
commands = [["dask-scheduler", "--host", "127.0.0.1", "--dashboard-address", ":8787"],
            ["dask-worker", address, "--dashboard-address", ":8788", "--no-dashboard", "--nthreads", "1"]]
begun = [subprocess.Popen(words, stdout=sys.stderr) for words in commands]
def ask(page):
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except OSError:
            time.sleep(0.25)
    raise SystemExit(f"nobody answers on {page}")
pages = [f"{port}/{page}" for port in (8787, 8788) for page in ("health", "metrics")]
json.dump({page: ask(page) for page in pages}, sys.stdout)
for one in begun:
    one.terminate()
for one in begun:
    one.wait()
"""
