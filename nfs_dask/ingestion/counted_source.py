"""Counted texts as rows of a matrix: the entries of segments, under the columns that merging gave their terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, Kind
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import InputError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.given_vocabulary import Fixed
from nfs_dask.ingestion.kept_columns import KeptColumns
from nfs_dask.ingestion.merged_columns import MergedColumns
from nfs_dask.ingestion.merging import MergedRange
from nfs_dask.ingestion.segments import Segment
from nfs_dask.sources.labels import merge_classes
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.store.names import checked_columns
from nfs_dask.text.features import check_regions, column_prefix
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from nfs_dask.text.tfidf import inverse_document_frequencies, weigh

_WIDE = 2**31 - 1  # columns that int32 can number
_NAMES = 1 << 16  # columns whose names are read together
_STRETCH = 1 << 16  # ids whose columns are looked up together


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a segment goes with every task."""

    name: str
    number: int  # among all segments, as the ranges know it
    first_row: int
    first_block: int
    n_documents: int
    n_ids: int
    cuts: tuple[int, ...]
    codes: Array | None  # global code of each of its classes, and UNLABELLED at the end


class CountedTexts(Source):
    """Rows are documents, columns the terms that were kept: those of the first region, then those of the second.

    Column c of region r is ``r * n_terms + c``. A row of tf-idf is normalized as a whole, over all of its regions.

    Parameters
    ----------
    folder
        Where segments and ranges lie.
    segments, ranges
        What counting and merging said; documents are in the order of the segments.
    regions
        Their names.
    classes
        All labels, sorted; None: those of the segments together, if they have any.
    fixed
        The vocabulary that was merged with, if one was given.
    n_documents
        How many documents the frequencies are of that tf-idf goes by; None: these.
    kept
        Names of the further columns.
    """

    def __init__(
        self,
        folder: Folder,
        segments: Sequence[Segment],
        ranges: Sequence[MergedRange],
        settings: TextSettings,
        *,
        regions: Sequence[str] = ("",),
        classes: Array | None = None,
        fixed: Fixed | None = None,
        n_documents: int | None = None,
        kept: tuple[str, ...] = (),
    ) -> None:
        check_regions(regions)
        filled = [(number, segment) for number, segment in enumerate(segments) if segment.n_documents]
        assert all(segment.n_regions == len(regions) for _, segment in filled)
        self.folder, self.settings, self.regions = folder, settings, tuple(regions)
        self.columns = MergedColumns.of(folder, ranges, settings.hashed, fixed)
        self.n_terms = self.columns.n_columns
        self.names_sorted = self.columns.ascending and not self.columns.hashed
        classes = _classes([segment for _, segment in filled], classes)
        weighted = _all_or_none([segment.weighted for _, segment in filled], "sample weights")
        self._parts = _parts(filled, classes)
        # A region more is entries more, but a document counts once.
        nnz = sum(merged.df for merged in ranges) if len(regions) == 1 else None
        self._facts = Facts(  # without a fingerprint: this is a step on the way to a store, which has one
            sum(part.n_documents for part in self._parts),
            self.n_terms * len(regions),
            sum(len(part.cuts) for part in self._parts),
            nnz,
            _kind(settings, [segment.largest for _, segment in filled], ranges, nnz),
            classes,
            weighted=weighted,
            trusted=True,
        )
        self.n_documents = self.n_rows if n_documents is None else n_documents
        self._sizes = self._measured([segment for _, segment in filled])
        self._kept = self._columns_kept(kept, [segment for _, segment in filled])
        # Whether rows are those of their segments, under other numbers.
        plain = self.columns.numbered and len(regions) == 1 and not settings.tfidf
        self.whole = plain and all(merged.n_kept == merged.n_distinct for merged in ranges)

    @property
    def annotations(self) -> KeptColumns | None:
        return self._kept

    def _columns_kept(self, names: tuple[str, ...], segments: list[Segment]) -> KeptColumns | None:
        if not names:
            return None
        first_rows = (*(part.first_row for part in self._parts), self.n_rows)
        files = tuple(segment.name for segment in segments)
        return KeptColumns(self.folder, names, files, first_rows, tuple(segment.distinct for segment in segments))

    def _measured(self, segments: list[Segment]) -> Sizes:
        index = 4 if self.n_features <= _WIDE else 8
        value = 8 if self.settings.tfidf else 4
        entries = max((segment.block_entries for segment in segments), default=0)
        documents = max((segment.block_documents for segment in segments), default=0)
        # A block, the entries it is made from, and the columns of all terms of its segment.
        own = entries * (index + value) + documents * 20 + 8
        raw = entries * (12 + value) + documents * (8 * len(self.regions) + 12) + 8
        table = max((segment.n_ids for segment in segments), default=0) * (index + 2 * value)
        per_id = 4 + 4 * self.settings.tfidf
        read = sum(segment.rows_nbytes + segment.n_ids * per_id for segment in segments)
        return Sizes(own + raw + table, entries, read)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for reader, number in self._read(start, stop):
            yield reader.block(number)

    def outlines(self, start: int, stop: int) -> Iterator[Block]:
        """Where no term was left out, rows have the entries of their segments, and columns are not read: all are 0."""
        for reader, number in self._read(start, stop):
            yield reader.outline(number) if self.whole else reader.block(number)

    def _read(self, start: int, stop: int) -> Iterator[tuple[_Reader, int]]:
        """For each block the reader of its segment, and its number there."""
        for part in self._parts:
            first = max(start - part.first_block, 0)
            last = min(stop - part.first_block, len(part.cuts))
            if first < last:
                reader = _Reader(self, part)
                for number in range(first, last):
                    yield reader, number

    def names(self, columns: Array) -> list[str]:
        columns = checked_columns(columns, self.n_features)
        names = [""] * len(columns)
        order = np.argsort(columns, kind="stable")
        windows = columns[order] // _NAMES
        for group in np.split(order, np.flatnonzero(np.diff(windows)) + 1):
            if len(group):
                first = int(columns[group[0]])
                strings = self.strings(first, int(columns[group[-1]]) + 1)
                for position in group.tolist():
                    names[position] = strings[int(columns[position]) - first].decode()
        return names

    def strings(self, start: int, stop: int) -> Strings:
        """Names of columns ``start .. stop - 1``, all distinct: those of regions, where several, and terms."""
        parts = []
        for region in range(len(self.regions)):
            low, high = self._within(region, start, stop)
            if low < high:
                prefix = column_prefix(self.regions, region).encode()
                parts.append(self.columns.names(low, high).after(prefix))
        return Strings.joined(parts)

    def frequencies(self, start: int, stop: int) -> Array:
        """For columns ``start .. stop - 1`` the number of documents that have their terms, in any region; int64."""
        parts = [np.zeros(0, np.int64)]
        for region in range(len(self.regions)):
            low, high = self._within(region, start, stop)
            if low < high:
                parts.append(self.columns.frequencies(low, high))
        return np.concatenate(parts)

    def _within(self, region: int, start: int, stop: int) -> tuple[int, int]:
        """Which terms the columns of a region among ``start .. stop - 1`` are."""
        offset = region * self.n_terms
        return max(start - offset, 0), min(stop - offset, self.n_terms)


