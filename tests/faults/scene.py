"""Where one fault happens: its folder, the processes that were started in it, and what they leave behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from click.testing import CliRunner
from distributed.diskutils import WorkSpace

from nfs_dask.cli.main import cli
from nfs_dask.engine.run_status import is_run, read_run
from nfs_dask.errors import NfsDaskError
from tests.helpers.slow_blocks import NO_DEED, slow_environment

MARK = "NFS_DASK_FAULT"  # the variable by which processes of a scene are told from all others
COMMAND = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"
PROGRAM = """
import sys
import nfs_dask as nfs
store, model, run, panels = sys.argv[1:]
engine = nfs.DaskEngine(workers=2, run=run, panels=int(panels) or None)
nfs.SparseMultinomialNB(k=20, engine=engine).fit(nfs.open_dataset(store, reuse=False)).save(model)
"""
BLOCK_SECONDS = 0.1  # that each block takes, so that faults happen in mid-pass
CHECKPOINT_SECONDS = 0.25
BATCH_NBYTES = 13_000  # of the blocks between two looks at the clock, which are three; 256 MiB of larger data
BATCH = 3


@dataclass
class Ended:
    """What became of a process."""

    code: int
    said: str


@dataclass
class Running:
    """A process of a scene."""

    process: subprocess.Popen[str]
    said: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self, seconds: float = 300) -> Ended:
        """Wait until it has ended by itself."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended in {seconds:.0f} s: {self.said.read_text()[-3000:]}") from None
        return Ended(code, self.said.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def workers(self) -> list[psutil.Process]:
        """The worker processes that it has started, the oldest first."""
        children = psutil.Process(self.pid).children(recursive=True)
        found = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        return sorted(found, key=lambda child: child.create_time())


@dataclass
class Done:
    """A command that has run in this process."""

    ended: Ended

    def end(self, seconds: float = 300) -> Ended:
        return self.ended


class Scene:
    """A folder with all that one disturbed run needs; afterwards no process of it is left."""

    def __init__(self, folder: Path, data: Path, quick: bool = False) -> None:
        self.folder, self.quick = folder, quick  # quick: commands run in this process, as fast as they can
        self.tmp, self.log, self.run, self.model = (folder / name for name in ("tmp", "blocks", "run", "model"))
        self.mark = uuid.uuid4().hex
        self.tmp.mkdir(parents=True)
        self.store = str(data / "mail.zarr")
        self.deed = NO_DEED
        self.made: Callable[[], dict[str, bytes]] = lambda: bits_of(self.model)  # what the commands are to make
        self._n = 0

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self.processes(), timeout=10)

    def processes(self) -> list[psutil.Process]:
        """All processes that were started here, by whatever, and are still there."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark
        return False

    def environment(self, block_seconds: float, **more: object) -> dict[str, str]:
        """Of all processes here: slow blocks, frequent checkpoints, temporary files in a folder of their own."""
        slow = slow_environment(
            self.folder / "slow",
            block_seconds,
            checkpoint_seconds=CHECKPOINT_SECONDS,
            log=self.log,
            deed=self.deed,
            batch_nbytes=BATCH_NBYTES,
        )
        own = {MARK: self.mark, "TMPDIR": self.tmp, "DASK_TEMPORARY_DIRECTORY": self.tmp, **more}
        return slow | {name: str(value) for name, value in own.items()}

    def begin(
        self,
        words: Sequence[object],
        *,
        within: Sequence[str] = (),
        block_seconds: float = BLOCK_SECONDS,
        **more: object,
    ) -> Running:
        """Start a program of Python; ``within`` is what it is started by, such as a network namespace."""
        self._n += 1
        said = self.folder / f"said-{self._n}"
        with said.open("w") as file:
            process = subprocess.Popen(
                [*within, sys.executable, *map(str, words)],
                cwd=self.folder,
                env=self.environment(block_seconds, **more),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        return Running(process, said)

    def command(self, *words: object, **how: Any) -> Running | Done:
        """Start ``nfs-dask`` with words."""
        if self.quick:
            result = CliRunner().invoke(cli, [str(word) for word in words], env=how)
            return Done(Ended(result.exit_code, result.output))
        return self.begin(["-c", COMMAND, *words], **how)

    def fit(self, *options: object, resume: bool = False, **how: Any) -> Running:
        """Start the fit that all rows of passes are about."""
        folder = ("--resume" if resume else "--run", self.run)
        return self.command("fit", self.store, self.model, "-k", 20, "--no-cache", *folder, *options, **how)

    def program(self, panels: int = 0, **how: Any) -> Running:
        """Start the same fit as a program of Python."""
        return self.begin(["-c", PROGRAM, self.store, self.model, self.run, panels], **how)

    def blocks_done(self) -> int:
        """Blocks that the run need not read again; without a run folder, those that were read."""
        try:
            if not is_run(self.run):
                return self.blocks_read().total()
            return sum(one.blocks_done for one in read_run(self.run, size=False).passes)
        except (NfsDaskError, OSError):  # it is being written
            return 0

    def in_mid_pass(self, running: Running, blocks: int = 24) -> None:
        """Wait until so many blocks are done, while the process is at work."""

        def there() -> bool:
            assert running.process.poll() is None, running.said.read_text()[-3000:]
            return self.blocks_done() >= blocks

        wait_for(there)

    def left(self) -> list[str]:
        """Names of all that lies in the run folder and among temporary files, when another worker has started.

        A worker that was killed cannot remove its folder. The next one on the same disk does, before it begins.
        """
        WorkSpace(str(self.tmp / "dask-scratch-space")).new_work_dir(prefix="next-").release()
        found = [path for top in (self.run, self.tmp) for path in top.rglob("*")]
        return sorted(str(path.relative_to(self.folder)) for path in [*found, *self.folder.glob(".*")])

    def keep(self) -> None:
        """Copy run folder and model to where those of all scenes are looked at, from a disk that is about to go."""
        for name, place in (("run", self.run), ("model", self.model)):
            shutil.copytree(place, self.folder / name)
        self.run, self.model = self.folder / "run", self.folder / "model"

    def blocks_read(self) -> Counter[int]:
        """How often each block was read."""
        return Counter(map(int, self.log.read_text().split())) if self.log.exists() else Counter()


def bits_of(model: Path) -> dict[str, bytes]:
    """All bytes of a saved model, but for when and how it was counted."""
    header = json.loads((model / "model.json").read_text())
    parts = header.pop("arrays_in")
    for name in ("provenance", "crc32c"):
        header.pop(name)
    assert {path.name for path in model.iterdir()} == {"model.json", parts}
    return {"model.json": json.dumps(header, sort_keys=True).encode(), **files_of(model / parts)}


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of all files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for(there: Callable[[], Any], seconds: float = 90, what: str = "it") -> Any:
    """Wait until something is there, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline, f"{what} did not come in {seconds:.0f} s"
        time.sleep(0.05)
    return found


def freeze(process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGSTOP)


def thaw(process: psutil.Process) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
