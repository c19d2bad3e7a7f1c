"""How much text a task may hold while it counts, and how large a range of names one may merge."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.cluster.resources import SLACK, USABLE, Resources
from nfs_dask.documents.document_source import BATCH_NBYTES, DocumentSource
from nfs_dask.errors import PlanError
from nfs_dask.ingestion.merging import merge_nbytes
from nfs_dask.sources.source import BLOCK_NBYTES
from nfs_dask.units import MiB, format_at_least, format_bytes

COUNTING = 2.0  # arrays that are full are copied into larger ones; terms are copied in order before they are written
MOST_COUNTED = 192 * MiB  # larger segments save little: they share few more terms, and caches hold less of them
LEAST_COUNTED = 24 * MiB  # smaller ones would be many files of next to nothing
MOST_MERGED = 64 * MiB
READING = 6 * BATCH_NBYTES  # a batch as it is read, decoded and checked
WRITING = 4 * BLOCK_NBYTES  # blocks and chunks while the store is written
COUNTING_LIBRARIES = 20 * MiB  # kernels of counting and the tables of characters, which a warm worker has not loaded


@dataclass(frozen=True)
class TextPlan:
    """What an ingest of documents takes of each worker. Made before anything is read."""

    resources: Resources
    segment_nbytes: int  # of a counter, before what it counted is written
    range_nbytes: int  # of terms that one task merges
    import_nbytes: int  # memory of the libraries that read the documents

    @property
    def task_nbytes(self) -> int:
        """Most that one task takes."""
        counting = READING + int(COUNTING * self.segment_nbytes)
        return max(counting, merge_nbytes(self.range_nbytes), WRITING)

    @property
    def peak_nbytes(self) -> int:
        """Most memory of a worker."""
        each = self.resources.threads * (self.task_nbytes + SLACK)
        return int(self.resources.warm + COUNTING_LIBRARIES + self.import_nbytes + each)

    def __str__(self) -> str:
        r = self.resources
        limit = format_bytes(r.memory_limit) if r.memory_limit else "unlimited"
        return (
            f"{r.workers} worker(s) with {r.threads} thread(s), at most {format_bytes(self.peak_nbytes)} each of "
            f"{limit}: segments of {format_bytes(self.segment_nbytes)}, ranges of {format_bytes(self.range_nbytes)}"
        )


def make_text_plan(documents: DocumentSource, resources: Resources) -> TextPlan:
    """The largest segments and ranges that fit; refused where even small ones do not."""
    libraries = documents.import_nbytes + COUNTING_LIBRARIES
    budget = float("inf")
    if resources.memory_limit:
        budget = (USABLE * resources.memory_limit - resources.warm - libraries) / resources.threads - SLACK
    segment = int(min(MOST_COUNTED, (budget - READING) / COUNTING))
    merged = MOST_MERGED
    while merged > MiB and merge_nbytes(merged) > budget:
        merged //= 2
    plan = TextPlan(resources, segment, merged, documents.import_nbytes)
    if segment < LEAST_COUNTED or plan.task_nbytes > budget:
        needed = TextPlan(resources, LEAST_COUNTED, MiB, documents.import_nbytes).peak_nbytes / USABLE
        raise PlanError(
            f"workers of {format_bytes(resources.memory_limit)} with {resources.threads} thread(s) are too small to "
            f"count texts: give each {format_at_least(needed)} or more, or fewer threads{resources.restarting}"
        )
    return plan
