"""The distributed engine: the tasks of a plan on a Dask cluster.

Tasks carry numbers, not data: a run is a range of blocks, and what all tasks share, the `Job`, is a parcel that comes
with each, or where it is large itself a task whose result workers pass on to each other. Nothing lives on a worker
outside of tasks, so Dask may repeat, steal or lose any of them. Errors of ours come back as values, because Dask would
repeat a raised one in vain.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary, WeakSet

from nfs_dask.cluster.addresses import checked_address
from nfs_dask.cluster.crew import Crew
from nfs_dask.cluster.finding import (
    ANSWER_SECONDS,
    adaptive_maximum,
    ask_workers,
    current_client,
    find_client,
    measure,
    memory_of_workers,
    own_nbytes,
    silent_workers,
    workers_of,
)
from nfs_dask.cluster.resources import Resources, Silent
from nfs_dask.cluster.warming import Warming
from nfs_dask.engine.engine import Engine, label_of
from nfs_dask.engine.folding import Fold
from nfs_dask.engine.handing_out import Handout, Work, WorkerTooSmall
from nfs_dask.engine.on_workers import Failure, PickledJob, hand_on, merge_task, run_item, run_task, until_stopped
from nfs_dask.engine.plan import Plan, merge_tree
from nfs_dask.engine.task_tally import TOPIC, read_nbytes
from nfs_dask.engine.tasks import Job, fold_run, scatter_run
from nfs_dask.errors import ClusterError, NfsDaskError
from nfs_dask.files.folder import Folder
from nfs_dask.graphs import lazy_tasks
from nfs_dask.progress import Progress
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import parse_bytes

logger = logging.getLogger("nfs_dask")

RETRIES = 3  # of a task that raised something unforeseen
SMALL_JOB = 16 << 10  # bytes
UNREACHED = "Timed out trying to connect"  # begins what Dask says of a scheduler that its host does not get to
GROWTH = 64 << 20  # bytes by which workers may have grown since they were asked; of those of more, it is asked again
_LASTING = ("local_directory", "nthreads", "memory_limit")  # of a worker; one that restarts has another directory
STOP_SECONDS = 3.0  # that running tasks are waited for when they were cancelled
FETCH_SECONDS = 0.25  # that a result waits for others; what a worker holds that dies meanwhile is made again
REPLICATE_SECONDS = 30.0  # that workers may take to pass a job on to each other
SILENCE_LOOK_SECONDS = 10.0  # between two looks for workers that have fallen silent

_known: WeakKeyDictionary[Any, dict[Any, tuple[Resources, int]]] = WeakKeyDictionary()  # what workers have, by client


@dataclass(frozen=True, repr=False)
class DaskEngine(Engine):
    """Runs passes on a Dask cluster.

    Parameters
    ----------
    address : str, distributed.Client or cluster, optional
        Of a scheduler; or a client or cluster, whose address it becomes. None: the current client; without one, a local
        cluster for the length of the pass. Copies of the engine use the client or cluster that was given, with its
        certificates; an engine that was pickled knows the address alone, and has certificates of Dask's configuration.
    workers : int, optional
        How many workers to plan for. None: the maximum of an adaptive cluster, else those present.
    memory_limit : int or str, optional
        Of each worker of a cluster that is started here, such as "1GiB".
    panels : int, optional
        Cut the features into about this many panels; None: as many as memory asks for.
    run : str, optional
        A folder in which the pass leaves what it finished, so that it can be resumed.
    spool : str, optional
        A folder for temporary files that all workers reach.
    insecure : bool, default False
        Talk to a scheduler on another machine without encryption. Refused otherwise where ``address`` is a string; of
        a client or cluster that is there, and the current client, it is warned. ``nfs-dask.insecure`` of Dask's
        configuration says it for all engines.
    on_overcommit : {"refuse", "warn"}, default="refuse"
        What to do with a plan for which workers have too little memory. With "warn" it is run all the same: Dask may
        write data to disk, or restart workers.
    """

    address: Any = None
    workers: int | None = None
    memory_limit: str | int | None = None
    panels: int | None = None
    run: str | None = None
    spool: str | None = None
    insecure: bool = False
    on_overcommit: Literal["refuse", "warn"] = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", checked_address(self.address))

    @contextmanager
    def session(self) -> Iterator[Engine]:
        if self.address is not None or current_client() is not None:
            yield self
            return
        limit = None if self.memory_limit is None else parse_bytes(self.memory_limit)
        with find_client(None, self.workers, limit) as client:
            yield replace(self, address=client.scheduler.address)

    @contextmanager
    def executor(self) -> Iterator[ClusterExecutor]:
        limit = None if self.memory_limit is None else parse_bytes(self.memory_limit)
        found = find_client(self.address, self.workers, limit, insecure=self.insecure)
        with found as client, ExitStack() as stack:
            executor = ClusterExecutor(client, self.workers)
            stack.callback(executor.close)
            try:
                yield executor
            except Exception as error:
                if (told := executor.explained(error)) is error:
                    raise
                raise told from error


def _lazy(function: Callable[..., Any]) -> Callable[..., Any]:
    import dask

    return dask.delayed(function, pure=False)


def _key(name: str) -> str:
    """What Dask calls a task of that name."""
    return f"nfs-{name.replace('_', '-')}-{uuid.uuid4().hex[:16]}"


def _only(allowed: list[str] | None) -> dict[str, Any]:
    """Options of Dask that keep tasks to some workers, unless none of them is left: then a task refuses itself."""
    return {} if allowed is None else {"workers": allowed, "allow_other_workers": True}


def _checked(result: Any) -> Any:
    """A result of a task, unless that is a failure."""
    if isinstance(result, Failure):
        raise result.error
    return result


def _lazy_about(function: Callable[..., Any], *about: Any) -> Callable[..., Any]:
    """A lazy function of what follows. Dask would look for lazy values in all runs of a job, for each task again."""
    from distributed import Future

    if any(isinstance(one, Future) for one in about):
        return partial(_lazy(function), *about)
    return _lazy(partial(function, *about))


_stages: dict[str, Progress] = {}  # that run now in this process, by the names of their passes
_listeners: Counter[str] = Counter()  # passes of each client that hears of them


def _hear(event: tuple[float, dict[str, Any]]) -> None:
    """Advance the stage that a message is about, which may be another client's, or say that a worker was lost."""
    message = event[1]
    if lost := message.get("lost"):
        logger.warning("worker %s was lost, and others do its tasks again; its log may say why", lost)
    elif progress := _stages.get(message["pass"]):
        progress.advance(message.get("done", 0), read_nbytes(message))


