"""What a row of the table is, how it is carried out, and what comes of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from tests.faults.scene import BATCH, Done, Ended, Running, Scene, wait_for
from tests.helpers import fault_hosts
from tests.helpers.slow_blocks import NO_DEED

CORPUS = GeneratedCorpus(4000, 300, 3, words_per_document=10, block_rows=100)
SMALL_CORPUS = GeneratedCorpus(400, 300, 3, words_per_document=10, block_rows=100)  # of quick rows
ONE_WORKER = 2 * BATCH  # blocks that a worker has read since its last checkpoint, which comes with each batch, at most
TWO_WORKERS = 2 * ONE_WORKER
SLOW_PREDICTIONS = """
import nfs_dask.prediction.model_rows as model_rows
read = model_rows.ModelTask.read
def read_slowly(self):
    for block, batch in read(self):
        slowly_read(block)
        yield block, batch
model_rows.ModelTask.read = read_slowly
"""
SAME = "done; the same"
REFUSED = "ended, went on; the same"

Made = dict[str, bytes]


@dataclass(frozen=True)
class Place:
    """Where commands run: on workers of their own, on a cluster, on hosts, beside an object store, on a small disk."""

    begin: Callable[..., Any]  # a fit, or an ingest; resume=True goes on with it
    parts: dict[str, Any] = field(default_factory=dict)  # what there is to disturb

    def __getattr__(self, name: str) -> Any:
        return self.parts[name]


Places = Callable[[Scene], AbstractContextManager[Place]]


@dataclass(frozen=True)
class Fault:
    """A row: what is done, and what people read about it."""

    name: str
    happens: str
    todo: str
    place: Places
    disturb: Callable[[Scene, Place], str]  # carries out a command with the fault in it; the verdict
    needs: str = ""  # what not every machine has, a key of `_MISSING`
    again: int = 0  # blocks that may be read more than once, at most
    timed: bool = True  # whether its seconds tell a cost: not where commands wait for each other
    quick: bool = False  # whether it can be carried out in one process

    @property
    def id(self) -> str:
        return self.disturb.__name__.replace("_", "-")

    def missing(self) -> str:
        """What this machine lacks for it; empty where nothing."""
        return _MISSING[self.needs]()


def _root() -> str:
    return "" if os.geteuid() == 0 else "root"


def _elsewhere() -> str:
    return _root() or ("" if shutil.which("unshare") else "unshare")


_MISSING: dict[str, Callable[[], str]] = {
    "": lambda: "",
    "root": _root,
    "network": fault_hosts.missing,
    "lossy network": partial(fault_hosts.missing, "iptables"),
    "elsewhere": _elsewhere,
}


@dataclass(frozen=True)
class Outcome:
    """What a row came to."""

    fault: Fault
    seconds: float
    undisturbed: float
    again: int | None  # blocks read beyond those of an undisturbed command; None of ingests, which have none
    verdict: str

    def line(self) -> str:
        """The row, as the page has it."""
        fault = self.fault
        again = "" if self.again is None else str(self.again)
        seconds = f"{self.seconds:.0f} ({self.undisturbed:.0f})" if fault.timed else ""
        cells = (fault.name, fault.happens, fault.todo, seconds, again)
        return f"| {' | '.join((*cells, self.verdict))} |"


class Undisturbed:
    """The same commands with nothing done to them, one in each place, and the data of all."""

    def __init__(self, folder: Path, quick: bool = False) -> None:
        self.folder, self.quick = folder, quick
        self.data = folder / "data"
        self.data.mkdir()
        corpus = SMALL_CORPUS if quick else CORPUS
        self.n_blocks = nfs.ingest(corpus, self.data / "mail.zarr", block_bytes=8000).source.n_blocks
        self._of: dict[str, tuple[float, Made, list[str], int]] = {}

    def of(self, place: Places) -> tuple[float, Made, list[str], int]:
        """Seconds of the command there, what it makes, what is left in its folders, and how many blocks it reads."""
        name = place.__name__  # type: ignore[attr-defined]
        if name not in self._of:
            with Scene(self.folder / f"undisturbed-{name}", self.data, self.quick) as scene:
                with place(scene) as there:
                    began = time.monotonic()
                    succeeded(there.begin())
                    seconds = time.monotonic() - began
                read = scene.blocks_read().total()
                assert read % self.n_blocks == 0
                self._of[name] = seconds, scene.made(), scene.left(), read
        return self._of[name]


def carry_out(fault: Fault, folder: Path, undisturbed: Undisturbed) -> Outcome:
    """One row, with all that has to hold of it."""
    seconds, made, left, reads = undisturbed.of(fault.place)
    with Scene(folder / fault.id, undisturbed.data, undisturbed.quick) as scene:
        with fault.place(scene) as there:
            began = time.monotonic()
            verdict = fault.disturb(scene, there)
            taken = time.monotonic() - began
        wait_for(lambda: not scene.processes(), 30, "the end of all processes")
        assert scene.made() == made, "not what an undisturbed one makes"
        found = scene.left()
        assert found == left, (
            f"left behind: {sorted(set(found) - set(left))}, missing: {sorted(set(left) - set(found))}"
        )
        again = scene.blocks_read().total() - reads
    assert again <= fault.again, f"{again} blocks were read again, {fault.again} may be"
    return Outcome(fault, taken, seconds, again if reads else None, verdict)


def succeeded(running: Running | Done, seconds: float = 300) -> Ended:
    ended = running.end(seconds)
    assert ended.code == 0, ended
    return ended


def refused(running: Running | Done, code: int, *words: str, seconds: float = 300) -> Ended:
    """It ended with an exit code, words about why, and no traceback."""
    ended = running.end(seconds)
    assert ended.code == code and "Traceback" not in ended.said, ended
    assert all(word in " ".join(ended.said.split()) for word in words), ended.said
    return ended


@contextmanager
def own_workers(scene: Scene) -> Iterator[Place]:
    """Two workers that the command starts itself."""
    yield Place(lambda options=(), **how: scene.fit("--workers", 2, *options, **how))


@contextmanager
def in_a_program(scene: Scene) -> Iterator[Place]:
    """Two workers that a program of Python starts by its engine."""
    yield Place(lambda resume=False, **how: scene.program(**how))


@contextmanager
def in_panels(scene: Scene) -> Iterator[Place]:
    """The same, in a pass that sorts by column in files of its run folder."""
    yield Place(lambda resume=False, **how: scene.program(panels=4, **how))


def _writing(scene: Scene, out: str, *words: object) -> Place:
    """A command on two workers without a run folder, which writes one file."""
    scene.made = lambda: {out: (scene.folder / out).read_bytes()}
    return Place(lambda **how: scene.command(*words, scene.folder / out, "--workers", 2, **how))


@contextmanager
def in_cross_validation(scene: Scene) -> Iterator[Place]:
    """A path with cross-validation."""
    words = ("path", scene.store, "--ks", "5,20", "--choose", "cv", "--folds", 3, "--no-cache", "--csv")
    yield _writing(scene, "path.csv", *words)


@contextmanager
def in_predictions(scene: Scene) -> Iterator[Place]:
    """The predictions of a model for the rows it was fitted to."""
    scene.deed = NO_DEED + SLOW_PREDICTIONS
    nfs.SparseMultinomialNB(20).fit(nfs.open_dataset(scene.store, reuse=False)).save(scene.folder / "fitted")
    yield _writing(scene, "classes.csv", "predict", scene.folder / "fitted", scene.store, "--out")


def rows_of(page: str) -> list[list[str]]:
    """What a page says: the cells of each row that ends with a verdict."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [cells for cells in rows if cells[-1] in (SAME, REFUSED)]
