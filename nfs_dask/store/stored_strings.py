"""Many strings at rest: all of them one after another as UTF-8 bytes, and an array of where each begins and ends."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store.layout import Numbers
from nfs_dask.store.shards import ArrayWriter, ShardReader
from nfs_dask.text.strings import Strings


class StringsWriter:
    """Writes strings that come in pieces as an array of offsets and one of bytes."""

    def __init__(self, folder: Folder, offsets: Numbers, text: Numbers) -> None:
        self.offsets, self.text = ArrayWriter(folder, offsets), ArrayWriter(folder, text)
        self.nbytes = 0
        self._stack = ExitStack()

    def __enter__(self) -> StringsWriter:
        with ExitStack() as stack:
            stack.enter_context(self.offsets)
            stack.enter_context(self.text)
            self._stack = stack.pop_all()
        self.offsets.add(np.zeros(1, np.int64))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def add(self, strings: Strings) -> None:
        first, last = int(strings.offsets[0]), int(strings.offsets[-1])
        self.offsets.add(strings.offsets[1:] + (self.nbytes - first))
        self.text.add(strings.text[first:last])
        self.nbytes += last - first


class StringsReader:
    """Reads ranges of strings that `StringsWriter` wrote."""

    def __init__(self, folder: Folder, offsets: Numbers, text: Numbers) -> None:
        self.offsets, self.text = ShardReader(folder, offsets), ShardReader(folder, text)

    def read(self, start: int, stop: int) -> Strings:
        """Strings ``start .. stop - 1``."""
        offsets = self.offsets.read(start, stop + 1)
        if np.any(offsets[1:] < offsets[:-1]):
            where = self.offsets.folder.path(self.offsets.numbers.name)
            raise StoreError(f"{where} is damaged: its offsets are not in order; restore it from a copy")
        return Strings(offsets - offsets[0], self.text.read(int(offsets[0]), int(offsets[-1])))


def same_strings(one: Strings, other: Strings) -> bool:
    """Whether as many strings are the same, one by one."""
    ours, theirs = (strings.text[strings.offsets[0] : strings.offsets[-1]] for strings in (one, other))
    return np.array_equal(np.diff(one.offsets), np.diff(other.offsets)) and np.array_equal(ours, theirs)