class ClusterExecutor:
    """Submits the tasks of one pass, and takes back whatever is unfinished when the pass ends."""

    def __init__(self, client: Any, workers: int | None) -> None:
        self._client = client
        self._workers = workers
        self._name = uuid.uuid4().hex[:12]
        self._subscribed = False
        self._answered: list[Any] = []  # futures of the stage before, until tasks of the next one are on their way
        self._asked: dict[str, Any] = {}  # futures of workers that warm up, by address
        self._named: set[str] = set()  # addresses of workers that were said to be silent
        self._made: WeakSet[Any] = WeakSet()  # futures of this pass that are still referred to
        self._crew_of: tuple[Plan, Crew] | None = None

    def close(self) -> None:
        """The pass is over."""
        self._stop()
        self._answered = []
        for future in self._asked.values():
            future.release()
        if self._subscribed:
            _listeners[self._client.id] -= 1
            if not _listeners[self._client.id] and self._client.status == "running":
                self._client.unsubscribe_topic(TOPIC)

    def _stop(self) -> None:
        """Release all futures of the pass; tasks that are running still write, so wait until they have stopped.

        To cancel would reach beyond the pass: tasks that depend on a future, and other clients that want it. A released
        task that nobody else wants is dropped by the scheduler, and notices that where it runs.
        """
        futures = list(self._made)
        self._made.clear()
        unfinished = not all(future.done() for future in futures)
        if self._client.status == "running":
            for future in futures:  # tracebacks and callers' variables may refer to them for long
                future.release()
            if unfinished:
                with suppress(OSError):  # a scheduler that cannot be reached has been told of already
                    workers = list(self._client.nthreads())
                    ask_workers(self._client, workers, until_stopped, STOP_SECONDS, seconds=STOP_SECONDS + 0.2)

    def resources(
        self,
        places: Sequence[Folder],
        *,
        statistic: Statistic | None = None,
        rehearsal: Callable[[], None] | None = None,
    ) -> Resources:
        small = None if statistic is None else statistic.small()
        kind, where = None if small is None else json.dumps(small.describe()), [place.location for place in places]
        told = workers_of(self._client)
        there = [(address, *(one[name] for name in _LASTING)) for address, one in sorted(told.items())]
        asked = (*there, *where, self._workers, adaptive_maximum(self._client), kind)
        memory = max((own_nbytes(one.get("metrics") or {}) for one in told.values()), default=0)
        known, then = _known.setdefault(self._client, {}).get(asked, (None, 0))
        if known is not None and memory <= then + GROWTH and there and rehearsal is None and self._are_free(told):
            self._subscribe()
            return known
        warming = Warming(small, rehearsal)
        found = measure(self._client, self._workers, places, warming, meanwhile=self._workers_are_asked)
        late = self._late()
        self._answered = [self._asked.pop(address) for address in self._asked.keys() - late]
        if not late:
            _known[self._client][asked] = found, max(memory, found.warm)
        return found

    def _are_free(self, told: Mapping[str, Any]) -> bool:
        """Whether no worker has other work or is silent, by heartbeats, which may tell of work that has just ended."""
        last = max(one["last_seen"] for one in told.values())
        if any(last - one["last_seen"] > ANSWER_SECONDS for one in told.values()):
            return False
        counts = [(one.get("metrics") or {}).get("task_counts") or {} for one in told.values()]
        return not any(one.get("executing") for one in counts) or not any(self._client.processing().values())

    def memory(self) -> dict[str, tuple[int, int]]:
        return memory_of_workers(self._client, ANSWER_SECONDS) if self._client.status == "running" else {}

    def silent(self) -> list[Silent]:
        return silent_workers(self._client) if self._client.status == "running" else []

    def report(self, **done: int) -> None:
        self._subscribe()
        self._client.log_event(TOPIC, {"pass": self._name, **done})

    def map(
        self,
        function: Callable[..., Any],
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        total: int,
        label: str,
        unit: str,
    ) -> list[Any]:
        with self._watched(total, label, unit):
            crew = self._crew(job)
            shared = self._share(job, crew)
            works = [Work(run_task, (function, shared, args, self._name)) for args in arguments]
            return self._results(works, job, crew, short=True)

    def map_items(
        self, function: Callable[[Any], Any], items: Sequence[Any], *, at_once: int | None = None
    ) -> list[Any]:
        name = function.__name__
        with self._watched(len(items), label_of(function), "tasks") as progress, self._all_or_none():
            where = self._ready()
            futures = (self._submit(run_item, function, item, name=name, **where) for item in items)
            return self._collect(list(islice(futures, at_once)), progress, futures)

    def map_values(self, function: Callable[[Any, Any], Any], values: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        task = _lazy(run_item)
        with self._watched(len(items), label_of(function), "tasks") as progress, self._all_or_none():
            lazy = [task(function, value, item) for value, item in zip(values, items, strict=True)]
            return self._collect(self._compute(lazy, self._ready()), progress)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """After an error nothing goes on running: the caller may remove what tasks have written."""
        try:
            yield
        except BaseException:
            self._stop()
            raise

    def map_runs(self, job: Job, source: Source, label: str) -> list[Fold]:
        with self._watched(source.n_blocks, label):
            crew = self._crew(job)
            shared = self._share(job, crew)
            if source.delayed is not None:
                return self._collect(self._compute(self._lazy_runs(scatter_run, shared, source), _only(crew.allowed)))
            return self._results(self._runs(scatter_run, shared, job, source, crew), job, crew)

    def fold(self, job: Job, source: Source, label: str) -> Fold:
        with self._watched(source.n_blocks, label):
            crew = self._crew(job)
            shared = self._share(job, crew)
            fan_in = job.plan.fan_in
            if source.delayed is not None:
                runs = self._lazy_runs(fold_run, shared, source)
                root = merge_tree(runs, fan_in, _lazy_about(merge_task, shared))
                return cast(Fold, self._collect(self._compute([root], _only(crew.allowed)))[0])
            works = self._runs(fold_run, shared, job, source, crew)

            def merge(inputs: list[int]) -> int:
                works.append(Work(merge_task, (shared,), tuple(inputs)))
                return len(works) - 1

            last = merge_tree(range(len(works)), fan_in, merge)
            return cast(Fold, self._results(works, job, crew, only=last)[0])

    def _crew(self, job: Job) -> Crew:
        """The workers that have room for the tasks of a pass."""
        if self._crew_of is None or self._crew_of[0] is not job.plan:
            self._crew_of = job.plan, Crew(self._client, job.plan.suits, job.plan.least_worker, self._late)
        crew = self._crew_of[1]
        crew.look()
        return crew

    def _late(self) -> set[str]:
        """Addresses of workers that have not become ready yet."""
        return {address for address, future in self._asked.items() if not future.done()}

    def _ready(self) -> dict[str, Any]:
        """Options of Dask that keep tasks from workers that are not ready."""
        late = self._late()
        return _only([address for address in workers_of(self._client) if address not in late] if late else None)

    def _runs(self, function: Callable[..., Fold], shared: Any, job: Job, source: Source, crew: Crew) -> list[Work]:
        """A work for each run of the plan. Blocks of the caller's memory are sent when it is the turn of theirs."""
        blocks = None if job.source is not None else source.blocks(0, source.n_blocks)

        def arguments(run: int) -> tuple[Any, ...]:
            if blocks is None:
                return (function, shared, (run,), self._name)
            block = self._client.scatter(next(blocks), hash=False, workers=crew.allowed)
            return (function, shared, (run,), self._name, *self._own([block]))

        return [Work(run_task, partial(arguments, run)) for run in range(len(job.plan.runs))]

    def _lazy_runs(self, function: Callable[..., Fold], shared: Any, source: Source) -> list[Any]:
        """A lazy task for each block that is a Dask task, which makes the block as well."""
        blocks = source.delayed or ()
        tasks = [(run_task, function, shared, (run,), self._name, block) for run, block in enumerate(blocks)]
        return lazy_tasks(function.__name__.replace("_", "-"), tasks, blocks[:1], fused=True)

    def _results(
        self, works: list[Work], job: Job, crew: Crew, *, short: bool = False, only: int | None = None
    ) -> list[Any]:
        """Results of works in their order, or of one of them; or the first error.

        What is short, or has to be sent from here, waits where it will run.
        """
        sends = job.source is None
        each = 2 if short or sends else 1
        handout = Handout(self._client, works, self._start, crew, job.plan.resources.slots, each, sends)
        answered: list[Any] = []
        waiting: dict[int, Any] = {}
        results: dict[int, Any] = {}
        fetched = time.monotonic()
        try:
            for number, future in handout:
                if future.type is Failure:
                    _checked(future.result())
                if only is None:
                    answered.append(future)
                if only in (None, number):
                    waiting[number] = future
                # Many at a time: a fetch takes some messages however much it brings, and nothing is handed out then.
                if waiting and time.monotonic() - fetched > FETCH_SECONDS:
                    results |= zip(waiting, self._client.gather(list(waiting.values())), strict=True)
                    waiting, fetched = {}, time.monotonic()
            results |= zip(waiting, self._client.gather(list(waiting.values())), strict=True)
            self._answered = answered
            return [_checked(results[number]) for number in sorted(results)]  # one that was made again may have failed
        except Exception as error:
            raise self.explained(error) from error

    def _compute(self, lazy: Sequence[Any], where: dict[str, Any]) -> list[Any]:
        """Futures of lazy tasks, submitted as one graph, so that Dask finishes one block before it reads the next."""
        return self._own(self._client.compute(list(lazy), retries=RETRIES, **where))

    def _share(self, job: Job, crew: Crew) -> Any:
        """The job as tasks take it: a small one travels with each task, a large one is shipped to each worker once.

        Dask sends tasks to where their inputs are, so a shared job has to be everywhere before they start.
        """
        parcel = PickledJob.of(job)
        if len(parcel.content) <= SMALL_JOB:
            return parcel
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # each worker gets it once, which is the point
            shared = self._submit(hand_on, job, name="job")
        with suppress(TimeoutError):  # a worker that has fallen silent since: tasks take it with them
            self._client.sync(self._client.replicate, shared, workers=crew.allowed, callback_timeout=REPLICATE_SECONDS)
        return shared

    def _start(self, handed: list[tuple[Work, tuple[Any, ...]]], allowed: list[str] | None) -> list[Any]:
        """Submit works; merges go before runs, so that states do not wait."""
        work, arguments = handed[0]
        where = _only(allowed)
        if work.inputs:  # in a list, where only `submit` looks for futures in all versions of Dask
            return [self._submit(work.function, *arguments, name="merge", priority=1, **where)]
        keys = [_key(arguments[0].__name__) for _ in handed]
        columns = zip(*(given for _, given in handed), strict=True)
        return self._own(self._client.map(work.function, *columns, key=keys, pure=False, retries=RETRIES, **where))

    def _submit(self, function: Callable[..., Any], *args: Any, name: str, **options: Any) -> Any:
        future = self._client.submit(function, *args, key=_key(name), pure=False, retries=RETRIES, **options)
        self._made.add(future)
        return future

    def _own(self, futures: list[Any]) -> list[Any]:
        """Futures that are released when the pass ends, at the latest."""
        self._made.update(futures)
        return futures

    def _collect(self, futures: list[Any], progress: Progress | None = None, later: Iterable[Any] = ()) -> list[Any]:
        """The results in order, or the first error. With ``progress``, a finished task counts as one.

        Of what comes ``later``, one begins whenever another has ended.
        """
        from distributed import CancelledError, as_completed

        results: dict[str, Any] = {}
        completed = as_completed(futures, loop=self._client.loop, with_results=True)
        try:
            for future, result in completed:
                if isinstance(_checked(result), CancelledError):  # which Dask hands over as if it were a result
                    raise result
                results[future.key] = result
                future.release()  # or it would be made again if its worker died
                for following in islice(later, 1):
                    futures.append(following)
                    completed.add(following)
                if progress is not None:
                    progress.advance()
        except Exception as error:
            raise self.explained(error) from error
        return [results[future.key] for future in futures]

    @contextmanager
    def _watched(self, total: int, label: str, unit: str = "blocks") -> Iterator[Progress]:
        """Progress, by what tasks report of themselves."""
        self._subscribe()
        over = threading.Event()
        threading.Thread(target=self._name_silent, args=(over,), name="nfs-dask-silence", daemon=True).start()
        with Progress(total, label, unit) as progress:
            _stages[self._name] = progress
            try:
                yield progress
            finally:
                del _stages[self._name]
                over.set()

    def _name_silent(self, over: threading.Event) -> None:
        """While a stage lasts, warn once of each worker that it may be waiting for in vain."""
        while not over.wait(SILENCE_LOOK_SECONDS):
            for one in self.silent():
                if one.address not in self._named | self._late() and not over.is_set():
                    self._named.add(one.address)
                    logger.warning("%s", one)

    def _workers_are_asked(self, asked: dict[str, Any]) -> None:
        """What takes messages, while workers warm up; and what would, held until later.

        Dask's client sends once in 10 ms, and tasks would wait for what went just before them.
        """
        self._asked = asked
        self._subscribe()

    def _subscribe(self) -> None:
        """Let tasks tell what they have done, and the scheduler what becomes of workers."""
        from nfs_dask.engine.scheduler_metrics import count_on_scheduler

        if not self._subscribed:
            count_on_scheduler(self._client)
            self._subscribed = True
            _listeners[self._client.id] += 1
            self._client.subscribe_topic(TOPIC, _hear)

    def explained(self, error: Exception) -> Exception:
        """What went wrong with the cluster, in words of ours; other errors as they are."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        if isinstance(error, NfsDaskError):
            return error
        if isinstance(error, WorkerTooSmall):
            return ClusterError(
                f"{error}; keep such workers away from the cluster, or restart the pass with them there"
            )
        if isinstance(error, KilledWorker):
            return ClusterError(
                f"workers died {error.allowed_failures + 1} times while they ran one task ({error.task}); most often "
                "they were out of memory, see their logs. Give them more memory, or fewer threads"
            )
        lost = isinstance(error, (CancelledError, CommClosedError)) or str(error).startswith(UNREACHED)
        if lost or self._client.status != "running":
            return ClusterError(
                "the scheduler is gone or has cancelled the work, or the cluster or its client was closed, before the "
                f"work was done ({error}); it takes a scheduler that stays until then"
            )
        return error
