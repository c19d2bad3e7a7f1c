"""Rows about two who write to one place, here and on machines whose clocks differ, and about ingests.

A process in a PID namespace of its own is one of another machine for all that this machine tells it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.clusters import LOOPBACK, Cluster
from tests.faults.disks import fill, mounted
from tests.faults.scene import Running, Scene, files_of, wait_for
from tests.faults.table import REFUSED, SAME, TWO_WORKERS, Fault, Place, own_workers, refused, succeeded
from tests.helpers import halting
from tests.helpers.slow_blocks import CLOCK

ELSEWHERE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def clock(hours: int) -> dict[str, int]:
    """An environment whose programs read a time of day that is wrong by so many hours; durations are as they are."""
    return {CLOCK: hours}


@contextmanager
def skewed_cluster(scene: Scene) -> Iterator[Place]:
    """A cluster that is started with the clocks that a row gives its processes."""
    cluster = Cluster(scene, [LOOPBACK] * 3)
    yield Place(lambda **how: _on(cluster, scene, **how), {"cluster": cluster})
    cluster.stop()


def _on(cluster: Cluster, scene: Scene, **how: Any) -> Running:
    if cluster.scheduler is None:
        cluster.start()
    return scene.fit("--scheduler", cluster.address, **how)


def clocks_differ(scene: Scene, there: Place) -> str:
    there.cluster.start(of_workers=[clock(1), clock(-1)])
    succeeded(there.begin(**clock(-2)))
    return SAME


def two_clients_here(scene: Scene, there: Place) -> str:
    fit = there.begin(block_seconds=1)
    scene.in_mid_pass(fit)
    refused(there.begin(resume=True), 3, f"is being worked on by process {fit.pid}")
    succeeded(fit)
    return SAME


def two_clients_elsewhere(scene: Scene, there: Place) -> str:
    fit = there.begin(within=ELSEWHERE, block_seconds=1, **clock(-1))
    scene.in_mid_pass(fit)
    refused(there.begin(resume=True), 3, "is being worked on by process")
    fit.kill()
    succeeded(there.begin(resume=True))
    return REFUSED


# Ingests


@contextmanager
def ingest(scene: Scene) -> Iterator[Place]:
    """An ingest of texts in small pieces, each of which takes its time."""
    place = _ingest(scene, scene.folder)
    scene.made = lambda: files_of(place.store)
    yield place


@contextmanager
def ingest_to_a_small_disk(scene: Scene) -> Iterator[Place]:
    """The same, to a disk of 4 MiB."""
    with mounted(scene.folder / "disk") as disk:
        place = _ingest(scene, disk)
        yield Place(place.begin, {"disk": disk, "store": disk / "mail.zarr"})
        assert {path.name for path in disk.iterdir()} == {"mail.zarr"}, "left behind"
        made = files_of(place.store)
        scene.made = lambda: made


def _ingest(scene: Scene, folder: Path) -> Place:
    rng = np.random.default_rng(5)
    words = [f"word{i}" for i in range(300)]
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(400)]
    mail, store = scene.folder / "mail.jsonl", folder / "mail.zarr"
    mail.write_text("".join(json.dumps({"text": text, "label": len(text) % 3}) + "\n" for text in texts))

    def begin(resume: bool = False, seconds: float = 0.5, **how: Any) -> Running:
        words = ("ingest", mail, store, "--label-column", "label", "--ngrams", "1,2", "--min-df", "2", "--tfidf")
        halts = {} if resume else {"HALT_AFTER": 5, "HALT_SECONDS": seconds}
        return scene.begin([halting.__file__, *words], **halts, **how)

    return Place(begin, {"store": store})


def in_mid_ingest(there: Place, running: Running) -> None:
    def counted() -> bool:
        assert running.process.poll() is None, running.said.read_text()
        return len(list(kept_of(there).glob("*-*.json"))) >= 7

    wait_for(counted)


def kept_of(there: Place) -> Path:
    return there.store.parent / f".{there.store.name}.ingest"


def gone_on(scene: Scene, there: Place) -> str:
    """Go on with an ingest, which counts nothing again that was counted."""
    before, note = halting.finished(kept_of(there)), scene.folder / "note"
    succeeded(there.begin(resume=True, NOTE=note))
    assert len(before) > 7 and before.items() <= json.loads(note.read_text()).items()
    return REFUSED


def ingest_killed(scene: Scene, there: Place) -> str:
    first = there.begin()
    in_mid_ingest(there, first)
    first.kill()
    return gone_on(scene, there)


def two_ingests_here(scene: Scene, there: Place) -> str:
    first = there.begin(seconds=2)
    in_mid_ingest(there, first)
    refused(there.begin(), 3, f"is being written by process {first.pid}")
    succeeded(first)
    return SAME


def two_ingests_elsewhere(scene: Scene, there: Place) -> str:
    first = there.begin(seconds=4, within=ELSEWHERE, **clock(-1))
    in_mid_ingest(there, first)
    refused(there.begin(), 3, "is being written by process")
    first.kill()
    return gone_on(scene, there)


def full_in_ingest(scene: Scene, there: Place) -> str:
    first = there.begin()
    in_mid_ingest(there, first)
    filler = fill(there.disk)
    refused(first, 3, "No space left on device")
    filler.unlink()
    return gone_on(scene, there)


ROWS = [
    Fault(
        "clocks of the command and of two workers are wrong by -2, +1 and -1 hours",
        "nothing goes by the time of day of another machine",
        "nothing",
        skewed_cluster,
        clocks_differ,
    ),
    Fault(
        "a second command resumes a run that is at work on the same machine",
        "it ends with exit code 3 and names the process; the first goes on",
        "wait, or end the first",
        own_workers,
        two_clients_here,
        timed=False,
    ),
    Fault(
        "a second command resumes a run that is at work on another machine, whose clock is an hour behind; then that "
        "one dies",
        "the second watches for 7 s (35 s behind a URL) whether signs of life come: with them it ends with exit code "
        "3, without them it goes on",
        "nothing, or end the first",
        own_workers,
        two_clients_elsewhere,
        again=TWO_WORKERS,
        timed=False,
        needs="elsewhere",
    ),
    Fault(
        "an ingest is killed",
        "what was counted stays beside the store, in a hidden folder",
        "the same command",
        ingest,
        ingest_killed,
    ),
    Fault(
        "two ingests write to one store",
        "the second ends with exit code 3 and names the process; the first goes on",
        "wait, or choose another place",
        ingest,
        two_ingests_here,
        timed=False,
    ),
    Fault(
        "the same on two machines, the first's clock an hour behind; then the first dies",
        "the second watches for up to 45 s whether signs of life come: with them it ends with exit code 3; without "
        "them the next one takes over",
        "nothing, or end the first",
        ingest,
        two_ingests_elsewhere,
        timed=False,
        needs="elsewhere",
    ),
    Fault(
        "the disk is full in the middle of an ingest",
        "exit code 3: no space left, and for which file; what was counted stays",
        "make room, and the same command",
        ingest_to_a_small_disk,
        full_in_ingest,
        needs="root",
    ),
]
