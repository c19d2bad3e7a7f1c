"""The documents of some classes, as a source of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, some_rows
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import View


def some_classes(source: Source, positions: Array) -> Source:
    """The source with the documents of these classes alone, ascending positions among its own, numbered anew."""
    assert source.classes is not None, "only documents with labels have classes"
    codes = np.full(len(source.classes), UNLABELLED, np.int32)
    codes[positions] = np.arange(len(positions), dtype=np.int32)
    step = partial(_of_classes, codes=codes)
    return View(source, "classes", positions, step, n_rows=-1, classes=source.classes[positions])


def _of_classes(block: Block, codes: Array) -> Block:
    """The rows of a block that have a code of their own; rows without a label stay, so that they are refused."""
    renumbered = np.append(codes, np.int32(UNLABELLED))[block.codes]  # the code -1 finds the last entry
    return some_rows(replace(block, codes=renumbered), (renumbered != UNLABELLED) | (block.codes == UNLABELLED))
