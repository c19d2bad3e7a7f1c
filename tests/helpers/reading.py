"""How the tests of documents in files read them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from nfs_dask.documents import checking, csv_rows, parquet
from nfs_dask.documents import lines as cutting


@dataclass
class Found:
    texts: list[Any] = field(default_factory=list)  # str, or a tuple of one for each region
    labels: list[Any] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    seen: int = 0
    empty: int = 0
    n_batches: int = 0


def read(source: Any) -> Found:
    """All documents, read by copies of the source as workers get them."""
    found = Found()
    assert source.n_pieces == len(source.pieces)
    for piece in range(source.n_pieces):
        for batch in pickle.loads(pickle.dumps(source)).batches(piece):
            regions = [strings.to_list() for strings in batch.texts]
            assert {len(region) for region in regions} == {batch.n_documents}
            assert batch.seen == batch.n_documents + len(batch.skipped)
            assert len(batch.problems) == len(batch.skipped)
            assert np.all(np.diff(batch.skipped) > 0)
            assert source.labelled == (batch.labels is not None)
            assert source.weighted == (batch.weights is not None)
            found.texts += regions[0] if len(regions) == 1 else zip(*regions, strict=True)
            if source.labelled:
                assert len(batch.labels) == batch.n_documents
                found.labels += list(batch.labels)
            if source.weighted:
                assert batch.weights.dtype == np.float64
                found.weights += batch.weights.tolist()
            found.problems += [(problem.kind, problem.where, problem.what) for problem in batch.problems]
            found.seen += batch.seen
            found.empty += batch.empty
            found.n_batches += 1
    return found


def places(found: Found) -> list[tuple[str, int]]:
    """Kind, and line or row, of each problem."""
    return [(kind, int(where.rsplit(" ", 1)[1])) for kind, where, _ in found.problems]


def shrink(monkeypatch: Any, piece: int, batch: int = 1 << 22) -> None:
    """Make pieces and batches small, and files too cheap to be put together."""
    for module in (cutting, parquet):
        monkeypatch.setattr(module, "PIECE_NBYTES", piece)
    for module in (cutting, csv_rows, parquet, checking):
        monkeypatch.setattr(module, "BATCH_NBYTES", batch)
    monkeypatch.setattr(cutting, "FILE_NBYTES", piece)


def zstd(content: bytes) -> bytes:
    """In two frames, as tools that append write it."""
    half = len(content) // 2
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in (content[:half], content[half:]))


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
