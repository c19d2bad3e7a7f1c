"""Counted texts, made with Python's own dictionaries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.merging import MergeTask, choose_bounds, merge_range
from nfs_dask.ingestion.segments import write_segment
from nfs_dask.text.ordering import order
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings, TermCounts

PLAIN = TextSettings()


def counted_by_hand(rows):
    """What a counter makes of rows of terms."""
    numbers: dict[str | bytes, int] = {}
    ids, counts, ends = [], [], [0]
    for row in rows:
        for term, count in Counter(row).items():
            ids.append(numbers.setdefault(term, len(numbers)))
            counts.append(count)
        ends.append(len(ids))
    return TermCounts(
        Strings.of(numbers), np.array(ends, np.int64), np.array(ids, np.int32), np.array(counts, np.int32)
    )


def write_segments(folder: Folder, rows, cuts, settings=PLAIN, n_regions=1, y=None, weights=None, **how):
    """Segments of the documents between the cuts; documents have ``n_regions`` rows each."""
    segments = []
    for number, (start, stop) in enumerate(pairwise([0, *cuts, len(rows) // n_regions])):
        labels = {}
        if y is not None:
            own = np.unique(y[start:stop])
            labels = {"classes": own, "codes": np.searchsorted(own, y[start:stop])}
        counted = order(counted_by_hand(rows[start * n_regions : stop * n_regions]))
        own_weights = None if weights is None else weights[start:stop]
        segments.append(
            write_segment(folder, f"{number}.terms", counted, settings, n_regions, weights=own_weights, **labels, **how)
        )
    return segments


def merge_tasks(folder: Folder, segments, target=1 << 30, extra=(), **how):
    """Tasks for ranges of about that size."""
    bounds = choose_bounds([*segments, *extra], target)
    return [
        MergeTask(folder.location, tuple(s.name for s in segments), i, low, high, f"range-{i:05d}", **how)
        for i, (low, high) in enumerate(pairwise([*bounds, None]))
    ]


def merge_segments(folder: Folder, segments, target=1 << 30, cuts=None, extra=(), **how):
    """All ranges, merged."""
    tasks = merge_tasks(folder, segments, target, extra, **how)
    if cuts is not None:
        tasks = [replace(task, cut=cut) for task, cut in zip(tasks, cuts, strict=True)]
    return [merge_range(task) for task in tasks]
