"""A source that does something to the blocks of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nfs_dask.arrays.block import Array, Block
from nfs_dask.sources.source import Source


class Wrapped(Source):
    """Another source, with other facts where some are given."""

    def __init__(self, inner: Source, **changed: Any) -> None:
        self.inner = inner
        self._facts, self._sizes = replace(inner.facts, **changed), inner.sizes

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        return self.inner.blocks(start, stop)

    def names(self, columns: Array) -> list[str] | None:
        return self.inner.names(columns)
