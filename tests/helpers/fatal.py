"""Documents that kill who reads them, once or each time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfs_dask.documents.document_source import Batch


@dataclass
class Fatal:
    """Opened documents; whoever has read and counted the first batch of one piece gets SIGKILL."""

    inner: Any
    at_piece: int
    marks: str  # a folder that remembers the dead
    times: int = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def deaths(self) -> int:
        return len(list(Path(self.marks).iterdir()))

    def batches(self, piece: Any) -> Iterator[Batch]:
        for batch in self.inner.batches(piece):
            yield batch
            if piece == self.at_piece and self.deaths < self.times:
                Path(self.marks, os.urandom(6).hex()).touch()
                os.kill(os.getpid(), signal.SIGKILL)
