"""Several procedures over views of the same data, in the passes of one.

Each runs in a thread of its own with an engine that makes it wait. When all of them wait for a pass, one pass over the
data serves them all: each has its own part in a joint state, and sees its own rows and columns of every block. Those
that need fewer passes are done earlier; the others go on.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from nfs_dask.cluster.resources import SLACK, USABLE, Resources
from nfs_dask.engine.engine import Engine, Executor, Mapping, Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import NfsDaskError
from nfs_dask.files.folder import Folder
from nfs_dask.methods.passes import Passes
from nfs_dask.selection.joint import Carrying, Joint, JointMember
from nfs_dask.selection.training import DatasetByFold, TrainingPanels
from nfs_dask.sources.folds import Sorted
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import Step, View, some_blocks
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.store.cache import Kept

logger = logging.getLogger("nfs_dask")

T = TypeVar("T")


def together(procedures: Sequence[Callable[[Engine], T]], passes: Passes) -> list[T]:
    """The results of all procedures, in order. Each is given the engine that its passes are to run on.

    Parameters
    ----------
    procedures
        Over views of the source of ``passes``. They may run several passes, one after another.
    passes
        Over the data that are common to all; the joint passes are recorded there.

    Notes
    -----
    What joint passes have finished is not left in a run folder: their states are of no common width. The first error is
    raised when all procedures have stopped.
    """
    desk = _Desk(passes, len(procedures))
    workers = [_Worker(procedure, number, desk) for number, procedure in enumerate(procedures)]
    try:
        for worker in workers:
            worker.start()
        desk.serve()
    finally:
        desk.close()
        for worker in workers:
            worker.join()
    return [worker.result for worker in workers]


@dataclass(frozen=True)
class _Ask:
    """A pass that a procedure waits for."""

    statistic: Statistic
    source: Source
    kept: bool  # whether its result would be kept


@dataclass(frozen=True)
class _Errand:
    """Something else that is done for a procedure, at once."""

    run: Callable[[], Any]


@dataclass(frozen=True)
class _End:
    """A procedure that is done."""

    error: BaseException | None = None


class _Stopped(BaseException):
    """Another procedure has failed."""


class _Worker(threading.Thread, Generic[T]):
    """A procedure in a thread."""

    result: T

    def __init__(self, procedure: Callable[[Engine], T], number: int, desk: _Desk) -> None:
        super().__init__(name=f"nfs-dask-procedure-{number}", daemon=True)
        self._procedure, self._number, self._desk = procedure, number, desk

    def run(self) -> None:
        try:
            self.result = self._procedure(_Waiting(self._number, self._desk))
        except _Stopped:
            self._desk.inbox.put((self._number, _End()))
        except BaseException as error:  # noqa: BLE001 - it is raised again, where somebody waits for it
            self._desk.inbox.put((self._number, _End(error)))
        else:
            self._desk.inbox.put((self._number, _End()))


class _Desk:
    """Where procedures ask, and the caller's thread does what they ask for."""

    def __init__(self, passes: Passes, n: int) -> None:
        self.passes = passes
        self.n = n
        self.inbox: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._outboxes: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(n)]
        self._closed = False

    def ask(self, number: int, what: _Ask | _Errand) -> Any:
        """From a procedure: wait for the answer."""
        if self._closed:
            raise _Stopped
        self.inbox.put((number, what))
        answer = self._outboxes[number].get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def serve(self) -> None:
        """Answer until all procedures have ended."""
        running, waiting = set(range(self.n)), dict[int, _Ask]()
        while running:
            if len(waiting) == len(running):
                asked, waiting = dict(sorted(waiting.items())), {}
                for number, found in zip(asked, _carry_out(list(asked.values()), self.passes), strict=True):
                    self._outboxes[number].put(found)
                continue
            number, what = self.inbox.get()
            if isinstance(what, _Ask):
                waiting[number] = what
            elif isinstance(what, _Errand):
                self._outboxes[number].put(what.run())
            elif what.error is not None:
                raise what.error
            else:
                running.discard(number)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        for outbox in self._outboxes:
            outbox.put(_Stopped())


