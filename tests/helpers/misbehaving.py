"""Sources that misbehave on purpose."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nfs_dask.arrays.block import Array, Block
from nfs_dask.sources.source import Source


@dataclass
class Misbehaving(Source):
    """A source that does something bad when a worker reads a block, the first time or each time.

    ``deed`` is "kill" (SIGKILL to the process that reads), "raise", or "interrupt" (SIGINT to process ``victim``).
    """

    inner: Source
    deed: str
    at_block: int
    marks: str  # a folder that remembers what was done
    times: int = 1
    victim: int = 0
    fingerprint_suffix: str = ""

    def __post_init__(self) -> None:
        self._facts = replace(self.inner.facts, fingerprint=f"{self.inner.fingerprint}{self.fingerprint_suffix}")
        self._sizes = self.inner.sizes

    def names(self, columns: Array) -> list[str] | None:
        return self.inner.names(columns)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            self._note(f"read-{number}")
            if number == self.at_block and len(list(Path(self.marks).glob("did-*"))) < self.times:
                self._note("did")
                self._do()
            yield from self.inner.blocks(number, number + 1)

    def reads(self, number: int) -> int:
        """How often a block has been read, by anyone."""
        return len(list(Path(self.marks).glob(f"read-{number}-*")))

    def _note(self, what: str) -> None:
        Path(self.marks, f"{what}-{os.urandom(6).hex()}").touch()

    def _do(self) -> None:
        if self.deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.deed == "interrupt":
            os.kill(self.victim, signal.SIGINT)
        elif self.deed == "raise":
            raise OSError("the disk has had enough")
