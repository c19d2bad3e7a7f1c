"""What a run folder holds: the passes that were begun in it, and how far each has got. Nothing is changed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from nfs_dask.engine.plan import Plan
from nfs_dask.engine.workplace import FINISHED, PLAN, RUN, read_identity, reading
from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder

_BATCH = re.compile(r"blocks-(\d{8})-(\d{8})\.spool")
_CHECKPOINT = re.compile(r"run-\d{5}\.fold")


@dataclass(frozen=True)
class RunPass:
    """One pass of a run."""

    name: str  # of the statistic
    plan: Plan
    blocks_done: int  # blocks that need not be read again
    finished: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "statistic": self.name,
            "blocks": self.plan.n_blocks,
            "blocks_done": self.blocks_done,
            "finished": self.finished,
            "plan": self.plan.to_json(),
        }


@dataclass(frozen=True)
class Run:
    """A run folder, and the data it belongs to."""

    location: str
    rows: int
    features: int
    fingerprint: str
    passes: tuple[RunPass, ...]
    nbytes: int | None  # None: not looked at, as behind a URL that takes long where there are many files

    @property
    def finished(self) -> bool:
        """Whether nothing that was begun is left to do."""
        return bool(self.passes) and all(one.finished for one in self.passes)

    def to_json(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "rows": self.rows,
            "features": self.features,
            "fingerprint": self.fingerprint,
            "finished": self.finished,
            "nbytes": self.nbytes,
            "passes": [one.to_json() for one in self.passes],
        }


def is_run(location: str | os.PathLike[str]) -> bool:
    """Whether a run folder, of any version, lies there."""
    return Folder.of(location).exists(RUN)


def read_run(location: str | os.PathLike[str], *, size: bool = True) -> Run:
    """What was begun in a run folder, and how far it has got; with ``size``, also how large it is."""
    folder = Folder.of(location)
    identity = read_identity(folder)
    try:
        rows, features, fingerprint = int(identity["rows"]), int(identity["features"]), str(identity["fingerprint"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder.path(RUN)} is damaged ({error}); start a new run in another folder") from error
    begun = [name for name in folder.names() if (folder / name).exists(PLAN)]
    passes = tuple(_pass(folder / name) for name in begun)
    return Run(folder.location, rows, features, fingerprint, passes, folder.nbytes() if size else None)


def _pass(folder: Folder) -> RunPass:
    with reading(folder, PLAN) as content:
        plan = Plan.from_json(content)
        finished = folder.exists(FINISHED)
        done = plan.n_blocks if finished else kept_blocks(folder)
        return RunPass(str(plan.statistic["statistic"]), plan, min(int(done), int(plan.n_blocks)), finished)


def kept_blocks(folder: Folder) -> int:
    """Blocks of an unfinished pass that need not be read again."""
    return _spooled(folder / "spool") + _checkpointed(folder / "checkpoints")


def _spooled(folder: Folder) -> int:
    """Blocks in finished spool files, which are named after them."""
    found = [match for name in folder.names() if (match := _BATCH.fullmatch(name))]
    return sum(int(match[2]) - int(match[1]) for match in found)


def _checkpointed(folder: Folder) -> int:
    """Blocks that the checkpoints of a pass cover; of each, only its header is read."""
    return sum(_covered(folder, name) for name in folder.names() if _CHECKPOINT.fullmatch(name))


def _covered(folder: Folder, name: str) -> int:
    file = ArrayFile.open(folder, name)
    try:
        return sum(int(stop) - int(start) for start, stop in file.facts["coverage"])
    except (LookupError, TypeError, ValueError) as error:
        raise file.damaged() from error
