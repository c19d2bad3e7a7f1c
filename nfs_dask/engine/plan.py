"""A plan: which blocks go to which task, how states come together, and how much memory a worker needs for it.

A plan is a value made before anything is read. It can be printed, compared, stored and refused.

Two strategies:

``dense``
    Each run folds its blocks into one whole state; a tree of bounded fan-in merges the states in block order. Right
    while a state is small: merging states is what costs.
``scatter``
    Each run sorts its entries by column into spool files; then each panel, a range of columns, is folded from all
    files by one task. No task holds more than a panel, nothing is merged, and every finished file is a checkpoint.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
import itertools
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.tiles import GATHERED, PACKED, packs
from nfs_dask.cluster.resources import SLACK, USABLE, Resources, budget_of_task, some_names
from nfs_dask.engine.cost_model import Hosts, PassWork, forecast
from nfs_dask.errors import InputError, PlanError, warn
from nfs_dask.redaction import redacted
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import MiB, format_at_least, format_bytes, format_seconds

Strategy = Literal["dense", "scatter"]

CHEAP_STATE = 32 * MiB  # below this, merging whole states costs less than spooling entries
CHEAP_IN_PLACE = 256 * MiB  # the same for threads of one worker, which need not send states to each other
PANEL_STATE = 64 * MiB  # panels larger than this gain nothing
FOLD_ENTRIES = 4 << 20  # spooled entries that a task which folds panels holds at a time, at least
MOST_FOLD_ENTRIES = 32 << 20  # and at most
PIECE_ENTRIES = 1 << 16  # of each block, that it reads at once where there is room: many short reads take longer
FOLDS_PER_SLOT = 4  # tasks that fold panels, at least, so that all slots are busy to the end
BATCH_NBYTES = 256 * MiB  # spooled bytes between two checkpoints
BUCKET_NBYTES = 32  # sizes and borders of one bucket of entries, while they are sorted or put together
SLOWER = 4  # times that a worker may be slower than the others and not hold a pass
RUNS_PER_SLOT = 12  # runs beyond these gain little: the shortest ones are some 4 % of what a slot does
RUN_SECONDS = 2.0  # shorter runs would cost more to schedule than they balance
MERGED_PER_SECOND = 1e9  # bytes of states
MERGING = 0.05  # of the time of a pass, that states of more runs than one for each slot may take to merge
LEAVING = 0.8  # of the time with all workers, that a pass may take without the small ones before they are left out
ENTRY_SECONDS = 12e-9  # to read and count one entry, one thread, measured on the case of benchmarks/counting.py
CLIENT_COLUMN = 48  # bytes that a client takes for each feature while it solves, at most
CLIENT_MOST = 512 * MiB  # and for all of them, where they are more than a client holds vectors of
CLIENT_FEATURES = 1 << 25
READ_COPIES = 1.0  # decoding holds about one more copy of a block while it is read


@dataclass(frozen=True)
class Plan:
    """One pass over the data."""

    statistic: Mapping[str, Any]
    fingerprint: str | None
    n_rows: int
    n_features: int
    n_blocks: int
    resources: Resources
    strategy: Strategy
    runs: tuple[tuple[int, int], ...]  # block ranges, in order
    batch: int  # blocks between two checkpoints of a run
    fan_in: int
    panel_width: int  # columns of the widest panel
    tile_shift: int  # entries are spooled by tiles of 2**tile_shift columns
    task_nbytes: Mapping[str, int]  # memory of each kind of task
    read_nbytes: int
    spool_nbytes: int
    entries: int = 0  # about
    state_nbytes: int = 0  # of all features
    packed_nbytes: int | None = None  # of such a state on its way; None: as many
    fold_entries: int = FOLD_ENTRIES  # spooled entries that a task which folds panels holds at a time
    overcommit: bool = False  # carried out also where it does not fit

    @property
    def work(self) -> PassWork:
        """What its time depends on."""
        lengths = [stop - start for start, stop in self.runs]
        return PassWork(
            self.strategy,
            self.entries,
            self.n_features,
            self.n_blocks,
            runs=len(self.runs),
            busiest=_busiest(lengths, self.resources.slots),
            fan_in=self.fan_in,
            state_nbytes=self.state_nbytes,
            read_nbytes=self.read_nbytes,
            spool_nbytes=self.spool_nbytes,
            batches=sum(-(-length // self.batch) for length in lengths),
            panels=self.panels,
            folds=self.folds,
            tasks=self.tasks,
            remote=self.resources.remote,
            packed_nbytes=self.packed_nbytes,
        )

    @property
    def seconds(self) -> float:
        """A forecast of the model in `forecast`, where data lie on disks of the workers' own, or as fast."""
        r = self.resources
        return forecast([self.work], Hosts(r.workers, r.slots / r.workers)).seconds

    @property
    def panels(self) -> int:
        """How many panels of the planned width there are; where columns are uneven, up to twice as many are cut."""
        return -(-self.n_features // self.panel_width)

    @property
    def folds(self) -> int:
        """How many tasks fold panels, about: a task folds neighbors whose entries it can hold."""
        held = -(-self.entries // max(1, self.fold_entries))
        return min(self.panels, max(held, FOLDS_PER_SLOT * self.resources.slots))

    @property
    def tasks(self) -> int:
        """How many tasks there are, of reading and of merging."""
        if self.strategy == "scatter":
            return len(self.runs) + self.folds
        merges: list[int] = []
        merge_tree(self.runs, self.fan_in, lambda _: merges.append(1))
        return len(self.runs) + len(merges)

    @property
    def peak_nbytes(self) -> int:
        """Most memory a worker takes."""
        return int(self.resources.warm + self.resources.threads * (max(self.task_nbytes.values()) + SLACK))

    @property
    def least_worker(self) -> int:
        """Memory limit of the smallest worker of one thread that the largest task fits."""
        return math.ceil((self.resources.warm + max(self.task_nbytes.values()) + SLACK) / USABLE)

    @property
    def client_nbytes(self) -> int:
        """Most memory the client takes beside what it has now, and but for the features that are kept."""
        solving = CLIENT_COLUMN * self.n_features if self.n_features <= CLIENT_FEATURES else CLIENT_MOST
        return int(solving + (self.task_nbytes["fold a run"] if self.strategy == "dense" else 0))

    @property
    def fits(self) -> bool:
        """Whether the largest task fits into what workers have to give."""
        return replace(self, overcommit=False).suits(self.resources.memory_limit, self.resources.threads)

    def suits(self, memory_limit: int, threads: int) -> bool:
        """Whether the largest task fits into what a worker of this size has to give."""
        least = max(self.task_nbytes.values())
        return self.overcommit or least <= budget_of_task(memory_limit, threads, self.resources.warm)

    def check(self, source: Source | None = None) -> None:
        """Refuse a plan that does not fit, with the number that would, and what to do about chunks of the source.

        Where workers may be overcommitted, it is warned of instead.
        """
        if self.fits:
            return
        task, most = max(self.task_nbytes.items(), key=lambda item: item[1])
        r = self.resources
        message = (
            f"this pass needs {format_bytes(self.peak_nbytes)} in each worker "
            f"({format_bytes(r.warm)} warm, and {format_bytes(most)} to {task} on each of {r.threads} thread(s)); "
            f"workers have {format_bytes(r.memory_limit)}, {format_bytes(USABLE * r.memory_limit)} of it usable. "
            f"Give each worker {format_at_least(self.peak_nbytes / USABLE)}"
        )
        message += (", or fewer threads" if r.threads > 1 else "") + r.restarting
        if self.strategy == "dense" and r.spool is None:
            message += ", or name a folder that all workers reach (spool=...), so that features can be cut into panels"
        message += "" if source is None else self._rechunking(source)
        if not self.overcommit:
            raise PlanError(f'{message}; on_overcommit="warn" (--overcommit warn) runs it all the same')
        warn(f"{message}. It is run all the same: Dask may write data to disk, or restart workers")

    def _rechunking(self, source: Source) -> str:
        """Advice where it is chunks of the user's that take most of a task's memory."""
        reading, needed = _read_memory(source), max(self.task_nbytes.values())
        if source.delayed is None or 2 * reading < needed:
            return ""
        left = self.resources.task_budget - (needed - reading)
        # Twice as many as would do: what small chunks take is a bound, and of large ones it was measured.
        parts = f"{math.ceil(2 * reading / left):,} parts" if left > 0 else "several parts"
        return (
            f", or make chunks smaller, of which the largest takes {format_bytes(reading)} of that as rows and their "
            f"copy: cut each into {parts}, with X.rechunk({{0: rows}}) or X.repartition(npartitions=...)"
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values, with what follows from it."""
        names = ("panels", "tasks", "peak_nbytes", "client_nbytes", "seconds", "fits")
        derived = {name: getattr(self, name) for name in names}
        values = {**json.loads(json.dumps(dataclasses.asdict(self))), **derived}
        if self.resources.spool is not None:  # models and run folders keep this
            values["resources"]["spool"] = redacted(self.resources.spool)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Plan:
        kept = {f.name: values[f.name] for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        kept |= {f.name: values[f.name] for f in dataclasses.fields(cls) if f.name in values}
        kept["resources"] = Resources.from_json(values["resources"])
        kept["runs"] = tuple((int(a), int(b)) for a, b in values["runs"])
        return cls(**kept)

    def __getstate__(self) -> dict[str, Any]:
        """Runs as packed lengths: each task carries the plan, and hundreds of workers have thousands of runs."""
        lengths = np.array([stop - start for start, stop in self.runs], "<u4")
        return {**self.__dict__, "runs": (self.runs[0][0], zlib.compress(lengths.tobytes()))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        first, packed = state["runs"]
        edges = first + np.cumsum(np.frombuffer(zlib.decompress(packed), "<u4"), dtype=np.int64)
        self.__dict__.update(state, runs=tuple(itertools.pairwise([first, *edges.tolist()])))

    def __str__(self) -> str:
        r = self.resources
        limit = f" of {format_bytes(r.memory_limit)}" if r.memory_limit else ""
        rows = f"{self.n_rows:,}" if self.n_rows >= 0 else "an unknown number of"
        how = {
            "dense": "each run folds a whole state"
            + (f", merged {self.fan_in} at a time in block order" if len(self.runs) > 1 else ""),
            "scatter": f"entries are spooled by column, then {self.panels} panel(s) of {self.panel_width:,} features",
        }
        lines = [
            f"Pass      {self.statistic['statistic']} over {rows} rows x {self.n_features:,} features",
            f"Strategy  {self.strategy}: {how[self.strategy]}",
            f"Tasks     {self.tasks}: {len(self.runs)} run(s) over {self.n_blocks:,} blocks, "
            f"on {r.workers} worker(s) " + (f"with {r.slots} threads" if r.all_threads else f"x {r.threads} thread(s)"),
            f"Reads     {format_bytes(self.read_nbytes)} once"
            + (f", spools {format_bytes(self.spool_nbytes)}" if self.strategy == "scatter" else ""),
            f"Memory    at most {format_bytes(self.peak_nbytes)}{limit} a worker: {format_bytes(r.warm)} warm, then "
            + ", ".join(f"{format_bytes(n)} to {task}" for task, n in self.task_nbytes.items()),
            f"Client    at most {format_bytes(self.client_nbytes)} more than it has now",
            f"Time      about {format_seconds(self.seconds)}",
        ]
        if r.left_out:
            lines.append(f"Left out  {some_names(r.left_out)}: too small for this pass")
        if not self.fits:
            lines.append("Refused   it does not fit these workers")
        return "\n".join(lines)


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
        names = ("tasks", "read_nbytes", "peak_nbytes", "client_nbytes", "fits", "seconds")
        return {"passes": [plan.to_json() for plan in self.passes], **{name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        total = (
            f"Together  {len(self.passes)} passes, {self.tasks} tasks, reads {format_bytes(self.read_nbytes)}, at most "
            f"{format_bytes(self.peak_nbytes)} a worker, about {format_seconds(self.seconds)}"
        )
        return "\n\n".join([*map(str, self.passes), total])


def make_plan(statistic: Statistic, source: Source, resources: Resources, panels: int | None = None) -> Plan:
    """The plan of one pass, on all workers, or without the small ones if these would prevent it or slow it down."""
    if source.n_blocks < 1 or source.n_features < 1:
        raise InputError(
            f"the data have {source.n_blocks} block(s) and {source.n_features} column(s); give at least one document "
            "and one feature"
        )
    if panels is not None and panels < 1:
        raise InputError(f"panels={panels}; give 1 or more, or None to let the plan choose")
    plans = [_plan_for(statistic, source, choice, panels) for choice in resources.choices()]
    fitting = [plan for plan in plans if plan.fits]
    return min(fitting, key=lambda plan: plan.seconds * (LEAVING if plan is plans[0] else 1.0), default=plans[0])


def _plan_for(statistic: Statistic, source: Source, resources: Resources, panels: int | None) -> Plan:
    """Whole states while they are cheap to merge, panels through a spool beyond."""
    candidates = []
    if panels in (None, 1):
        candidates.append(_dense(statistic, source, resources))
    if panels != 1 and statistic.entrywise and resources.spool is not None:
        candidates.append(_scatter(statistic, source, resources, panels))
    if not candidates and not statistic.entrywise:
        raise PlanError(f"{statistic.name} cannot be cut into panels; leave panels out, or give 1")
    if not candidates:
        raise PlanError(f"{panels} panels need a folder that all workers reach: name one with spool=...")
    fitting = [plan for plan in candidates if plan.fits] or [min(candidates, key=lambda plan: plan.peak_nbytes)]
    if len(fitting) > 1 and resources.slots > 1:
        cheap = CHEAP_STATE if resources.workers > 1 else CHEAP_IN_PLACE
        return fitting[_state_nbytes(statistic, source) > cheap]
    return fitting[0]


def merge_tree(leaves: Iterable[Any], fan_in: int, merge: Callable[[list[Any]], Any]) -> Any:
    """The root of a tree over the leaves in their order. What can be merged is, before the next leaf is asked for."""
    levels: list[list[Any]] = [[]]
    for leaf in leaves:
        node, level = leaf, 0
        while True:
            if level == len(levels):
                levels.append([])
            levels[level].append(node)
            if len(levels[level]) < fan_in:
                break
            group, levels[level] = levels[level], []
            node, level = merge(group), level + 1
    rest: list[Any] = []
    for nodes in levels:  # higher levels hold earlier leaves
        group = [*nodes, *rest]
        rest = [merge(group)] if len(group) > 1 else group
    return rest[0]


def _state_nbytes(statistic: Statistic, source: Source, n_features: int | None = None) -> int:
    return statistic.array_nbytes(n_features or source.n_features, source.kind, source.weighted)


def _read_memory(source: Source) -> int:
    """Bytes while a block is read: the block, what decoding holds beside it, and the libraries of this source."""
    copies = 1 if source.in_memory else 1 + READ_COPIES
    return int(source.block_nbytes * copies) + source.import_nbytes


def _busiest(lengths: list[int], slots: int) -> int:
    """Blocks of the slot that has most to do, where each takes the next run when it is free."""
    loads = [0] * min(slots, len(lengths))
    for length in lengths:
        heapq.heapreplace(loads, loads[0] + length)
    return max(loads)


def _seconds(source: Source, resources: Resources) -> float:
    entries = source.about_entries
    return entries * ENTRY_SECONDS / resources.slots


def _runs(source: Source, resources: Resources, per_slot: float) -> tuple[tuple[int, int], ...]:
    """Ranges of blocks, long ones first, as long as each is worth a task."""
    if resources.remote and source.is_shipped:
        return tuple((block, block + 1) for block in range(source.n_blocks))  # each the input of a task of its own
    one_thread = _seconds(source, resources) * resources.slots
    least = source.n_blocks * RUN_SECONDS / one_thread if one_thread else source.n_blocks
    runs = run_bounds(source.n_blocks, resources.slots, per_slot, least)
    rows = source.rows_of_blocks() if len(runs) > 1 else None
    return runs if rows is None else balanced(runs, rows)


def run_bounds(n_blocks: int, slots: int, per_slot: float, least: float) -> tuple[tuple[int, int], ...]:
    """Ranges of blocks in their order: about ``per_slot`` for each slot, none of many fewer than ``least`` blocks.

    One for each slot where there is not enough for more; equal ones where they are few.
    """
    # How many times the shortest of so many runs goes into what a slot does.
    finest = per_slot if per_slot <= SLOWER else SLOWER * math.exp(per_slot / SLOWER - 1)
    least = max(1.0, least, n_blocks / (slots * finest))
    lengths, left = [], n_blocks
    while left > SLOWER * slots * least:
        lengths.append(left // (SLOWER * slots))
        left -= lengths[-1]
    count = min(left, slots * max(1, round(left / (least * slots))))
    length, longer = divmod(left, count)
    lengths += [length + 1] * longer + [length] * (count - longer)
    lengths.sort(reverse=True)  # they are, but for rounding
    return tuple(itertools.pairwise(itertools.accumulate(lengths, initial=0)))


def balanced(runs: tuple[tuple[int, int], ...], sizes: Array) -> tuple[tuple[int, int], ...]:
    """As many runs, each with the share of the rows that it had of the blocks, as near as blocks can be cut.

    Blocks end where files do, too, so that some are much smaller than others. Among many that evens out.
    """
    n_blocks, n_runs = len(sizes), len(runs)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    wanted = np.array([start for start, _ in runs]) / n_blocks * ends[-1]
    after = np.searchsorted(ends, wanted)
    nearest = after - (2 * wanted < ends[after] + ends[np.maximum(after - 1, 0)])
    order = np.arange(n_runs)  # a run has a block at least, and those after it, too
    starts = np.minimum(np.maximum.accumulate(nearest - order) + order, n_blocks - n_runs + order)
    return tuple(itertools.pairwise([*np.maximum(starts, order).tolist(), n_blocks]))


def _common(
    statistic: Statistic, source: Source, resources: Resources, runs: tuple[tuple[int, int], ...]
) -> dict[str, Any]:
    """What plans of either strategy say of the data."""
    longest = max(stop - start for start, stop in runs)
    state = _state_nbytes(statistic, source)
    whole = source.kind in ("binary", "count") and not source.weighted
    return {
        "statistic": statistic.in_short(),
        "fingerprint": source.fingerprint,
        "n_rows": source.n_rows,
        "n_features": source.n_features,
        "n_blocks": source.n_blocks,
        "resources": resources,
        "runs": runs,
        "batch": max(1, min(longest, BATCH_NBYTES // max(1, source.block_nbytes))),
        "read_nbytes": source.read_nbytes,
        "entries": source.about_entries,
        "state_nbytes": state,
        # Most whole numbers are small, and take a byte on their way.
        "packed_nbytes": state // 8 if whole else None,
    }


def _dense(statistic: Statistic, source: Source, resources: Resources) -> Plan:
    """With as many runs as are cheap to merge; where waiting states of so many do not fit, with fewer."""
    state = _state_nbytes(statistic, source)
    cheap = MERGING * _seconds(source, resources) * MERGED_PER_SECOND / state if state else RUNS_PER_SLOT
    for per_slot in (RUNS_PER_SLOT, 8, 4, 2):
        if per_slot <= cheap and (plan := _folded(statistic, source, resources, state, per_slot)).fits:
            return plan
    return _folded(statistic, source, resources, state, 1)


def _folded(statistic: Statistic, source: Source, resources: Resources, state: int, per_slot: int) -> Plan:
    runs = _runs(source, resources, per_slot)
    run = state + _read_memory(source) + statistic.working_nbytes(source.n_features)
    tasks, fan_in = {"fold a run": run}, 2
    if len(runs) > 1:
        # A merge holds its inputs and its result, beside finished states that wait for their turn, and one on its way
        # with the bytes that it came in.
        waiting = -(-len(runs) // resources.slots)
        merges = {f: (f + 2 + waiting) * state + state // 8 for f in (8, 4, 2)}
        fan_in = next((f for f, n in merges.items() if n <= min(resources.task_budget, max(run, 4 * CHEAP_STATE))), 2)
        tasks["merge states"] = merges[fan_in]
    return Plan(
        **_common(statistic, source, resources, runs),
        strategy="dense",
        fan_in=fan_in,
        panel_width=source.n_features,
        tile_shift=0,
        task_nbytes=tasks,
        spool_nbytes=0,
    )


def _scatter(statistic: Statistic, source: Source, resources: Resources, panels: int | None) -> Plan:
    """With tiles that sort fast; where a panel of one such tile is too large, with the largest that fit."""
    shift = tile_shift(source.n_features, statistic.n_classes, panels or 1)
    tried = []
    for finer in range(shift, -1, -1):
        tried.append(_tiled(statistic, source, resources, panels, finer))
        if tried[-1].fits:
            return tried[-1]
    return min(tried, key=lambda plan: plan.peak_nbytes)


def _tiled(statistic: Statistic, source: Source, resources: Resources, panels: int | None, shift: int) -> Plan:
    runs = _runs(source, resources, RUNS_PER_SLOT)
    entry = spooled_entry_nbytes(source, shift)
    width = _panel_width(statistic, source, resources, shift, panels)
    buckets = -(-source.n_features // (1 << shift)) * statistic.n_classes
    entries, held = source.about_entries, _fold_entries(statistic, source, resources, width, shift)
    return Plan(
        **_common(statistic, source, resources, runs),
        strategy="scatter",
        fan_in=0,
        panel_width=width,
        tile_shift=shift,
        task_nbytes={
            "spool a run": _read_memory(source) + source.block_entries * entry + buckets * BUCKET_NBYTES,
            "fold a panel": _panel_memory(statistic, source, width, shift, held),
        },
        spool_nbytes=entries * entry + source.n_blocks * buckets * 8,
        fold_entries=held,
    )


def tile_shift(n_features: int, n_classes: int, panels: int) -> int:
    """Tiles small enough for a processor's cache, but few enough that sorting into them stays fast."""
    shift = 16
    while shift > 0 and n_features < 16 * panels << shift:
        shift -= 1
    while (n_features >> shift) * n_classes > 4096 and shift < 30:
        shift += 1
    return shift


def spooled_entry_nbytes(source: Source, shift: int) -> int:
    """Bytes of one spooled entry: its column within the tile, its value and, for weighted rows, its weight."""
    value = 1 if source.kind == "binary" else 8
    if source.kind == "count" and source.trusted:  # held in the smallest type, beside columns of four bytes or more
        value = min(8, max(1, source.block_nbytes // max(1, source.block_entries) - 4))
    together = packs(np.dtype(f"u{value}"), shift) if value in (1, 2) else False
    return (PACKED.itemsize if together else value + (2 if shift <= 16 else 4)) + (8 if source.weighted else 0)


def _panel_memory(statistic: Statistic, source: Source, width: int, shift: int, held: int) -> int:
    """Bytes to fold panels: the arrays of one, their copy on the way out, entries, and what is made of some of them."""
    buckets = -(-source.n_features // (1 << shift)) * statistic.n_classes
    entries = held * spooled_entry_nbytes(source, shift)
    working = min(source.n_blocks * source.block_entries, GATHERED) * (40 if source.weighted else 12) + (8 << shift)
    return 2 * _state_nbytes(statistic, source, width) + entries + working + buckets * BUCKET_NBYTES


def _fold_entries(statistic: Statistic, source: Source, resources: Resources, width: int, shift: int) -> int:
    """Entries that a task holds which folds panels: as many as it has room for, within bounds."""
    least = _least_held(source)
    left = resources.task_budget - _panel_memory(statistic, source, width, shift, least)
    room = least + left / spooled_entry_nbytes(source, shift)
    return int(max(least, min(room, PIECE_ENTRIES * source.n_blocks, MOST_FOLD_ENTRIES)))


def _least_held(source: Source) -> int:
    """Entries that a task holds which folds panels, at least: a piece of a spool file is read whole."""
    return min(max(FOLD_ENTRIES, source.block_entries), source.n_blocks * source.block_entries)


def _panel_width(statistic: Statistic, source: Source, resources: Resources, shift: int, panels: int | None) -> int:
    tiles = -(-source.n_features // (1 << shift))
    least = _least_held(source)
    if panels is not None:
        return _columns(tiles, panels, shift, source.n_features)

    def is_small(count: int) -> bool:
        width = _columns(tiles, count, shift, source.n_features)
        memory = _panel_memory(statistic, source, width, shift, least)
        return _state_nbytes(statistic, source, width) <= PANEL_STATE and memory <= resources.task_budget

    # A multiple of the slots, so that all are busy to the end.
    counts = range(min(tiles, resources.slots), tiles, resources.slots)
    first = bisect.bisect_left(counts, True, key=is_small)
    return _columns(tiles, counts[first] if first < len(counts) else tiles, shift, source.n_features)


def _columns(tiles: int, panels: int, shift: int, n_features: int) -> int:
    """Width of a panel: whole tiles, because entries are spooled by tile."""
    return min(n_features, -(-tiles // panels) << shift)