class _Reader:
    """Reads blocks of one segment; holds the columns of its terms."""

    def __init__(self, source: CountedTexts, part: _Part) -> None:
        self._source, self._part = source, part
        self._file = ArrayFile.open(source.folder, part.name)

    @cached_property
    def _columns(self) -> tuple[Array, Array | None]:
        """Of each id, and the inverse document frequencies for tf-idf."""
        source, part = self._source, self._part
        dtype = np.dtype(np.int32 if source.n_features <= _WIDE else np.int64)
        columns, df = source.columns.of_segment(part.number, part.n_ids, dtype, with_df=source.settings.tfidf)
        return columns, None if df is None else inverse_document_frequencies(df, source.n_documents)

    def block(self, number: int) -> Block:
        source, (columns, idf) = self._source, self._columns
        pointers = self._pointers(number)
        rows, ids = pointers - pointers[0], self._ids(pointers)
        if source.whole:
            values = weigh(rows, ids, self._counts(pointers), source.settings)
            return self._block(number, rows, _picked(columns, ids), values)
        first, last = self._documents(number)
        indptr = np.zeros(last - first + 1, np.int64)
        indices, places = np.empty(ids.shape, columns.dtype), np.empty(ids.shape, np.int32)
        nnz = _map(rows, ids, columns, len(source.regions), source.n_terms, indptr, indices, places)
        indices, places = indices[:nnz], places[:nnz]
        if not source.columns.ascending:
            order = np.lexsort((indices, np.repeat(np.arange(last - first), np.diff(indptr))))
            indices, places = indices[order], places[order]
        terms = indices if idf is None else ids[places]
        values = weigh(indptr, terms, self._counts(pointers)[places], source.settings, idf)
        return self._block(number, indptr, indices, values)

    def outline(self, number: int) -> Block:
        """With all entries, in column 0."""
        pointers = self._pointers(number)
        indptr, counts = pointers - pointers[0], self._counts(pointers).copy()
        indices = np.zeros(len(counts), np.int32)
        return self._block(number, indptr, indices, weigh(indptr, indices, counts, self._source.settings))

    def _block(self, number: int, indptr: Array, indices: Array, values: Array) -> Block:
        source, part = self._source, self._part
        first, last = self._documents(number)
        codes = np.full(last - first, UNLABELLED, np.int32)
        if part.codes is not None:
            codes = self._codes(first, last, part.codes)
        weights = self._file.read("weights", first, last) if source.weighted else None
        first_row, block = part.first_row + first, part.first_block + number
        return Block(indptr, indices, values, codes, source.n_features, weights, first_row, block)

    def _documents(self, number: int) -> tuple[int, int]:
        """The first document of a block, and the first one after it."""
        first, last = (*self._part.cuts, self._part.n_documents)[number : number + 2]
        return first, last

    def _pointers(self, number: int) -> Array:
        """Where the rows of a block begin in the file, and the last one ends; kernels index without bounds checks."""
        first, last = self._documents(number)
        n_regions = len(self._source.regions)
        pointers = self._file.read("indptr", first * n_regions, last * n_regions + 1)
        n_entries = int(pointers[-1]) - int(pointers[0])
        if np.any(pointers[1:] < pointers[:-1]) or not 0 <= n_entries <= self._source.block_entries:
            raise self._file.damaged()
        return pointers

    def _ids(self, pointers: Array) -> Array:
        ids = self._file.read("ids", int(pointers[0]), int(pointers[-1]))
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self._part.n_ids:
            raise self._file.damaged()
        return ids

    def _counts(self, pointers: Array) -> Array:
        return self._file.read("counts", int(pointers[0]), int(pointers[-1]))

    def _codes(self, start: int, stop: int, table: Array) -> Array:
        codes = self._file.read("codes", start, stop)
        if len(codes) and not UNLABELLED <= int(codes.min()) <= int(codes.max()) < len(table) - 1:
            raise self._file.damaged()
        found: Array = table[codes]  # -1 picks the last
        return found


