"""Arrays of strings in the form AnnData reads: chunk by chunk, each with a checksum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numcodecs import blosc
from numcodecs.vlen import VLenUTF8

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store.layout import Texts
from nfs_dask.store.shards import Receipt, check_of, checks_of, checksum, compressed
from nfs_dask.text.strings import Strings

_COUNT_NBYTES = 4  # of the number of strings, and of the length of each


def write_texts(folder: Folder, texts: Texts, chunk: int, content: Sequence[str]) -> int:
    """Write one chunk; the rest of the last one is filled with empty strings, as Zarr wants it. The check of it."""
    strings = Strings.of(content)
    write_strings(folder, texts, chunk, strings)
    return check_of(encoded(strings, len(strings)))


def write_strings(folder: Folder, texts: Texts, chunk: int, content: Strings) -> None:
    """As `write_texts`, of strings that are bytes already."""
    folder.write(texts.object_name(chunk), compressed(encoded(content, texts.chunk)))


def encoded(strings: Strings, size: int) -> Array:
    """Zarr's vlen-utf8: how many there are, then length and bytes of each; ``size`` in all, the last ones empty."""
    lengths = np.zeros(size, "<u4")
    lengths[: len(strings)] = np.diff(strings.offsets)
    out = np.empty(_COUNT_NBYTES * (1 + size) + int(lengths.sum(dtype=np.int64)), np.uint8)
    out[:_COUNT_NBYTES] = np.array([size], "<u4").view(np.uint8)
    _encode(read_only(strings.offsets), read_only(strings.text), lengths.view(np.uint8), out)
    return out


def write_ids(folder: Folder, texts: Texts, start: int, stop: int) -> None:
    """Write the numbers ``start .. stop - 1`` as strings; ``start`` is the beginning of a chunk."""
    for first in range(start, stop, texts.chunk):
        write_strings(folder, texts, first // texts.chunk, decimal(first, min(first + texts.chunk, stop)))


def decimal(start: int, stop: int) -> Strings:
    """The numbers ``start .. stop - 1`` as strings.

    >>> decimal(8, 11).to_list()
    ['8', '9', '10']
    """
    digits = np.arange(start, stop).astype(f"S{len(str(stop))}")
    padded = digits.view(np.uint8).reshape(len(digits), digits.itemsize)
    lengths = np.count_nonzero(padded, axis=1)
    return Strings(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), padded[padded != 0])


def write_row_texts(folder: Folder, texts: Texts, start: int, values: Sequence[str]) -> Receipt:
    """Write strings from ``start`` on, which is the beginning of a chunk; a receipt with their checksums only."""
    checks = []
    for at in range(0, len(values), texts.chunk):
        checks.append(write_texts(folder, texts, (start + at) // texts.chunk, values[at : at + texts.chunk]))
    return Receipt(b"", 0, tuple(checks))


def read_texts(folder: Folder, texts: Texts, start: int, stop: int) -> list[str]:
    """Strings ``start .. stop - 1``; ``start`` is the beginning of a chunk."""
    found: list[str] = []
    for first in range(start, stop, texts.chunk):
        name = texts.object_name(first // texts.chunk)
        content = checked(folder, name)
        try:
            chunk = VLenUTF8().decode(blosc.decompress(content))
        except (RuntimeError, ValueError) as error:
            raise StoreError(f"{folder.path(name)} is damaged: {error}; restore it from a copy") from None
        if len(chunk) != texts.chunk:
            raise StoreError(f"{folder.path(name)} is damaged: it holds {len(chunk)} strings; restore it from a copy")
        strings = chunk[: texts.length - first].tolist()
        checks = checks_of(folder, texts)
        if checks is not None and checks[first // texts.chunk] != check_of(encoded(Strings.of(strings), len(strings))):
            raise StoreError(f"{folder.path(name)} holds other texts than were written there; restore it from a copy")
        found += strings[: stop - first]
    return found


def checked(folder: Folder, name: str) -> bytes:
    """An object of strings without its checksum; refused, by name, where that does not fit."""
    content = folder.read(name)
    if checksum(content[:-4]) != content[-4:]:
        raise StoreError(f"{folder.path(name)} is damaged: its checksum does not fit its content")
    return content[:-4]


def check_texts(folder: Folder, texts: Texts) -> None:
    """Refuse, by name, an object that is missing or whose checksum does not fit."""
    for first in range(0, texts.length, texts.chunk):
        read_texts(folder, texts, first, min(first + texts.chunk, texts.length))


@kernel
def _encode(offsets, text, lengths, out):
    """Strings, each after the four bytes of its length, from the fifth byte on; those beyond the last are empty."""
    at = 4
    for i in range(len(lengths) // 4):
        for j in range(4):
            out[at + j] = lengths[4 * i + j]
        at += 4
        if i < len(offsets) - 1:
            for j in range(offsets[i], offsets[i + 1]):
                out[at] = text[j]
                at += 1
