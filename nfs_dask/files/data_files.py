"""Data files on a local disk or behind an fsspec URL: which there are, how large, whether they changed."""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, TypeAlias

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.remote import file_system_of, is_on_the_web, is_url, remote_errors, unsigned

PathLike: TypeAlias = str | os.PathLike[str]

REQUESTS = 16  # at a time, to file systems far away
VERSIONS = ("ETag", "etag", "LastModified", "Last-Modified", "mtime", "created")  # what they call them


def expand(paths: PathLike | Iterable[PathLike]) -> tuple[str, ...]:
    """The files that are meant: one, a list in its order, or the sorted matches of a pattern."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = tuple(name for path in given for name in _matches(os.fspath(path)))
    if not found:
        raise InputError("no files were given; name at least one")
    return found


def _matches(path: str) -> list[str]:
    if is_url(path):
        return [path]
    path = os.path.abspath(os.path.expanduser(path.removeprefix("file://")))
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise StoreError(f"no file matches {path}")
    return found


class _LocalFile(io.FileIO):
    """A file that is named where it cannot be read; archives that are damaged refer to places before its beginning."""

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        try:
            return super().seek(place, whence)
        except OSError as error:
            what = "it is damaged or cut short" if error.errno == errno.EINVAL else error.strerror
            raise OSError(error.errno, what, self.name) from None

    def readinto(self, buffer: Any) -> Any:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from None


def open_binary(path: str) -> IO[bytes]:
    """A file to read and to seek in. A pipe, which might be waited for, is refused: data are read more than once."""
    try:
        if not is_url(path):
            if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
                raise StoreError(
                    f"{path} is a pipe or a device, and data are read from files; copy what it gives into one"
                )
            return io.BufferedReader(_LocalFile(path))
        import fsspec

        with remote_errors(path):
            return fsspec.open(path, "rb").open()
    except FileNotFoundError:
        raise _missing(path) from None
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; name a file in it, or a pattern such as {path}/*") from None


def size_of(path: str) -> int:
    """Bytes of a file."""
    return int(_stamp(path)[1])


def fingerprint(paths: Iterable[str], *settings: Any) -> str:
    """A digest that changes when a file is replaced or read in another way; told by names, sizes and times."""
    return digest(stamps(paths), *settings)


def digest(found: list[list[Any]], *settings: Any) -> str:
    """The fingerprint of files whose `stamps` are known."""
    facts = json.dumps([found, settings], default=str)
    return hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()


def _missing(path: str) -> StoreError:
    refused = ", or its server refuses it, as it does when a signed URL has expired" if is_on_the_web(path) else ""
    return StoreError(f"{path} is missing{refused}")


def stamps(paths: Iterable[str]) -> list[list[Any]]:
    """Name, bytes and version of each file, however its URL is signed; several far away are asked for at a time."""
    paths = list(paths)
    if not any(map(is_url, paths)):
        return [_stamp(path) for path in paths]
    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(_stamp, paths))


def _stamp(path: str) -> list[Any]:
    """Name, size, and whatever tells this version of the file from another."""
    try:
        if not is_url(path):
            status = os.stat(path)
            return [path, status.st_size, status.st_mtime_ns]
        with file_system_of(path) as (fs, name):
            info = fs.info(name)
    except FileNotFoundError:
        raise _missing(path) from None
    version = [info[key] for key in VERSIONS if info.get(key)]
    return [unsigned(path), info["size"], version]