class _Waiting(Engine):
    """The engine of one of several procedures: it plans for its share of the memory, and shares its passes."""

    panels = None
    run = None

    def __init__(self, number: int, desk: _Desk) -> None:
        self._number, self._desk = number, desk
        self.spool = desk.passes.engine.spool

    def executor(self) -> AbstractContextManager[Executor]:
        raise NfsDaskError("procedures that run together share their passes; this is a bug, please report it")

    def plan(self, statistic: Statistic, source: Source, *, beside: Folder | None = None) -> Plan:
        engine = _without_run(self._desk.passes.engine, statistic)
        plan: Plan = self._desk.ask(self._number, _Errand(lambda: engine.plan(statistic, source, beside=beside)))
        return replace(plan, resources=_share(plan.resources, source, self._desk.n))

    def reduce(
        self, statistic: Statistic, source: Source, *, kept: Kept | None = None, beside: Folder | None = None
    ) -> Reduction:
        reduction: Reduction = self._desk.ask(self._number, _Ask(statistic, source, kept is not None))
        return reduction

    @contextmanager
    def mapping(self, source: Source) -> Iterator[Mapping]:
        def map_all(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
            def run() -> list[Any]:
                with self._desk.passes.engine.mapping(source) as mapping:
                    return mapping(function, items)

            found: list[Any] = self._desk.ask(self._number, _Errand(run))
            return found

        yield map_all


def _share(resources: Resources, source: Source, n: int) -> Resources:
    """What one of n procedures may plan with: blocks are read once for all, the rest of a task's memory is divided."""
    if not resources.memory_limit:
        return resources
    reading = 2 * source.block_nbytes + source.import_nbytes
    budget = max(0.0, resources.task_budget - reading) / n + reading
    limit = ((budget + SLACK) * resources.threads + resources.warm) / USABLE
    return replace(resources, memory_limit=int(limit))


def _without_run(engine: Engine, statistic: Statistic) -> Engine:
    """The engine without its run folder, and without panels for what cannot be cut into some."""
    given: Any = engine
    return replace(given, run=None, panels=given.panels if statistic.entrywise else None)


def _carry_out(asked: list[_Ask], passes: Passes) -> list[Reduction]:
    """One pass for all that ask for a view of the common data, and one for each of the others."""
    members = [_member(ask, passes.dataset.source) for ask in asked]
    shared = [ask for ask, member in zip(asked, members, strict=True) if member is not None]
    found = iter(_share_pass(shared, [member for member in members if member is not None], passes))
    return [
        next(found) if member is not None else passes.reduce(ask.statistic.name, ask.statistic, ask.source)
        for ask, member in zip(asked, members, strict=True)
    ]


def _share_pass(asked: list[_Ask], members: list[JointMember], passes: Passes) -> list[Reduction]:
    """One pass for all of them."""
    common = passes.dataset.source
    if len(asked) < 2:
        return [passes.reduce(ask.statistic.name, ask.statistic, ask.source) for ask in asked]
    if _differ_in_the_fold_alone(asked, members):
        return _by_fold(asked, members, passes)
    joint = Joint(max(ask.statistic.n_classes for ask in asked), tuple(members))
    carried = sum(ask.source.import_nbytes - common.import_nbytes for ask in asked)
    view: Any = Carrying(_blocks_of(members, common), carried)
    reduction = _without_run(passes.engine, joint).reduce(joint, view)
    share = view.read_nbytes / max(1, common.read_nbytes)
    passes.record(joint.label, reduction.plan, reduction.seconds, share)
    states = zip(joint.parts(reduction.state), members, strict=True)
    return [replace(reduction, panels=MemoryPanels(state, member.n_features)) for state, member in states]


def _differ_in_the_fold_alone(asked: list[_Ask], members: list[JointMember]) -> bool:
    """Whether all ask for the same statistic, which can be cut along the columns, of the rows outside of one fold."""
    first, rows = asked[0].statistic, members[0].rows
    if not first.entrywise or rows is None:
        return False
    return all(
        ask.statistic.describe() == first.describe()
        and member.rows is not None
        and member.rows.fold is not None
        and not member.rows.inside
        and member.rows.folds is rows.folds
        and member.numbers is None
        and not member.steps
        for ask, member in zip(asked, members, strict=True)
    )


def _by_fold(asked: list[_Ask], members: list[JointMember], passes: Passes) -> list[Reduction]:
    """What is cut along the columns like any pass: the statistic by fold, added up over the folds of each.

    It is kept beside the data where that of one fold would be.
    """
    statistic, dataset = asked[0].statistic, passes.dataset
    assert members[0].rows is not None
    folded = DatasetByFold(dataset, members[0].rows.folds, reuse=dataset.reuse and asked[0].kept)
    counted: Any = replace(statistic, n_classes=members[0].rows.folds.count * statistic.n_classes)  # type: ignore[type-var]
    found = folded.reduce(counted, passes.engine)
    passes.record(statistic.name, found.plan, found.seconds, 0.0 if found.reused else 1.0)
    reductions = []
    for member in members:
        assert member.rows is not None and member.rows.fold is not None
        reductions.append(replace(found, panels=TrainingPanels(found.panels, statistic, member.rows.fold)))
    return reductions


def _member(ask: _Ask, common: Source) -> JointMember | None:
    """What a procedure asks for as a part of a joint pass; None where it is of other data."""
    views: list[View] = []
    source = ask.source
    while source is not common:
        if not isinstance(source, View):
            return None
        views.insert(0, source)
        source = source.underlying
    numbers, rows, steps = None, None, list[Step]()
    for view in views:
        if view.numbers is not None:
            numbers = view.numbers if numbers is None else numbers[view.numbers]
        if isinstance(view, Sorted) and rows is None and not steps:
            rows = view.sorting
        elif view.step is not None:
            steps.append(view.step)
    return JointMember(ask.statistic, ask.source.n_features, numbers, rows, tuple(steps))


def _blocks_of(members: list[JointMember], common: Source) -> Source:
    """The common source without the blocks that nobody wants."""
    wanted = [member.numbers for member in members]
    if any(numbers is None for numbers in wanted):
        return common
    return some_blocks(common, np.unique(np.concatenate([numbers for numbers in wanted if numbers is not None])))
