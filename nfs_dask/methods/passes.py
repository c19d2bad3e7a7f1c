"""The passes of a procedure, one after another, and a record of them."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine, Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.workplace import resources_of_run
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic

logger = logging.getLogger("nfs_dask")


@dataclass(frozen=True)
class Pass:
    """One pass of a procedure."""

    name: str
    plan: Plan | None  # None: nothing was planned, as the result was there from an earlier pass, process or run
    seconds: float
    share: float  # of the data, that was read

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        plan = None if self.plan is None else self.plan.to_json()
        return {"name": self.name, "plan": plan, "seconds": self.seconds, "share": self.share}


@dataclass
class Passes:
    """The passes over a dataset, and over views of it and what was made of it; those that are done."""

    dataset: Dataset
    engine: Engine
    done: list[Pass] = field(default_factory=list)
    _names: Counter[str] = field(default_factory=Counter)

    def reduce(self, name: str, statistic: Statistic, source: Source | None = None) -> Reduction:
        """One pass over the dataset, whose result is kept with it, or over another source, whose result is not."""
        reduction = self._over(source).reduce(statistic, self._engine_for(statistic))
        share = 0.0 if reduction.reused else self._share(source)
        self.record(name, reduction.plan, reduction.seconds, share)
        return reduction

    def plan(self, statistic: Statistic, source: Source | None = None) -> Plan:
        """What `reduce` would do."""
        return self._over(source).plan(statistic, self._engine_for(statistic))

    def resources(self, statistic: Statistic, source: Source) -> Resources:
        """What passes like this one may count on; the same whenever a run is resumed."""
        return resources_of_run(self.engine.run, statistic.name, source, lambda: self.plan(statistic, source).resources)

    def record(self, name: str, plan: Plan | None, seconds: float, share: float) -> None:
        """Note what was done."""
        self._names[name] += 1
        times = self._names[name]
        self.done.append(Pass(name if times == 1 else f"{name} {times}", plan, seconds, share))
        logger.info("%s: %.1f s", self.done[-1].name, seconds)

    def _engine_for(self, statistic: Statistic) -> Engine:
        """The engine; a number of panels that was asked for is about what can be cut into some."""
        engine: Any = self.engine
        return engine if statistic.entrywise or engine.panels is None else replace(engine, panels=None)

    def _over(self, source: Source | None) -> Dataset:
        return self.dataset if source is None else Dataset(source, self.dataset.location, reuse=False)

    def _share(self, source: Source | None) -> float:
        """How much of the data a pass over a source reads."""
        return 1.0 if source is None else source.read_nbytes / max(1, self.dataset.source.read_nbytes)
