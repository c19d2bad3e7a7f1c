"""What units of work cost: measured, fitted, and kept in a file.

The manner is that of Ernest (Venkataraman, Yang, Franklin, Recht and Stoica, "Ernest: Efficient Performance Prediction
for Large-Scale Advanced Analytics", NSDI 2016): a few terms, fitted to a few small runs by non-negative least squares,
so that no term is ever a gain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from nfs_dask.engine.work_units import PHASES, TERMS, Hosts, PassWork, units
from nfs_dask.errors import InputError

FORMAT = 1


@dataclass(frozen=True)
class Costs:
    """What the units of each term cost, and how that is known."""

    seconds: Mapping[str, float]  # of a unit of each fitted term
    scheduler_nbytes: Mapping[str, float] = field(default_factory=dict)  # of its memory: fixed, of a task, of a worker
    command: str = ""  # that measured them
    machine: str = ""  # on which

    @classmethod
    def load(cls, path: str | Path) -> Costs:
        """Costs that a calibration wrote."""
        try:
            content = json.loads(Path(path).read_text())
            if content["format"] != FORMAT:
                raise InputError(f"{path} has format {content['format']}; this version reads {FORMAT}; calibrate again")
            seconds = {name: float(content["seconds"][name]) for name, term in TERMS.items() if term.fitted}
            nbytes = {name: float(value) for name, value in content["scheduler_nbytes"].items()}
            costs = cls(seconds, nbytes, str(content["command"]), str(content["machine"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} holds no costs ({error}); write it with nfs-dask plan --calibrate") from error
        if not all(math.isfinite(value) and value >= 0 for value in seconds.values()):
            raise InputError(f"{path} has costs below 0, or none; write it again with nfs-dask plan --calibrate")
        return costs

    def save(self, path: str | Path) -> None:
        """Write them for `load`."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "format": FORMAT,
            "command": self.command,
            "machine": self.machine,
            "seconds": {name: float(f"{value:.4g}") for name, value in self.seconds.items()},
            "scheduler_nbytes": {name: round(value) for name, value in self.scheduler_nbytes.items()},
        }


@cache
def usual_costs() -> Costs:
    """What ``python benchmarks/scaling.py`` has measured on one machine; the file says which."""
    with resources.as_file(resources.files("nfs_dask.engine") / "costs.json") as path:
        return Costs.load(path)


@dataclass(frozen=True)
class Measured:
    """A pass that was carried out, and the seconds of each of its phases."""

    work: PassWork
    hosts: Hosts
    phases: Mapping[str, float]


def fit(measured: Sequence[Measured], known: Costs, given: Collection[str] = ()) -> Costs:
    """Costs of the terms that these passes have, phase by phase; those ``given``, and of no pass, stay as known.

    By non-negative least squares of relative errors, so that short passes count as much as long ones.
    """
    seconds = dict(known.seconds)
    rows = [(one.phases, units(one.work, one.hosts)) for one in measured]
    for phase in PHASES:
        fixed = {name: seconds[name] for name, term in TERMS.items() if term.phase == phase and name in given}
        names = [name for name, term in TERMS.items() if term.phase == phase and term.fitted and name not in given]
        took = [(phases[phase], counts) for phases, counts in rows if phases.get(phase, 0) > 0]
        left = [(max(s - sum(counts.get(n, 0) * c for n, c in fixed.items()), 0), s, counts) for s, counts in took]
        seconds |= least_squares(left, [name for name in names if any(counts.get(name) for _, counts in took)])
    return replace(known, seconds=seconds)


def least_squares(rows: Sequence[tuple[float, float, Mapping[str, float]]], names: Sequence[str]) -> dict[str, float]:
    """Costs of 0 or more of the named units, from what they came to, on the scale that errors are judged by."""
    import numpy as np
    from scipy.optimize import nnls

    if not names:
        return {}
    matrix = np.array([[counts.get(name, 0) / scale for name in names] for _, scale, counts in rows])
    sizes = matrix.max(axis=0)
    found, _ = nnls(matrix / sizes, np.array([came_to / scale for came_to, scale, _ in rows]))
    return dict(zip(names, (found / sizes).tolist(), strict=True))