def _parts(segments: list[tuple[int, Segment]], classes: Array | None) -> list[_Part]:
    parts, row, block = [], 0, 0
    for number, segment in segments:
        codes = None if classes is None else _codes(segment, classes)
        parts.append(_Part(segment.name, number, row, block, segment.n_documents, segment.n_ids, segment.cuts, codes))
        row, block = row + segment.n_documents, block + len(segment.cuts)
    return parts


def _codes(segment: Segment, classes: Array) -> Array:
    """The code of each class of a segment under those of all, and one for documents without a label at the end."""
    codes = np.full(len(segment.classes or ()) + 1, UNLABELLED, np.int32)
    own = np.array(segment.classes)
    if len(own):
        places = np.searchsorted(classes, own)
        known = classes[np.minimum(places, len(classes) - 1)] == own
        if not np.all(known):
            raise InputError(f"{segment.name} has the label {own[~known][0].item()!r}, which is not among the classes")
        codes[:-1] = places
    return codes


def _classes(segments: list[Segment], classes: Array | None) -> Array | None:
    """All labels, sorted; None where the segments have none."""
    if not _all_or_none([segment.classes is not None for segment in segments], "labels"):
        return None
    return merge_classes([np.array(segment.classes) for segment in segments]) if classes is None else classes


def _all_or_none(have: list[bool], what: str) -> bool:
    if len(set(have)) > 1:
        raise InputError(f"some documents come with {what} and some without; give {what} for all of them or for none")
    return bool(have) and have[0]


def _kind(settings: TextSettings, largest: list[int], ranges: Sequence[MergedRange], nnz: int | None) -> Kind | None:
    """What values are, where that is known without looking at those of the terms that were kept."""
    if settings.tfidf:
        return "real"
    if settings.binary or max(largest, default=0) <= 1:
        return "binary"
    if nnz is None:
        return None
    return "binary" if sum(merged.cf for merged in ranges) == nnz else "count"


def _picked(columns: Array, ids: Array) -> Array:
    """The column of each id. Stretch by stretch, as numpy makes ids of 64 bits of those that it is given."""
    picked = np.empty(ids.shape, columns.dtype)
    for start in range(0, len(ids), _STRETCH):
        part = slice(start, start + _STRETCH)
        np.take(columns, ids[part], out=picked[part], mode="clip")  # they are within; to "raise" it would copy
    return picked


@kernel
def _map(rows, ids, columns, n_regions, n_terms, indptr, indices, places):
    """Entries whose ids have a column: those columns, and their places among the entries; how many."""
    n = 0
    for document in range(len(indptr) - 1):
        for region in range(n_regions):
            row = document * n_regions + region
            for i in range(rows[row], rows[row + 1]):
                column = columns[ids[i]]
                if column >= 0:
                    indices[n] = column + region * n_terms
                    places[n] = i
                    n += 1
        indptr[document + 1] = n
    return n
