"""What a pass leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.engine.plan import Plan
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import State


@dataclass(frozen=True)
class Reduction:
    """The result of a pass, and how it came about."""

    panels: Panels
    plan: Plan | None  # None: nothing was read, or what was read is small and in memory
    seconds: float
    reused: bool = False  # the statistic had been kept, or finished by an earlier process; nothing was read

    @property
    def state(self) -> State:
        """The whole state, in memory."""
        return self.panels.state()
