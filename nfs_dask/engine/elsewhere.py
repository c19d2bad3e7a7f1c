"""Plans for workers that are still to be made, of a worker that is here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.plan import Plan, make_plan
from nfs_dask.engine.workplace import open_workplace
from nfs_dask.files.folder import Folder
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import parse_bytes


@dataclass(frozen=True)
class ElsewhereEngine(DaskEngine):
    """Plans as for a cluster like the one at hand, but for ``workers`` of ``memory_limit`` each; None: of any size."""

    def plan(self, statistic: Statistic, source: Source, *, beside: Folder | None = None) -> Plan:
        with open_workplace(None, self.spool, beside, statistic, source) as place, self.executor() as executor:
            here = executor.resources(place.candidates, statistic=statistic)
            limit = 0 if self.memory_limit is None else parse_bytes(self.memory_limit)
            there = replace(here, memory_limit=limit, without_smallest=None)
            return make_plan(statistic, source, there, self.panels)
