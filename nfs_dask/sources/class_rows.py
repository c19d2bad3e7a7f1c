"""The documents of some classes, as a source of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, check_structure, some_rows
from nfs_dask.sources.dask_matrices import lazy_tasks
from nfs_dask.sources.source import Source, is_delayed
from nfs_dask.sources.views import Step, View


def some_classes(source: Source, positions: Array) -> Source:
    """The source with the documents of these classes alone, ascending positions among its own, numbered anew."""
    view: Any = _Classes(source, positions)  # some of its sizes are read-only
    return view


class _Classes(View):
    """Some classes of a source."""

    def __init__(self, source: Source, positions: Array) -> None:
        assert source.classes is not None, "only documents with labels have classes"
        super().__init__(source, "classes", positions)
        self.n_rows = -1  # not known before they are read
        self._codes = np.full(len(source.classes), UNLABELLED, np.int32)
        self._codes[positions] = np.arange(len(positions), dtype=np.int32)
        self.classes = source.classes[positions]
        if is_delayed(source):
            tasks = [(_of_classes, block.key, self._codes) for block in source.delayed]
            self.delayed = lazy_tasks("classes", tasks, [source.delayed[0]])

    @property
    def step(self) -> Step | None:
        return partial(_of_classes, codes=self._codes)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for block in self._source.blocks(start, stop):
            yield _of_classes(block, self._codes)

    def names(self, columns: Array) -> list[str] | None:
        return self._source.names(columns)


def _of_classes(block: Block, codes: Array) -> Block:
    """The rows of a block that have a code of their own; rows without a label stay, so that they are refused."""
    check_structure(block)
    renumbered = np.append(codes, np.int32(UNLABELLED))[block.codes]  # the code -1 finds the last entry
    return some_rows(replace(block, codes=renumbered), (renumbered != UNLABELLED) | (block.codes == UNLABELLED))
