"""Compressed files as streams of their content."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary
from nfs_dask.files.remote import split_query
from nfs_dask.units import MiB

PYARROW_NBYTES = 50 * MiB  # measured: what importing pyarrow takes at most


def _open_zstd(file: IO[bytes]) -> Any:
    """Through pyarrow, which, unlike others, reads several frames and notices when the last one is cut short."""
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")


OPENERS: Mapping[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}


def split_compression(path: str) -> tuple[str, str]:
    """A name without the suffix of its compression, and that suffix or an empty one; the query of a URL is no part."""
    name, _ = split_query(path)
    for suffix in OPENERS:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)], suffix
    return name, ""


@contextmanager
def open_content(path: str) -> Iterator[IO[bytes]]:
    """A file to read from, through its compression; a damaged one is an InputError that names it."""
    compression = split_compression(path)[1]
    with open_binary(path) as file:
        if not compression:
            yield file
            return
        with OPENERS[compression](file) as content:
            try:
                yield content
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                raise InputError(
                    f"{path} cannot be read to its end ({error}); it is damaged or cut short, get it again"
                ) from error
