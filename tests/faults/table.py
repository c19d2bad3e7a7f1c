"""What a row of the table is, how it is carried out, and what comes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from tests.faults.scene import Ended, Running, Scene, wait_for

CORPUS = GeneratedCorpus(4000, 300, 3, words_per_document=10, block_rows=100)
SAME = "same model"
REFUSED = "refused, then same model"


@dataclass(frozen=True)
class Place:
    """A place where fits run: on workers of their own, on a cluster, on hosts, beside an object store."""

    begin: Callable[..., Running]  # a fit, or an ingest; resume=True goes on with it
    parts: dict[str, Any] = field(default_factory=dict)  # what there is to disturb
    product: Callable[[Path], dict[str, bytes]] | None = None  # what it makes, where that is no model

    def __getattr__(self, name: str) -> Any:
        return self.parts[name]


@dataclass(frozen=True)
class Fault:
    """A row: what is done, and what people read about it."""

    name: str
    happens: str
    todo: str
    place: Callable[[Scene], AbstractContextManager[Place]]
    disturb: Callable[[Scene, Place], str]  # carries out a fit with the fault in it; the verdict
    needs: str = ""  # root, or a program
    seconds: float = 240  # that it takes at most

    @property
    def id(self) -> str:
        return self.disturb.__name__.replace("_", "-")


@dataclass(frozen=True)
class Outcome:
    """What a row came to."""

    fault: Fault
    seconds: float
    undisturbed: float
    blocks_again: int
    verdict: str


class Undisturbed:
    """The same fits with nothing done to them, one in each place, and the data of all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        data = folder / "data"
        data.mkdir()
        self.n_blocks = nfs.ingest(CORPUS, data / "mail.zarr", block_bytes=8000).source.n_blocks
        self.data = data
        self._of: dict[str, tuple[float, dict[str, bytes], list[str]]] = {}

    def of(self, place: Callable[[Scene], AbstractContextManager[Place]]) -> tuple[float, dict[str, bytes], list[str]]:
        """Seconds of the fit there, its model, and what is left in its folders."""
        name = place.__name__
        if name not in self._of:
            with Scene(self.folder / f"undisturbed-{name}", self.data) as scene, place(scene) as there:
                began = time.monotonic()
                succeeded(there.begin())
                seconds = time.monotonic() - began
            assert sum(scene.blocks_read().values()) == self.n_blocks
            self._of[name] = seconds, bits_of(scene.model), scene.left()
        return self._of[name]


def carry_out(fault: Fault, folder: Path, undisturbed: Undisturbed) -> Outcome:
    """One row, with all that has to hold of it."""
    seconds, model, left = undisturbed.of(fault.place)
    with Scene(folder / fault.id, undisturbed.data) as scene:
        with fault.place(scene) as there:
            began = time.monotonic()
            verdict = fault.disturb(scene, there)
            taken = time.monotonic() - began
        wait_for(lambda: not scene.processes(), 30, "the end of all processes")
        assert bits_of(scene.model) == model, "another model than undisturbed"
        found = scene.left()
        assert found == left, (
            f"left behind: {sorted(set(found) - set(left))}, missing: {sorted(set(left) - set(found))}"
        )
        again = sum(scene.blocks_read().values()) - undisturbed.n_blocks
    return Outcome(fault, taken, seconds, again, verdict)


def succeeded(running: Running, seconds: float = 150) -> Ended:
    ended = running.end(seconds)
    assert ended.code == 0, ended
    return ended


def refused(running: Running, code: int, *words: str, seconds: float = 150) -> Ended:
    """It ended with an exit code, words about why, and no traceback."""
    ended = running.end(seconds)
    assert ended.code == code and "Traceback" not in ended.said, ended
    assert all(word in " ".join(ended.said.split()) for word in words), ended.said
    return ended


def bits_of(model: Path) -> dict[str, bytes]:
    """All bytes of a saved model, but for when and how it was counted."""
    header = json.loads((model / "model.json").read_text())
    parts = header.pop("arrays_in")
    for name in ("provenance", "crc32c"):
        header.pop(name)
    files = {
        str(path.relative_to(model / parts)): path.read_bytes() for path in (model / parts).rglob("*") if path.is_file()
    }
    assert {path.name for path in model.iterdir()} == {"model.json", parts}
    return {"model.json": json.dumps(header, sort_keys=True).encode(), **files}


@contextmanager
def own_workers(scene: Scene) -> Iterator[Place]:
    """Two workers that the command starts itself."""
    yield Place(lambda **how: scene.fit("--workers", 2, **how), {})


@contextmanager
def one_process(scene: Scene) -> Iterator[Place]:
    """No workers at all."""
    yield Place(scene.fit, {})


@contextmanager
def in_a_program(scene: Scene) -> Iterator[Place]:
    """Two workers that a program of Python starts by its engine, of 512 MiB each."""
    yield Place(lambda resume=False, **how: scene.program(**how), {})
