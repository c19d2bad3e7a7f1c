"""Handing out tasks: the client keeps them, and gives out as many as there are threads to run them.

Dask would give each worker its share as soon as tasks are submitted. A slow worker would then sit on runs that others
could have begun, one that joins would find nothing left, and one that is too small would be given what kills it.
"""

from __future__ import annotations

import queue
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nfs_dask.cluster.crew import LOOK_SECONDS, Crew

MOST_REFUSALS = 20  # of one work


class WorkerTooSmall(RuntimeError):
    """A task came to a worker that has no room for it, such as one that has just joined."""


@dataclass(frozen=True)
class Work:
    """One task: a function and its arguments, after which a list comes with the results of earlier works, if any."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] | Callable[[], tuple[Any, ...]]  # or what makes them, when it is handed out
    inputs: tuple[int, ...] = ()


# Futures of works with their arguments, on these workers or on any: one with inputs, or several of one function.
Submit = Callable[["list[tuple[Work, tuple[Any, ...]]]", "list[str] | None"], "list[Any]"]


class Handout:
    """Works on their way to a cluster: iterate to carry them out, and be told of each that is finished, by its number.

    No work is an input of two others. What a work has taken in is forgotten, so that the cluster can let go of it.
    For each slot ``each`` works are out at a time: one, or two where the next one is to be there when the first one
    ends. Where there are fewer slots than planned for, or an adaptive cluster might think so, all are handed out at
    once: such a cluster grows by what waits on its scheduler. Not if the client ``sends`` what they are about, though.
    """

    def __init__(
        self, client: Any, works: Sequence[Work], submit: Submit, crew: Crew, slots: int, each: int, sends: bool
    ) -> None:
        self._client = client
        self._works = works
        self._submit = submit
        self._crew = crew
        self._slots = slots
        self._each = each
        self._sends = sends
        self._ready = deque(number for number, work in enumerate(works) if not work.inputs)
        self._parents = {child: number for number, work in enumerate(works) for child in work.inputs}
        self._made: dict[int, tuple[Any, ...]] = {}  # arguments of works that are under way
        self._futures: dict[int, Any] = {}
        self._refusals: Counter[int] = Counter()
        self._finished: set[int] = set()
        self._arrived: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        while len(self._finished) < len(self._works):
            self._hand_out()
            number, future = self._arrival()
            if number not in self._futures or future is not self._futures[number]:
                continue  # it was handed out again meanwhile
            if self._was_refused(number, future):
                self._crew.look(again=True)
                self._repeat(number)
                continue
            if future.status != "finished":
                future.result()  # raises what went wrong
            self._finish(number)
            self._hand_out()  # before the result is looked at, which takes a message or two
            yield number, future

    def _was_refused(self, number: int, future: Any) -> bool:
        """Whether a worker was too small for it; not for ever, if nobody sees why."""
        if future.status != "error" or not isinstance(future.exception(), WorkerTooSmall):
            return False
        self._refusals[number] += 1
        return self._refusals[number] <= MOST_REFUSALS

    def _hand_out(self) -> None:
        self._crew.look()
        if self._crew.allowed == []:  # those with room have left: wait for others
            return
        slots = max(self._crew.slots, self._slots if self._crew.allowed is None else 0)
        room = self._each * slots - len(self._futures.keys() - self._finished)
        if self._should_grow:
            room = len(self._ready)
        self._start(*(self._ready.popleft() for _ in range(min(room, len(self._ready)))))

    @property
    def _should_grow(self) -> bool:
        few = self._crew.adaptive or self._crew.slots < self._slots
        return few and not self._sends and self._crew.allowed is None

    def _start(self, *numbers: int) -> None:
        """Hand out works in one message, as the client does not send one after another at once."""
        if not numbers:
            return
        futures = self._submit([(self._works[n], self._arguments(n)) for n in numbers], self._crew.allowed)
        for number, future in zip(numbers, futures, strict=True):
            self._futures[number] = future
            future.add_done_callback(lambda done, number=number: self._arrived.put((number, done)))

    def _arguments(self, number: int) -> tuple[Any, ...]:
        work = self._works[number]
        if number not in self._made:
            self._made[number] = work.arguments() if callable(work.arguments) else work.arguments
        inputs = ([self._futures[i] for i in work.inputs],) if work.inputs else ()
        return (*self._made[number], *inputs)

    def _arrival(self) -> tuple[int, Any]:
        """The next future that is done; whoever joins while none is gets work."""
        while True:
            try:
                return self._arrived.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._client.status != "running":
                    raise ConnectionError("the client was closed") from None
                self._hand_out()

    def _finish(self, number: int) -> None:
        self._finished.add(number)
        del self._made[number]
        for child in self._works[number].inputs:
            del self._futures[child]
        parent = self._parents.get(number)
        if parent is None:
            del self._futures[number]
        elif self._finished.issuperset(self._works[parent].inputs):
            self._start(parent)

    def _repeat(self, number: int) -> None:
        """Hand out a work again, and first those of its inputs that were lost and could not be made again."""
        work = self._works[number]
        if callable(work.arguments) and number not in self._made:
            self._futures[number].result()  # raises: what it was made of has been sent once, and is gone
        lost = [child for child in work.inputs if self._futures[child].status == "error"]
        for child in lost:
            self._finished.remove(child)
            self._repeat(child)
        if lost:
            del self._futures[number]
        else:
            self._start(number)
