"""Arrays of strings in the form AnnData reads: chunk by chunk, each with a checksum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numcodecs.vlen import VLenUTF8

from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder
from nfs_dask.storage.layout import Texts
from nfs_dask.storage.shards import checksum, compressed


def write_texts(folder: Folder, texts: Texts, chunk: int, content: Sequence[str]) -> None:
    """Write one chunk; the rest of the last one is filled with empty strings, as Zarr wants it."""
    padded = np.full(texts.chunk, "", dtype=object)
    padded[: len(content)] = content
    packed = np.frombuffer(VLenUTF8().encode(padded), np.uint8)
    folder.write(texts.object_name(chunk), compressed(packed))


def write_ids(folder: Folder, texts: Texts, start: int, stop: int) -> None:
    """Write the numbers ``start .. stop - 1`` as strings; ``start`` is the beginning of a chunk."""
    for first in range(start, stop, texts.chunk):
        ids = [str(i) for i in range(first, min(first + texts.chunk, stop))]
        write_texts(folder, texts, first // texts.chunk, ids)


def check_texts(folder: Folder, texts: Texts) -> None:
    """Refuse, by name, an object that is missing or whose checksum does not fit."""
    for chunk in range(texts.n_chunks):
        content = folder.read(texts.object_name(chunk))
        if checksum(content[:-4]) != content[-4:]:
            raise StoreError(
                f"{folder.path(texts.object_name(chunk))} is damaged: its checksum does not fit its content"
            )
