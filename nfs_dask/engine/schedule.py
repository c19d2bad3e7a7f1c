"""Plans of several passes, as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nfs_dask.engine.plan import Plan
from nfs_dask.units import format_bytes, format_seconds


@dataclass(frozen=True)
class Schedule:
    """Several passes over the data, one after another, for one result."""

    passes: tuple[Plan, ...]

    @property
    def tasks(self) -> int:
        """How many tasks there are, in all passes."""
        return sum(plan.tasks for plan in self.passes)

    @property
    def read_nbytes(self) -> int:
        """Bytes that are read, by all passes."""
        return sum(plan.read_nbytes for plan in self.passes)

    @property
    def seconds(self) -> float:
        """A rough forecast for all passes."""
        return sum(plan.seconds for plan in self.passes)

    @property
    def peak_nbytes(self) -> int:
        """Most memory a worker takes, in any of the passes."""
        return max(plan.peak_nbytes for plan in self.passes)

    @property
    def client_nbytes(self) -> int:
        """Most memory the client takes beside what it has now, in any of the passes."""
        return max(plan.client_nbytes for plan in self.passes)

    @property
    def fits(self) -> bool:
        """Whether all passes fit."""
        return all(plan.fits for plan in self.passes)

    def check(self) -> None:
        """Refuse passes that do not fit, with the number that would."""
        for plan in self.passes:
            plan.check()

    def to_json(self) -> dict[str, Any]:
        """All passes, as JSON values, with what they come to."""
        return {
            "passes": [plan.to_json() for plan in self.passes],
            "tasks": self.tasks,
            "read_nbytes": self.read_nbytes,
            "peak_nbytes": self.peak_nbytes,
            "client_nbytes": self.client_nbytes,
            "fits": self.fits,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        total = (
            f"Together  {len(self.passes)} passes, {self.tasks} tasks, reads {format_bytes(self.read_nbytes)}, at most "
            f"{format_bytes(self.peak_nbytes)} a worker, about {format_seconds(self.seconds)}"
        )
        return "\n\n".join([*map(str, self.passes), total])
