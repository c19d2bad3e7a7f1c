"""Several procedures over views of the same data, as one whose passes serve all of them.

Whenever all of them wait for a pass, one pass over the data has a part for each in a joint state, which sees its own
rows and columns of every block. Those that need fewer passes are done earlier; the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from nfs_dask.cluster.resources import SLACK, USABLE, Resources
from nfs_dask.engine.folding import Reduction
from nfs_dask.methods.procedure import Measure, Passes, Procedure, Sum, Write
from nfs_dask.selection.joint import Joint, JointMember
from nfs_dask.selection.training import TrainingPanels, dataset_by_fold
from nfs_dask.sources.folds import Sorted
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import ColumnChoice, Step, View, some_blocks, some_columns
from nfs_dask.statistics.panels import MemoryPanels

T = TypeVar("T")


def in_lockstep(procedures: Sequence[Procedure[T]], passes: Passes) -> Procedure[list[T]]:
    """The results of all procedures, in order.

    Parameters
    ----------
    procedures
        Over views of the source of ``passes``. Each is told its share of a task's memory.
    passes
        Over the data that are common to all; the joint passes are recorded there.

    Notes
    -----
    What joint passes have finished is not left in a run folder: their states are of no common width.
    """
    results: dict[int, T] = {}
    with ExitStack() as stack:
        for procedure in procedures:
            stack.enter_context(closing(procedure))
        answers: dict[int, Any] = dict.fromkeys(range(len(procedures)))
        while answers:
            wanted: dict[int, Sum] = {}
            for number in [*answers]:
                try:
                    want = procedures[number].send(answers.pop(number))  # none is held during the next pass
                    while not isinstance(want, Sum):
                        want = procedures[number].send((yield from _alone(want, len(procedures), passes)))
                    wanted[number] = want
                except StopIteration as end:
                    results[number] = end.value
            answers = dict(zip(wanted, (yield from _sums([*wanted.values()], passes)), strict=True))
    return [results[number] for number in range(len(procedures))]


def _alone(want: Measure | Write, n: int, passes: Passes) -> Procedure[Any]:
    """Answer a request of one of n procedures other than for sums."""
    if isinstance(want, Write):
        return (yield from passes.write(want))
    resources = yield replace(want, lasting=False)
    return _share(resources, want.source, n)


def _share(resources: Resources, source: Source, n: int) -> Resources:
    """Return the resources of one of n procedures: blocks are read once for all, other memory of a task is divided."""
    if not resources.memory_limit:
        return resources
    reading = 2 * source.block_nbytes + source.import_nbytes
    budget = max(0.0, resources.task_budget - reading) / n + reading
    limit = ((budget + SLACK) * resources.threads + resources.warm) / USABLE
    return replace(resources, memory_limit=int(limit))


def _sums(wants: list[Sum], passes: Passes) -> Procedure[list[Reduction]]:
    """One pass for all that want a view of the common data, and one for each of the others."""
    members = [_member(want, passes.dataset.source) for want in wants]
    shared = [number for number, member in enumerate(members) if member is not None]
    found: dict[int, Reduction] = {}
    if len(shared) > 1:
        parts = [member for member in members if member is not None]
        in_one = _by_fold if _differ_in_the_fold_alone(parts) else _jointly
        found = dict(zip(shared, (yield from in_one([wants[number] for number in shared], parts, passes)), strict=True))
    for number, want in enumerate(wants):
        if number not in found:
            found[number] = yield from passes.sum(want.statistic.name, want.statistic, want.source)
    return [found[number] for number in range(len(wants))]


def _jointly(wants: list[Sum], members: list[JointMember], passes: Passes) -> Procedure[list[Reduction]]:
    """The parts of one joint statistic."""
    carried = sum(want.source.import_nbytes - passes.dataset.source.import_nbytes for want in wants)
    common, members = _of_common_columns(passes.dataset.source, members)
    joint = Joint(max(want.statistic.n_classes for want in wants), tuple(members))
    wanted = [member.numbers for member in members]
    if all(numbers is not None for numbers in wanted):
        common = some_blocks(common, np.unique(np.concatenate([numbers for numbers in wanted if numbers is not None])))
    # A view of all of it, whose tasks hold what the members carry.
    nbytes = common.import_nbytes + max(0, carried)
    view: Any = View(common, "carrying", np.zeros(0, np.int64), nnz=common.nnz, import_nbytes=nbytes)
    reduction = yield from passes.carry_out(Sum(joint.label, joint, view, lasting=False))
    states = zip(joint.parts(reduction.state), members, strict=True)
    return [replace(reduction, panels=MemoryPanels(state, member.n_features)) for state, member in states]


def _of_common_columns(common: Source, members: list[JointMember]) -> tuple[Source, list[JointMember]]:
    """The source with the columns that any member wants, and the members' choices among these; where that is few.

    What is left of a block is then sorted by rows for each member, instead of all of it.
    """
    choices = [member.columns for member in members if member.columns is not None]
    wanted = np.unique(np.concatenate([choice.columns for choice in choices])) if choices else np.zeros(0, np.int64)
    if len(choices) < len(members) or 2 * len(wanted) > common.n_features:
        return common, members
    places = [np.searchsorted(wanted, choice.columns) for choice in choices]
    among = [None if len(own) == len(wanted) else ColumnChoice(own, len(wanted)) for own in places]
    narrow = [replace(member, columns=own) for member, own in zip(members, among, strict=True)]
    return some_columns(common, wanted), narrow


def _differ_in_the_fold_alone(members: list[JointMember]) -> bool:
    """True where all are of one statistic that can be cut along the columns, of the rows outside of one fold."""
    first, rows = members[0].statistic, members[0].rows
    if not first.entrywise or rows is None:
        return False
    return all(
        member.statistic.describe() == first.describe()
        and member.rows is not None
        and member.rows.fold is not None
        and member.rows.folds is rows.folds
        and member.numbers is None
        and not member.steps
        for member in members
    )


def _by_fold(wants: list[Sum], members: list[JointMember], passes: Passes) -> Procedure[list[Reduction]]:
    """A pass of the statistic by fold, cut along the columns like any other, added up over the folds of each.

    It is kept beside the data where that of one fold would be.
    """
    statistic, rows = wants[0].statistic, [member.rows for member in members if member.rows is not None]
    folded = dataset_by_fold(passes.dataset, rows[0].folds)
    counted: Any = replace(statistic, n_classes=rows[0].folds.count * statistic.n_classes)  # type: ignore[type-var]
    kept = None if wants[0].kept is None else folded.kept
    found = yield from passes.carry_out(Sum(statistic.name, counted, folded.source, kept))
    folds = [one.fold for one in rows if one.fold is not None]
    return [replace(found, panels=TrainingPanels(found.panels, statistic, fold)) for fold in folds]


def _member(want: Sum, common: Source) -> JointMember | None:
    """Return the part of a joint pass that a procedure asks for; None where it is of other data."""
    views: list[View] = []
    source = want.source
    while source is not common:
        if not isinstance(source, View):
            return None
        views.insert(0, source)
        source = source.underlying
    numbers, rows, columns, steps = None, None, None, list[Step]()
    for view in views:
        if view.numbers is not None:
            numbers = view.numbers if numbers is None else numbers[view.numbers]
        if isinstance(view, Sorted) and rows is None and not steps:
            rows = view.sorting
        elif view.column_choice is not None and columns is None and not steps:
            columns = view.column_choice
        elif view.step is not None:
            steps.append(view.step)
    return JointMember(want.statistic, want.source.n_features, numbers, rows, columns, tuple(steps))
