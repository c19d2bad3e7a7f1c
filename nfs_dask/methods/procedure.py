"""Methods of several passes: generators that yield what they want of the data, are sent it, and return a result.

A procedure reads from top to bottom and knows no engine: `run` carries out what it wants, and a test may send it sums
of its own invention. Where procedures of several folds share their passes, `nfs_dask.selection.lockstep` makes one of
all of them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.run_directory import resources_of_run
from nfs_dask.files.folder import Folder
from nfs_dask.sources.row_files import write_row_files
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.store.cache import Kept

logger = logging.getLogger("nfs_dask")

T = TypeVar("T")


@dataclass(frozen=True)
class Sum:
    """A statistic, summed up in one pass. The answer is a `Reduction`."""

    name: str  # of the pass
    statistic: Statistic
    source: Source  # the data, or a view of them
    kept: Kept | None = None  # where the sum may be already, and is to be kept
    lasting: bool = True  # whether a run folder holds what is finished of it


@dataclass(frozen=True)
class Measure:
    """What passes like this one may count on. The answer are `Resources`."""

    statistic: Statistic
    source: Source
    lasting: bool = False  # whether a run that is resumed goes by what was measured when it began


@dataclass(frozen=True)
class Write:
    """The rows of a view, in files that many passes are to read. The answer is `Written`, or None without a place."""

    name: str
    view: Source
    folder: Folder | None  # where there is no run folder


@dataclass(frozen=True)
class Written:
    """Rows in files."""

    rows: Source
    seconds: float
    share: float  # of the data, that was read: none where an earlier process of the run had written all of them


Want = Sum | Measure | Write
Procedure = Generator[Want, Any, T]


def run(procedure: Procedure[T], dataset: Dataset, engine: Engine | None = None) -> T:
    """The result of a procedure over a dataset. What wants nothing of the data starts no engine."""
    with ExitStack() as stack:
        try:
            want = next(procedure)
            supplier = Supplier(dataset, stack.enter_context(choose_engine(engine, dataset.source).session()))
            while True:
                try:
                    answer = supplier.answer(want)
                except BaseException as error:  # noqa: BLE001 - the procedure may say more about it, and cleans up
                    want = procedure.throw(error)
                else:
                    want = procedure.send(answer)
                    del answer  # which may be large, before the next pass
        except StopIteration as end:
            result: T = end.value
            return result


@dataclass(frozen=True)
class Supplier:
    """Answers what procedures over a dataset want, by an engine."""

    dataset: Dataset
    engine: Engine

    def answer(self, want: Want) -> Any:
        """Whatever it is, in a pass or without one."""
        match want:
            case Sum():
                return self._reduce(want)
            case Measure():
                return self._resources(want)
            case Write():
                return self._write(want)

    def plan(self, statistic: Statistic, source: Source | None = None) -> Plan:
        """The plan of a pass over the dataset, or over a view of it."""
        source = self.dataset.source if source is None else source
        return self._engine_for(statistic).plan(statistic, source, beside=self.dataset.beside)

    def _reduce(self, want: Sum) -> Reduction:
        engine = self._engine_for(want.statistic)
        if want.lasting:
            return engine.reduce(want.statistic, want.source, kept=want.kept, beside=self.dataset.beside)
        without_run: Engine = replace(engine, run=None)  # type: ignore[type-var]
        return without_run.reduce(want.statistic, want.source)

    def _resources(self, want: Measure) -> Resources:
        name, run = want.statistic.name, self.engine.run if want.lasting else None
        return resources_of_run(run, name, want.source, lambda: self.plan(want.statistic, want.source).resources)

    def _write(self, want: Write) -> Written | None:
        run, folder, started = self.engine.run, want.folder, time.perf_counter()
        if run is not None:
            folder = Folder.of(run) / f"{want.name}-{str(want.view.fingerprint)[:12]}"
        if folder is None:
            return None
        before = folder.names()
        with self.engine.executor() as executor:
            rows: Any = write_row_files(want.view, folder, executor)
        return Written(rows, time.perf_counter() - started, 1 - len(before) / len(folder.names()))

    def _engine_for(self, statistic: Statistic) -> Engine:
        """The engine; a number of panels that was asked for is about what can be cut into some."""
        engine: Any = self.engine
        return engine if statistic.entrywise or engine.panels is None else replace(engine, panels=None)


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
    """The passes of a procedure over a dataset, and over views of it and what was made of it; those that are done."""

    dataset: Dataset
    done: list[Pass] = field(default_factory=list)
    _names: Counter[str] = field(default_factory=Counter)

    def sum(self, name: str, statistic: Statistic, source: Source | None = None) -> Procedure[Reduction]:
        """One pass over the dataset, whose result is kept with it, or over another source, whose result is not."""
        if source is None:
            return self.carry_out(Sum(name, statistic, self.dataset.source, self.dataset.kept))
        return self.carry_out(Sum(name, statistic, source))

    def carry_out(self, want: Sum) -> Procedure[Reduction]:
        """One pass, and a note of it."""
        found: Reduction = yield want
        whole = max(1, self.dataset.source.read_nbytes)
        self.record(want.name, found.plan, found.seconds, 0.0 if found.reused else want.source.read_nbytes / whole)
        return found

    def write(self, want: Write) -> Procedure[Written | None]:
        """Rows in files, and a note of them."""
        written: Written | None = yield want
        if written is not None:
            self.record(want.name, None, written.seconds, written.share)
        return written

    def record(self, name: str, plan: Plan | None, seconds: float, share: float) -> None:
        """Note what was done."""
        self._names[name] += 1
        times = self._names[name]
        self.done.append(Pass(name if times == 1 else f"{name} {times}", plan, seconds, share))
        logger.info("%s: %.1f s", self.done[-1].name, seconds)
