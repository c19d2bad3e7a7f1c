"""Documents into a store: count the terms of all pieces, merge their names, write what they make.

Every step is a map over small tasks that leave files; the driver sees numbers, and a few names by which ranges are cut.
"""

from __future__ import annotations

import functools
import io
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from numbers import Real
from typing import IO, Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type, unwrapped
from nfs_dask.documents.document_source import DocumentSource, shares
from nfs_dask.documents.open_documents import open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.engine.engine import Engine, Executor
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.files.folder import Folder
from nfs_dask.graphs import computed
from nfs_dask.ingestion.appending import stored_facts, stored_frequencies, stored_vocabulary
from nfs_dask.ingestion.count_tasks import CountedPieces, CountTask, count_partition, count_texts
from nfs_dask.ingestion.counted_source import CountedTexts
from nfs_dask.ingestion.given_vocabulary import Fixed, write_fixed
from nfs_dask.ingestion.ingest_folder import open_run_directory
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.ingestion.kept_columns import check_keepable
from nfs_dask.ingestion.merging import MergedRange, MergeTask, choose_bounds, choose_cuts, merge_range
from nfs_dask.ingestion.segments import Segment
from nfs_dask.ingestion.text_options import TermParameters, TextOptions, make_terms
from nfs_dask.ingestion.text_plan import TextPlan, make_text_plan
from nfs_dask.progress import unseen
from nfs_dask.sources.labelled import Labelled
from nfs_dask.sources.labels import as_column
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.publish import check_place
from nfs_dask.store.text_facts import TextFacts, check_same_text
from nfs_dask.store.writer import write_store
from nfs_dask.units import MiB

logger = logging.getLogger("nfs_dask")

RUN_NBYTES = 128 * MiB  # of counted texts, that one task writes
RANGES_PER_SLOT = 3  # that balance each other, where there are few terms
SMALL_RANGE = 8 * MiB  # of terms, that no more tasks are made for
FEW_PER_SLOT = 8  # tasks that write, of which the last ones matter
FIXED = "vocabulary.terms"


@dataclass(frozen=True)
class TextIngest:
    """All that an ingest of documents was asked for."""

    data: DocumentSource
    store: Folder
    terms: TextOptions
    labels: Any = None  # one for each document; None: those the documents carry
    weights: Any = None
    append: bool = False
    layout: Layout | None = None
    overwrite: bool = False
    rejects: Callable[[], AbstractContextManager[IO[bytes]]] | None = None  # opens the file that lists bad documents

    @property
    def regions(self) -> tuple[str, ...]:
        """Their names; a single one has none."""
        names = tuple(self.data.region_names)
        return names if len(names) > 1 else ("",)

    @property
    def identity(self) -> dict[str, Any]:
        """What an interrupted ingest must have in common with the one that goes on."""
        return {
            "documents": self.data.fingerprint,
            "columns": self.data.columns.to_json(),
            "settings": self.terms.settings.to_json(),
            "labels of your own": self.labels is not None or self.weights is not None,
        }

    def check(self) -> None:
        """Refuse what would fail after all the work had been done."""
        check_keepable(self.data.columns.kept)
        for what, values in (("labels", self.labels), ("weights", self.weights)):
            if isinstance(values, (str, bytes, Mapping, Set)):
                named = f", or name a column of the documents by {what[:-1]}_column=" if isinstance(values, str) else ""
                raise InputError(f"{what}= is {a_type(values)}; give a list or an array, one for each document{named}")
        if not self.append:
            check_place(self.store, self.overwrite)
            return
        stored = stored_facts(self.store)
        asked = replace(stored, settings=self.terms.settings, regions=self.regions)
        check_same_text(stored, asked, self.store.location)
        if read_header(self.store).label is not None and self.labels is None and not self.data.labelled:
            raise InputError(
                f"the rows of {self.store.location} have labels, and the documents to append have none; name their "
                "column, or give labels= for them"
            )

    def write(self, engine: Engine) -> None:
        """Write the store."""
        with ExitStack() as stack:
            resumable = self.data.fingerprint is not None
            folder = stack.enter_context(open_run_directory(self.store, self.identity, resumable=resumable))
            executor = stack.enter_context(engine.executor())
            rehearsal = functools.partial(rehearse, getattr(self.data, "format", None))
            plan = make_text_plan(self.data, executor.resources([folder], rehearsal=rehearsal))
            logger.debug("%s", plan)
            pieces = _count(self, folder, executor, plan)
            if self.rejects is not None:
                with self.rejects() as file:
                    _list_rejects(file, folder, pieces)
            _merge_and_write(self, folder, executor, plan, pieces)


def _tiny_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(pa.table({"text": ["one"], "label": ["a"]}), content)
    return content.getvalue()


# A document in each format whose reader has compiled code or large libraries, with all that is odd in a good one.
_TINY: dict[str, Callable[[], bytes]] = {
    "csv": lambda: b'text,label\n"one, ""two""",a\n',
    "jsonl": lambda: b'{"text": "one\\n", "label": "a"}\n',
    "parquet": _tiny_parquet,
}


