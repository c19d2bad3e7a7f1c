"""Segments: what a task counted in some documents, with its terms in ascending order, in one file.

    offsets, text   terms, ascending; with hashed columns each has its column before it
    cf              how often each term occurs
    columns         with hashed columns only: the id of each term's column
    df              documents that have each id
    indptr          rows, one for each document and region
    ids, counts     entries, ascending within rows; an id is a term, or with hashed columns a column that has terms
    codes, weights  of documents, where there are any

A segment is written once, by one task; merging reads ranges of its terms, and later its rows are read block by block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, narrow
from nfs_dask.arrays.compiling import kernel
from nfs_dask.files.arrayfile import intact, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.kept_columns import KeptTexts, columns_of
from nfs_dask.ingestion.ranges import Sample, sample_terms, terms_nbytes, thinned
from nfs_dask.text.hashed_columns import by_column
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings, TermCounts

BLOCK_ENTRIES = 2 << 20  # that a block aims at: 32 MiB at 16 bytes each

_ROW = 2  # entries that a document costs besides its own


@dataclass(frozen=True, slots=True)
class Segment:
    """What the driver and later tasks know of a segment."""

    name: str
    n_documents: int
    n_regions: int
    n_terms: int
    n_ids: int  # what entries number: terms, or columns that have terms
    nnz: int
    largest: int  # of the counts
    cuts: tuple[int, ...]  # first document of each block
    block_entries: int  # most of a block
    block_documents: int
    rows_nbytes: int  # what rows and their columns take in the file
    terms_nbytes: int  # what the terms take where they are merged
    classes: tuple[Any, ...] | None  # what codes stand for; None: no labels
    weighted: bool
    distinct: tuple[int, ...] = ()  # texts of each of the further columns
    samples: tuple[Sample, ...] = ()  # a few of those in the file

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "samples"}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Segment:
        """As the facts of its file have it."""
        tuples: dict[str, Any] = {name: tuple(facts[name]) for name in ("cuts", "distinct")}
        tuples["classes"] = None if facts["classes"] is None else tuple(facts["classes"])
        samples = thinned([Sample.from_json(found) for found in facts["samples"]])
        return cls(**{**facts, **tuples, "samples": samples})


def write_segment(
    folder: Folder,
    name: str,
    counted: TermCounts,
    settings: TextSettings,
    n_regions: int = 1,
    codes: Array | None = None,
    weights: Array | None = None,
    classes: Array | Sequence[Any] | None = None,
    *,
    kept: Mapping[str, KeptTexts] | None = None,
    block_entries: int = BLOCK_ENTRIES,
) -> Segment:
    """Write what was counted, once it is in order; doing it again leaves the same bytes.

    Parameters
    ----------
    counted
        Terms ascending, and ids ascending in each row. Document i and region r are row ``i * n_regions + r``.
    codes, weights
        For each document; codes are positions in ``classes``, or -1.
    kept
        Further columns.
    block_entries
        About how many entries to read at once later.
    """
    assert (len(counted.indptr) - 1) % n_regions == 0
    kept = kept or {}
    names, terms, rows = _arrays(counted, settings, n_regions)
    if codes is not None:
        rows["codes"] = codes.astype(np.int32)
    if weights is not None:
        rows["weights"] = weights
    ends = rows["indptr"][::n_regions]  # of documents
    cuts = _cut(ends, block_entries)
    edges = np.append(cuts, len(ends) - 1)
    segment = Segment(
        name=name,
        n_documents=len(ends) - 1,
        n_regions=n_regions,
        n_terms=len(names),
        n_ids=len(terms["df"]),
        nnz=len(rows["ids"]),
        largest=int(rows["counts"].max(initial=0)),
        cuts=tuple(cuts.tolist()),
        block_entries=int(np.diff(ends[edges]).max(initial=0)),
        block_documents=int(np.diff(edges).max(initial=0)),
        rows_nbytes=sum(array.nbytes for array in rows.values()),
        terms_nbytes=terms_nbytes(names),
        classes=None if codes is None else tuple(np.asarray(classes).tolist()),
        weighted=weights is not None,
        distinct=tuple(len(column.codes) for column in kept.values()),
    )
    samples = sample_terms(names, terms.get("columns"))
    write_arrays(
        folder,
        name,
        terms | rows | columns_of(kept),
        segment.to_json() | {"samples": [one.to_json() for one in samples]},
    )
    return replace(segment, samples=thinned(samples))


def read_manifest(folder: Folder, name: str) -> Segment | None:
    """What is known of a segment that was written before; None where it was not, or is not whole any more."""
    file = intact(folder, name)
    return None if file is None else Segment.from_facts(file.facts)


def _arrays(
    counted: TermCounts, settings: TextSettings, n_regions: int
) -> tuple[Strings, dict[str, Array], dict[str, Array]]:
    """The terms of a segment, and what it holds of them, and of rows."""
    names, extra = counted.terms, {}
    indptr, ids, counts = counted.indptr, counted.ids, counted.counts
    cf, df = _totals(counted, settings.binary, n_regions)
    if settings.hashed is not None:
        hashed = by_column(counted, settings.hashed)
        names, extra, cf = hashed.terms, {"columns": hashed.columns}, cf[hashed.places]
        indptr, ids, counts = hashed.indptr, hashed.ids, hashed.counts
        _, df = _tally(indptr, ids, counts, hashed.n_columns, n_regions, settings.binary)
    if settings.binary:
        counts = np.ones(len(counts), np.uint8)
    start, stop = int(names.offsets[0]), int(names.offsets[-1])
    offsets = narrow(names.offsets - start if start else names.offsets)
    terms = {"offsets": offsets, "text": names.text[start:stop], "cf": narrow(cf), **extra, "df": narrow(df)}
    rows: dict[str, Array] = {
        "indptr": np.asarray(indptr, np.int64),
        "ids": np.asarray(ids, np.int32),
        "counts": narrow(counts),
    }
    return names, terms, rows


def _totals(counted: TermCounts, binary: bool, n_regions: int) -> tuple[Array, Array]:
    """How often each term occurs, and in how many documents, which are rows where there is one region."""
    if counted.totals is None or n_regions > 1:
        return _tally(counted.indptr, counted.ids, counted.counts, len(counted.terms), n_regions, binary)
    occurrences, documents = counted.totals
    return documents if binary else occurrences, documents


def _tally(indptr: Array, ids: Array, counts: Array, n_ids: int, n_regions: int, binary: bool) -> tuple[Array, Array]:
    """How often each id occurs, int64, and in how many documents, int32."""
    cf, df = np.zeros(n_ids, np.int64), np.zeros(n_ids, np.int32)
    _count(indptr, ids, counts, n_regions, binary, np.full(n_ids, -1, np.int32), cf, df)
    return cf, df


def _cut(ends: Array, block_entries: int) -> Array:
    """First documents of blocks of about so many entries, from where the entries of documents begin and end."""
    costs = ends + _ROW * np.arange(len(ends))
    cuts, n_documents = [], len(ends) - 1
    at = 0
    while at < n_documents:
        cuts.append(at)
        at = max(at + 1, int(np.searchsorted(costs, costs[at] + block_entries, side="right")) - 1)
    return np.array(cuts, np.int64)


@kernel
def _count(indptr, ids, counts, n_regions, binary, last, cf, df):
    """Add up counts and documents of each id; ``last`` has the document that had it last, -1 at first."""
    for row in range(len(indptr) - 1):
        document = row // n_regions
        for i in range(indptr[row], indptr[row + 1]):
            k = ids[i]
            cf[k] += 1 if binary else counts[i]
            if last[k] != document:
                last[k] = document
                df[k] += 1
