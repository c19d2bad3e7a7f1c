"""Rows about disks that are full: real ones, of a few MiB, that something else has filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.faults.clusters import LOOPBACK, Cluster
from tests.faults.scene import Running, Scene, wait_for
from tests.faults.table import REFUSED, SAME, TWO_WORKERS, Fault, Place, refused, succeeded

SPOOLING = """
import sys
import nfs_dask as nfs
store, model, spool = sys.argv[1:]
if __name__ == "__main__":
    engine = nfs.DaskEngine(workers=2, panels=4, spool=spool)
    nfs.SparseMultinomialNB(k=20, engine=engine).fit(nfs.open_dataset(store, reuse=False)).save(model)
"""


@contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "nfs-dask-fault", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> Path:
    """Write to it until there is no room left; the file that takes it."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


@contextmanager
def small_disk(scene: Scene) -> Iterator[Place]:
    """The run folder and the model are on a disk of 4 MiB."""
    with mounted(scene.folder / "disk") as disk:
        scene.run, scene.model = disk / "run", disk / "model"
        yield Place(lambda **how: scene.fit("--workers", 2, **how), {"disk": disk})
        scene.keep()


@contextmanager
def small_spool(scene: Scene) -> Iterator[Place]:
    """A program spools to a disk of 4 MiB, and has no run folder."""
    with mounted(scene.folder / "disk") as disk:
        program = scene.folder / "program.py"
        program.write_text(SPOOLING)
        scene.run.mkdir()

        def begin(resume: bool = False, **how: object) -> Running:
            return scene.begin([program, scene.store, scene.model, disk / "spool"], **how)

        yield Place(begin, {"disk": disk})
        assert not [path for path in (disk / "spool").iterdir() if path.name != "filler"]


@contextmanager
def small_temporary(scene: Scene) -> Iterator[Place]:
    """Workers that spill all results to a disk of 4 MiB."""
    with mounted(scene.folder / "disk") as disk:
        memory = "DASK_DISTRIBUTED__WORKER__MEMORY__"
        how = {"DASK_TEMPORARY_DIRECTORY": str(disk), f"{memory}TARGET": "1e-9", f"{memory}SPILL": "False"}
        cluster = Cluster(scene, [LOOPBACK] * 3)
        cluster.start(of_workers=(how, how))
        begin = partial(scene.fit, "--scheduler", cluster.address)
        yield Place(begin, {"disk": disk, "cluster": cluster})
        cluster.stop()


def full_in_checkpoints(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    filler = fill(there.disk)
    refused(fit, 3, "No space left on device", "--resume")
    filler.unlink()
    succeeded(there.begin(resume=True))
    return REFUSED


def full_in_spool(scene: Scene, there: Place) -> str:
    fit = there.begin()
    spool = there.disk / "spool"
    wait_for(lambda: len(list(spool.glob(".nfs-spool-*/blocks-*"))) > 3)
    filler = fill(there.disk)
    ended = fit.end()
    assert ended.code == 1 and "No space left on device" in ended.said, ended
    assert not list(spool.glob(".nfs-*")), "temporary files of a program that failed"
    filler.unlink()
    succeeded(there.begin(resume=True))
    return REFUSED


def full_in_model(scene: Scene, there: Place) -> str:
    fit = there.begin()
    wait_for(lambda: (scene.run / "class_counts" / "finished.json").exists())
    filler = fill(there.disk)
    refused(fit, 3, "No space left on device")
    assert {path.name for path in there.disk.iterdir()} <= {"run", "filler"}
    filler.unlink()
    succeeded(there.begin(resume=True))
    return REFUSED


def full_in_spill(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    fill(there.disk)
    succeeded(fit)
    assert any("Spill to disk failed" in worker.said.read_text() for worker in there.cluster.workers)
    return SAME


ROWS = [
    Fault(
        "the disk of the run folder is full at a checkpoint",
        "exit code 3: no space left, and for which file",
        "make room, and `--resume`",
        small_disk,
        full_in_checkpoints,
        needs="root",
        again=TWO_WORKERS,
    ),
    Fault(
        "the disk for spool files is full, of a program without a run folder",
        "`NoRoomError`, an `OSError`, that names the file; temporary files are removed",
        "make room, and run it again",
        small_spool,
        full_in_spool,
        needs="root",
        again=40,  # all that the first one had read
    ),
    Fault(
        "the disk is full when the model is written",
        "exit code 3: no space left; nothing of the model is left",
        "make room, and `--resume`: no document is read again",
        small_disk,
        full_in_model,
        needs="root",
    ),
    Fault(
        "the disk that workers spill to is full",
        "Dask keeps in memory what it would have spilled",
        "nothing",
        small_temporary,
        full_in_spill,
        needs="root",
    ),
]