@functools.cache
def rehearse(kind: str | None = None) -> None:
    """Ingest a few words into memory: what is compiled and loaded for it is not, later, in the tasks of a worker.

    ``kind`` is the format of the documents, of which some have code of their own.
    """
    if kind in _TINY:
        _rehearse_reading(kind, _TINY[kind]())
    texts = ["one two", "d\u00e9j\u00e0 one", ""]  # of ASCII, of other alphabets, and none
    place = Folder.of(f"memory://nfs-rehearsal-{uuid.uuid4().hex}")
    terms = make_terms(TermParameters(ngrams=(1, 2), min_df=2))  # with terms that are left out
    rehearsed = TextIngest(open_documents(texts, DocumentParameters()), place, terms, labels=[0, 1, 1])
    try:
        with unseen():
            rehearsed.write(SerialEngine())
    finally:
        place.remove()


def _rehearse_reading(kind: str, content: bytes) -> None:
    place = Folder.of(f"memory://nfs-rehearsal-{uuid.uuid4().hex}")
    try:
        place.write(f"tiny.{kind}", content)
        asked = DocumentParameters(text_column="text", label_column="label")
        for _ in open_documents(place.path(f"tiny.{kind}"), asked).batches(0):
            pass
    finally:
        place.remove()


def _list_rejects(file: IO[bytes], folder: Folder, pieces: list[CountedPieces]) -> None:
    """Write which documents were bad, where they are, and why; from what tasks left of them."""
    file.write(b"where,kind,reason\n")
    for piece in pieces:
        if piece.rejects is not None:
            file.write(folder.read(piece.rejects))


# Counting


def _count(ingest: TextIngest, folder: Folder, executor: Executor, plan: TextPlan) -> list[CountedPieces]:
    documents, tokenizer = ingest.data, ingest.terms.tokenizer
    by_name = ingest.terms.shippable_tokenizer
    here = documents.in_memory or (tokenizer is not None and by_name is None)
    tasks = [
        CountTask(
            own,
            folder.location,
            number,
            pieces,
            ingest.terms.settings,
            plan.segment_nbytes,
            ingest.labels is not None or ingest.weights is not None,
            tokenizer if here else by_name,
        )
        for number, (own, pieces) in enumerate(shares(documents, executor.map_items))
    ]
    with ExitStack() as stack:
        counter = stack.enter_context(SerialEngine().executor()) if here else executor
        if documents.delayed is None:
            return counter.map_items(count_texts, tasks)
        return counter.map_values(count_partition, documents.delayed, tasks)


# Merging and writing


