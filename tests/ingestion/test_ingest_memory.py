"""Ten million distinct terms in workers of 1 GiB: they stay under what the plan said, and the client hardly grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from distributed import Client, LocalCluster

from nfs_dask import DaskEngine, ingest
from nfs_dask.ingestion import text_ingest as texts
from nfs_dask.ingestion.text_plan import TextPlan
from nfs_dask.units import GiB, MiB

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

STATUS = Path("/proc/self/status")
DIGITS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
WORDS = 16_000_000
LETTERS = 5  # of the longest word
TOKENS = 40  # of a document
ROWS, FILES = 125_000, 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not STATUS.exists(), reason="peaks are read from /proc"),
]


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def memory(mark: str) -> int:
    """Bytes that this process has (VmRSS), or has had at most since the mark was reset (VmHWM)."""
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(mark))


class Corpus(NamedTuple):
    files: str
    n_rows: int
    nnz: int
    words: np.ndarray  # the numbers of those that occur


def spelled(ids: np.ndarray) -> np.ndarray:
    """The words of some numbers, padded with blanks, (..., LETTERS + 1) uint8."""
    letters = np.empty((*ids.shape, LETTERS + 1), np.uint8)
    for place in range(LETTERS):
        digit = ids >> 5 * (LETTERS - 1 - place)
        letters[..., place] = np.where(digit == 0, ord(" "), DIGITS[digit & 31])
    letters[..., LETTERS] = ord(" ")
    return letters


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Documents of words, of which half are drawn evenly and half by Zipf's law."""
    folder = tmp_path_factory.mktemp("corpus")
    seen, nnz = np.zeros(WORDS, bool), 0
    for number in range(FILES):
        rng = np.random.default_rng([3, number])
        ids = rng.integers(32, WORDS, (ROWS, TOKENS))  # a number below 32 is one letter, which is no word
        ids[:, ::2] = 32 + np.exp(rng.random((ROWS, TOKENS // 2)) * np.log(WORDS - 33)).astype(np.int64)
        seen[ids] = True
        nnz += ROWS + int(np.count_nonzero(np.diff(np.sort(ids, axis=1))))
        rows = pa.array(spelled(ids).reshape(-1).view(f"S{TOKENS * (LETTERS + 1)}"), pa.binary()).cast(pa.string())
        table = pa.table({"text": rows, "label": rng.integers(2, size=ROWS)})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=25_000)
    pa.default_memory_pool().release_unused()
    return Corpus(str(folder / "*.parquet"), FILES * ROWS, nnz, np.flatnonzero(seen))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[TextPlan]:
    """The plans that are made."""
    make: Callable[..., TextPlan] = texts.make_text_plan
    made: list[TextPlan] = []

    def noting(*given: Any) -> TextPlan:
        made.append(make(*given))
        return made[-1]

    monkeypatch.setattr(texts, "make_text_plan", noting)
    return made


@pytest.fixture(scope="module")
def small_workers() -> Iterator[Client]:
    """Two workers of 1 GiB; those that other tests share have more."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=GiB, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


@pytest.mark.parametrize("settings", [{}, {"tfidf": True}], ids=["counts", "weights"])
def test_peaks_are_as_planned(
    small_workers: Client,
    corpus: Corpus,
    plans: list[TextPlan],
    tmp_path: Path,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "nfs_dask.documents.document_source.FEWEST_TASKS", 4
    )  # as long as those of a corpus five times as large
    few = corpus.files.replace("*", "part-0")
    ingest(few, tmp_path / "few.zarr", label_column="label", engine=DaskEngine(), **settings)  # the client gets warm
    small_workers.restart(timeout=60)
    reset_peak()
    before = memory("VmRSS")
    dataset = ingest(corpus.files, tmp_path / "store.zarr", label_column="label", engine=DaskEngine(), **settings)
    grown = memory("VmHWM") - before
    peaks, planned = small_workers.run(memory, "VmHWM"), plans[-1].peak_nbytes

    assert dataset.n_features == len(corpus.words) > 10_000_000
    assert (dataset.n_rows, dataset.nnz) == (corpus.n_rows, corpus.nnz)
    # In ASCII, digits come before letters, and a word before those that begin with it: so are bytes compared.
    words = np.sort(np.strings.strip(spelled(corpus.words).view(f"S{LETTERS + 1}").ravel()))
    some = np.linspace(0, len(words) - 1, 1000).astype(np.int64)
    assert dataset.names(some) == [word.decode() for word in words[some]]

    assert max(peaks.values()) <= planned <= GiB
    assert max(peaks.values()) >= planned / 1.5, "the plan is idle"
    assert grown < 48 * MiB, "the client holds something for each term, or for each document"
