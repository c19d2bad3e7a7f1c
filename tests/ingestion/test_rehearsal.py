"""What is done once before the size of a worker is taken: nothing is left of it, and nothing new is compiled later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pandas as pd
import pytest

from nfs_dask.documents.lines import ARROW_NBYTES
from nfs_dask.ingestion.text_ingest import rehearse

COLD = """
import sys
from functools import partial
from pathlib import Path
import pandas as pd
import nfs_dask as nfs
from nfs_dask.cluster.warming import Warming, warm_up
from nfs_dask.ingestion.text_ingest import rehearse

def compiled():
    return sorted(str(file) for file in Path(sys.argv[1]).rglob("*.nbc"))

folder = Path(sys.argv[2])
for kind in ("csv", "jsonl", "parquet"):
    warm_up([], "", Warming(rehearsal=partial(rehearse, kind)))
before = compiled()
assert len(before) > 20, before
texts = ["tea with milk", "d\\u00e9j\\u00e0 vu", "", "coffee and tea"] * 40
frame = pd.DataFrame({"text": texts, "label": ["a", "b", "b", "a"] * 40})
frame.to_parquet(folder / "a.parquet")
frame.to_csv(folder / "a.csv")
frame.to_json(folder / "a.jsonl", orient="records", lines=True)
for number, source in enumerate((frame, folder / "a.parquet", folder / "a.csv", folder / "a.jsonl")):
    options = {"ngrams": (1, 1 + number), "min_df": 1 + number, "text_column": "text"}
    nfs.ingest(source, folder / str(number), label_column="label", engine=nfs.SerialEngine(), **options)
print(sorted(set(compiled()) - set(before)))
"""


def test_nothing_is_left_of_it() -> None:
    for kind in (None, "csv", "jsonl", "parquet"):
        rehearse.__wrapped__(kind)
    assert not [name for name in fsspec.filesystem("memory").store if "rehearsal" in name]


READ = """
import sys
import psutil
from nfs_dask.documents.open_documents import open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.ingestion.text_ingest import rehearse

def held():
    return psutil.Process().memory_info().rss

rehearse(sys.argv[2])
before = held()
documents = open_documents(sys.argv[1], DocumentParameters(text_column="text", label_column="label"))
n = sum(1 for number in range(documents.n_pieces) for _ in documents.batches(number))
print(n, held() - before)
"""


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_libraries_are_there_when_a_worker_is_warm(kind: str, tmp_path: Path) -> None:
    """And so are not planned for besides: what reading adds to a process is."""
    texts = [f"tea with milk, {number}" for number in range(100_000)]
    frame, file = pd.DataFrame({"text": texts, "label": ["a", "b"] * 50_000}), tmp_path / f"texts.{kind}"
    if kind == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        getattr(frame, f"to_{kind}")(file)
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", READ, str(file), kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    n, nbytes = map(int, done.stdout.split())
    assert n >= 1 and nbytes < ARROW_NBYTES < 76 << 20


@pytest.mark.slow
def test_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", COLD, str(cache), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
    assert ": compiling once" in done.stderr