def _merge_and_write(
    ingest: TextIngest, folder: Folder, executor: Executor, plan: TextPlan, pieces: list[CountedPieces]
) -> None:
    seen = Seen()
    for piece in pieces:
        seen += piece.seen
    try:
        seen.check(ingest.data.columns.where)
    except InputError:
        folder.remove()  # of what was counted, nothing is of use to other conditions
        raise
    segments = [segment for piece in pieces for segment in piece.segments]
    if not segments:
        folder.remove()
        reason = f" ({seen})" if seen.left_out else f" ({seen.passed_over:,} do not meet where=)" if seen.seen else ""
        raise InputError(f"there are no documents to ingest{reason}; give at least one")
    fixed = _write_vocabulary(ingest, folder)
    ranges = _merge(ingest, folder, executor, plan, segments, fixed)
    settings, regions = ingest.terms.settings, ingest.regions
    n_documents = stored_facts(ingest.store).n_documents if ingest.append else None
    columns = ingest.data.columns
    counted = CountedTexts(
        folder, segments, ranges, settings, regions=regions, fixed=fixed, n_documents=n_documents, kept=columns.kept
    )
    source = _labelled(ingest, counted, pieces, seen)
    text = columns.text[0] if len(columns.text) == 1 else None
    report = seen.to_json() | {"columns": {"text": text, "label": columns.label}}
    report |= {} if ingest.append else _of_terms(ranges)  # the vocabulary is that of the first ingest
    facts = TextFacts(settings, counted.n_rows, counted.n_terms, regions, report)
    runs = max(2 * plan.resources.slots, source.read_nbytes // RUN_NBYTES)
    write_store(
        source,
        ingest.store.location,
        append=ingest.append,
        overwrite=ingest.overwrite,
        map=functools.partial(_write_in_turn, executor, plan.resources.slots),
        layout=ingest.layout,
        runs=runs,
        text=facts,
    )
    if seen.left_out:
        warn(str(seen), DataWarning)


def _write_in_turn(executor: Executor, slots: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run tasks of which one may take as long as ten others; handing them out one by one takes some time itself."""
    return executor.map_items(function, items, at_once=slots if len(items) <= FEW_PER_SLOT * slots else None)


def _write_vocabulary(ingest: TextIngest, folder: Folder) -> Fixed | None:
    """The vocabulary that was given, or that of the store to append to, where tasks find it."""
    if ingest.append:
        known = stored_vocabulary(ingest.store)
        return None if known is None else write_fixed(folder, FIXED, *known)
    given = ingest.terms.vocabulary
    return None if given is None else write_fixed(folder, FIXED, *given)


def _merge(
    ingest: TextIngest,
    folder: Folder,
    executor: Executor,
    plan: TextPlan,
    segments: list[Segment],
    fixed: Fixed | None,
) -> list[MergedRange]:
    """All ranges, merged; those of the most frequent terms only after a look at how frequent terms are."""
    settings, filters = ingest.terms.settings, ingest.terms.filters
    n_documents = sum(segment.n_documents for segment in segments)
    fewest, most = filters.document_range(n_documents)
    files: list[Segment | Fixed] = [*segments, *([] if fixed is None else [fixed])]
    bounds = choose_bounds(files, _range_nbytes(sum(file.terms_nbytes for file in files), plan))
    tasks = [
        MergeTask(
            folder.location,
            tuple(segment.name for segment in segments),
            number,
            low,
            high,
            f"range-{number:06d}.terms",
            fewest=fewest,
            most=most,
            with_df=settings.tfidf,
            fixed=None if fixed is None else fixed.name,
            hashed=settings.hashed is not None,
            stored=stored_frequencies(ingest.store) if ingest.append and settings.hashed is not None else None,
        )
        for number, (low, high) in enumerate(zip(bounds, [*bounds[1:], None], strict=True))
    ]
    if filters.max_features is not None:
        looks = executor.map_items(merge_range, [replace(task, name=None, with_table=True) for task in tasks])
        cuts = choose_cuts(looks, filters.max_features)
        tasks = [replace(task, cut=cut) for task, cut in zip(tasks, cuts, strict=True)]
    ranges: list[MergedRange] = executor.map_items(merge_range, tasks)
    if fixed is None and not any(merged.n_kept for merged in ranges):
        raise InputError(
            f"no term is left of {sum(merged.n_distinct for merged in ranges):,} in {n_documents:,} documents; relax "
            "min_df and max_df, or see whether the documents hold more than stop words"
        )
    return ranges


def _range_nbytes(total: int, plan: TextPlan) -> int:
    """How large ranges are: such that every slot merges as many, where there are more than slots."""
    slots = plan.resources.slots
    largest = min(plan.range_nbytes, max(SMALL_RANGE, total // (RANGES_PER_SLOT * slots)))
    rounds = -(-total // (largest * slots))
    return largest if rounds < 2 else -(-total // (rounds * slots))


def _labelled(ingest: TextIngest, source: CountedTexts, pieces: list[CountedPieces], seen: Seen) -> Any:
    """The documents with the labels and weights that were given for all of those seen."""
    if ingest.labels is None and ingest.weights is None:
        return source
    starts = np.cumsum([0] + [piece.seen.seen for piece in pieces])
    skipped = np.concatenate([piece.skipped + start for piece, start in zip(pieces, starts.tolist(), strict=False)])
    given = []
    for what, lazy in (("labels", ingest.labels), ("weights", ingest.weights)):
        values = computed(unwrapped(lazy, what))
        if what == "weights" and isinstance(values, Real):
            values = np.full(seen.seen, values)
        if values is not None and _is_single(values):
            raise InputError(f"{what}= is {a_type(values)}; give a list or an array, one for each document")
        if values is not None and len(values) != seen.seen:
            raise InputError(f"there are {seen.seen:,} documents but {len(values):,} {what}; give one for each")
        given.append(values if values is None or not len(skipped) else _without(values, skipped))
    labelled = Labelled(source, *given)
    if (row := labelled.first_unlabelled) is not None:
        number = int(np.delete(np.arange(seen.seen), skipped)[row])
        raise InputError(
            f"labels= has none for document {number:,}; give it one, or leave such documents out beforehand"
        )
    return labelled


def _is_single(values: Any) -> bool:
    return not hasattr(values, "__len__") or getattr(values, "shape", None) == ()


def _without(values: Any, skipped: Array) -> Any:
    """The values of the documents that are left."""
    if isinstance(values, (list, tuple)):
        out = set(skipped.tolist())
        return [value for number, value in enumerate(values) if number not in out]
    return np.delete(np.asarray(as_column(values, "labels")), skipped)


def _of_terms(ranges: list[MergedRange]) -> dict[str, Any]:
    """What became of the terms."""
    return {
        "terms": sum(merged.n_distinct for merged in ranges),
        "too_rare": sum(merged.n_rare for merged in ranges),
        "too_frequent": sum(merged.n_frequent for merged in ranges),
        "beyond_max_features": sum(merged.n_cut for merged in ranges),
        "sharing_a_column": sum(merged.n_shared for merged in ranges),
    }
