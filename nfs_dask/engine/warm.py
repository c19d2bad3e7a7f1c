"""Warming a worker: load the libraries, compile the kernels, and look at what it can reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import psutil

from nfs_dask import kernels
from nfs_dask.block import Block, distinct, integers_as_integers
from nfs_dask.engine.spool import Entries, SpoolWriter, Tiling, as_block
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.storage import states  # noqa: F401  (loads zarr)
from nfs_dask.storage.folder import Folder


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, content: Any) -> None:
        pass


def warm_up(places: list[str], token: str, texts: bool = False) -> dict[str, Any]:
    """Do once what tasks do, on tiny data; then report the size of this process and which places it reaches."""
    if texts:
        _count_texts()
    for values in (np.uint8, np.float64):
        data = np.array([1, 2, 3], values)
        block = Block(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), data, np.array([0, 1], np.int32), 4)
        distinct(block)
        integers_as_integers(block)
        kernels.first_refused(block.data, True)
        statistic = ClassCounts(2, True, True)
        statistic.update(statistic.zero(), block)
        tiling = Tiling(4, 2, 2)
        SpoolWriter(_Nowhere(), tiling).add(block)  # type: ignore[arg-type]
        part = Entries(np.array([2, 3]), np.zeros(3, np.uint16), data, None)
        statistic.update_arrays({}, as_block([part], tiling, 4))
    return {"rss": psutil.Process().memory_info().rss, "reaches": [_reaches(Folder(place), token) for place in places]}


def _count_texts() -> None:
    """Count words of ASCII and of other alphabets, and lay them down in order."""
    from nfs_dask.text.counting import TermCounter
    from nfs_dask.text.ordering import order
    from nfs_dask.text.settings import TextSettings
    from nfs_dask.text.strings import Strings

    counter = TermCounter(TextSettings(ngrams=(1, 2)))
    counter.add(Strings.of(["one two", "d\u00e9j\u00e0 vu"]))
    order(counter.finish())


def _reaches(place: Folder, token: str) -> bool:
    """Whether this worker sees the mark that the client left, and can write beside it."""
    try:
        return place.exists(f".nfs-probe-{token}") and place.writable()
    except OSError:  # no credentials here, for example
        return False
