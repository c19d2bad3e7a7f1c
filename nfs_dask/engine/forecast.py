"""How long passes take: the units of their work, times what a unit costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nfs_dask.engine.costs import Costs, usual_costs
from nfs_dask.engine.work_units import PHASES, TERMS, Hosts, PassWork, units


@dataclass(frozen=True)
class Forecast:
    """What passes will take, one after another, if the model is right."""

    works: Sequence[PassWork]
    hosts: Hosts
    costs: Costs
    terms: Mapping[str, float]  # seconds

    @property
    def seconds(self) -> float:
        return sum(self.terms.values())

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the phases that there are, in order."""
        found = {phase: [s for name, s in self.terms.items() if TERMS[name].phase == phase] for phase in PHASES}
        return {phase: sum(parts) for phase, parts in found.items() if sum(parts) > 0}

    @property
    def bottleneck(self) -> str:
        """The term that takes most."""
        return max(self.terms, key=self.terms.__getitem__)

    @property
    def tasks(self) -> int:
        return sum(work.tasks for work in self.works)

    @property
    def scheduler_nbytes(self) -> int:
        """Memory of the scheduler."""
        held, tasks = self.costs.scheduler_nbytes, max(work.tasks for work in self.works)
        return round(held.get("fixed", 0) + held.get("task", 0) * tasks + held.get("worker", 0) * self.hosts.workers)

    @property
    def moved_nbytes(self) -> int:
        """Bytes that go over links."""
        far = sum(work.read_nbytes + work.shuffled_nbytes(self.hosts.workers) for work in self.works if self.hosts.far)
        return far + sum(work.merged_nbytes for work in self.works)

    @property
    def worker_hours(self) -> float:
        return self.hosts.workers * self.seconds / 3600


def forecast(works: Sequence[PassWork], hosts: Hosts, costs: Costs | None = None, *, solved: bool = False) -> Forecast:
    """What passes take on these hosts; ``solved``: features are chosen in the end.

    ``costs`` are the usual ones, unless they were measured there.
    """
    costs = costs or usual_costs()
    counts = dict.fromkeys(TERMS, 0.0)
    for number, work in enumerate(works, 1):
        for name, count in units(work, hosts, solved and number == len(works)).items():
            counts[name] += count
    prices = {name: costs.seconds[name] if term.fitted else 1.0 for name, term in TERMS.items()}
    terms = {name: count * prices[name] for name, count in counts.items() if count * prices[name] > 0}
    return Forecast(tuple(works), hosts, costs, terms)
