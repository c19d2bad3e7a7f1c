"""Plans for data and workers that are not there yet; nothing is carried out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from nfs_dask.arrays.block import Block
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.plan import Plan, make_plan
from nfs_dask.engine.run_directory import open_run_directory
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import MiB, parse_bytes

USUAL_ENTRIES = 4 * MiB  # of a block of a store: about four chunks


class HypotheticalSource(Source):
    """A source as if it had other numbers of rows and features; rows have as many entries as they have now.

    Where its blocks are small because there is little of it, they grow to what a store cuts.
    """

    def __init__(self, source: Source, n_rows: int | None = None, n_features: int | None = None) -> None:
        if source.n_rows < 1:
            raise InputError(
                "how many rows the data have is not known before they are read, so nothing follows for more of them; "
                "ingest them into a store first"
            )
        rows = n_rows or source.n_rows
        entries = round(source.about_entries * rows / source.n_rows)
        self._facts = replace(
            source.facts,
            n_rows=rows,
            n_features=n_features or source.n_features,
            nnz=entries,
            n_blocks=self._blocks(source, rows, entries),
            fingerprint=None,
        )
        grown = max(1.0, -(-entries // self.n_blocks) / max(1, source.block_entries))
        self._sizes = replace(
            source.sizes,
            block_entries=math.ceil(grown * source.block_entries),
            block_nbytes=math.ceil(grown * source.block_nbytes),
            read_nbytes=round(source.read_nbytes * rows / source.n_rows),
        )

    @staticmethod
    def _blocks(source: Source, rows: int, entries: int) -> int:
        as_now = math.ceil(source.n_blocks * rows / source.n_rows)
        return max(1, min(as_now, max(source.n_blocks, math.ceil(entries / USUAL_ENTRIES))))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        raise InputError("what is foretold cannot be read; plan with what is there")


@dataclass(frozen=True)
class DryRunEngine(Engine):
    """Plans for workers as they are described, and starts none."""

    resources: Resources
    panels: int | None = None
    run: str | None = None
    spool: str | None = None

    @contextmanager
    def executor(self) -> Iterator[Any]:
        yield SimpleNamespace(resources=lambda *_, **__: self.resources)


@dataclass(frozen=True)
class ElsewhereEngine(DaskEngine):
    """Plans as for a cluster like the one at hand, but for ``workers`` of ``memory_limit`` each; None: of any size."""

    def plan(self, statistic: Statistic, source: Source, *, beside: Folder | None = None) -> Plan:
        with open_run_directory(None, self.spool, beside, statistic, source) as place, self.executor() as executor:
            here = executor.resources(place.candidates, statistic=statistic)
            limit = 0 if self.memory_limit is None else parse_bytes(self.memory_limit)
            there = replace(here, memory_limit=limit, without_smallest=None)
            return make_plan(statistic, source, there, self.panels)
