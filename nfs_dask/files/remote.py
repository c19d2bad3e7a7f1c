"""Places behind URLs: their file systems, and objects that are read until they are whole.

What goes wrong is an OSError without secrets, whichever library says it. What libraries of object stores retry differs,
and none notices that a range ends early if it claims to be complete. The end of an object and all of it, whose size
nobody knows beforehand, are checked by whoever reads them.
"""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.redaction import redacted

logger = logging.getLogger("nfs_dask")

SMALL = 8 << 20  # bytes that are sent in one request
PAUSES = (0.0, 0.2)  # seconds between tries to read

_SIGNATURE = re.compile(r"sig|signature|x-(amz|goog)-signature", re.I)
_SIGNING = re.compile(  # what object stores and their networks ask for beside it
    r"x-(amz|goog)-.*|sig|signature|expires|policy|key-pair-id|awsaccesskeyid|googleaccessid"
    r"|s[eprtv]|spr|sip|srt|ss|sks|skv|skt|ske|skoid|sktid",
    re.I,
)


def is_url(location: str) -> bool:
    return "://" in location and not location.startswith("file://")


def split_query(location: str) -> tuple[str, str]:
    """A URL up to its query, whose end tells what it is of, and the query; paths of this machine have none.

    >>> split_query("https://host/mail.csv?X-Amz-Signature=a/b"), split_query("/data/why?.csv")
    (('https://host/mail.csv', '?X-Amz-Signature=a/b'), ('/data/why?.csv', ''))
    """
    if not is_url(location):
        return location, ""
    path, asked, query = location.partition("?")
    return path, asked + query


def is_on_the_web(location: str) -> bool:
    """Whether a place is behind HTTP, where folders are pages: to tell whether a place is one, all of it is read."""
    return location.lower().startswith(("http://", "https://"))


def unsigned(url: str) -> str:
    """A URL without what signs it; one that is not signed as it is, since its query may say which object it is.

    >>> unsigned("https://host/mail.csv?version=3&X-Amz-Date=20260101&X-Amz-Signature=ab")
    'https://host/mail.csv?version=3'
    """
    place, _, query = url.partition("?")
    names = {one: unquote(one.partition("=")[0]) for one in query.split("&")}
    if not any(map(_SIGNATURE.fullmatch, names.values())):
        return url
    rest = "&".join(one for one, name in names.items() if not _SIGNING.fullmatch(name))
    return f"{place}?{rest}" if rest else place


@contextmanager
def file_system_of(location: str) -> Iterator[tuple[Any, str]]:
    """The fsspec file system of a URL, which keeps no listings, and the place within it."""
    import fsspec

    try:
        fs, inside = fsspec.core.url_to_fs(location, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise InputError(f"{location} cannot be used: {error}") from error
    with remote_errors(location):
        yield fs, inside


@contextmanager
def remote_errors(location: str) -> Iterator[None]:
    """Have what goes wrong with a URL in here told without secrets, and as an OSError."""
    try:
        yield
    except NfsDaskError:
        raise
    except Exception as error:
        told = _told(error, location)
        if told is error:
            raise
        raise told from (error if redacted(str(error), location) == str(error) else None)


def _told(error: Exception, location: str) -> Exception:
    missing = isinstance(error, (FileNotFoundError, FileExistsError))
    said = str(error)
    if missing or getattr(error, "filename", None) is not None:  # it says which place it is about
        return type(error)(redacted(said, location)) if redacted(said, location) != said else error
    kind = PermissionError if isinstance(error, PermissionError) else OSError
    return kind(redacted(f"{location}: {said or 'it cannot do that'} ({type(error).__name__})", location))


def read_object(fs: Any, path: str, start: int | None, stop: int | None) -> bytes:
    """Bytes ``start .. stop - 1`` of an object, as in a slice; tried anew where they do not come, or not all."""
    for pause in PAUSES:
        try:
            return _read(fs, path, start, stop)
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # noqa: BLE001 - each library has its own
            logger.debug("reading once more, after %s", redacted(str(error)))
        time.sleep(pause)
    return _read(fs, path, start, stop)


def _read(fs: Any, path: str, start: int | None, stop: int | None) -> bytes:
    """One request where the range is as good as sure to hold something, else a look at the size first.

    Object stores answer an empty range with the whole object, and one beyond the end with an error.
    """
    first, last = start or 0, stop
    if stop is None or 0 <= first < stop:
        try:
            content = bytes(fs.cat_file(path, start=start or None, end=stop))
        except FileNotFoundError:
            raise
        except OSError:
            if fs.size(path) > first:
                raise
        else:
            if stop is not None and len(content) != stop - first:  # beyond the end, or it has ended early
                first, last = slice_of(start, stop, fs.size(path))
                _check(content, last - first, path)
            return content
    first, last = slice_of(start, stop, fs.size(path))
    content = bytes(fs.cat_file(path, start=first, end=last)) if last > first else b""
    _check(content, last - first, path)
    return content


def _check(content: bytes, size: int, path: str) -> None:
    if len(content) != size:
        raise OSError(f"{path}: {len(content):,} bytes came of {size:,}")


def slice_of(start: int | None, stop: int | None, size: int) -> tuple[int, int]:
    """The bytes meant, of an object of that size; nothing where the range is empty or beyond the end."""
    first = max(0, size + start) if start is not None and start < 0 else min(start or 0, size)
    return first, max(first, min(size if stop is None else stop, size))


class Upload(io.RawIOBase):
    """A new object, which appears when it is committed.

    What is written is held until it is too much for one request. An upload in parts takes three requests or more, and
    one whose beginning was carried out but not confirmed is left in the store, where nobody sees it.
    """

    def __init__(self, fs: Any, path: str) -> None:
        super().__init__()
        self._fs, self._path = fs, path
        self._held = io.BytesIO()
        self._file: Any = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int((self._file or self._held).tell())

    def write(self, content: Any) -> int:
        nbytes = memoryview(content).nbytes
        if self._file is None and self._held.tell() + nbytes > SMALL:
            self._file = self._fs.open(self._path, "wb", autocommit=False)
            self._file.write(self._held.getvalue())
            self._held = io.BytesIO()
        (self._held if self._file is None else self._file).write(content)
        return nbytes

    def commit(self) -> None:
        """Let it appear."""
        if self._file is None:
            self._fs.pipe_file(self._path, self._held.getvalue())
        else:
            self._file.close()
            self._file.commit()

    def discard(self) -> None:
        """Leave nothing of it."""
        if self._file is not None:
            try:
                self._file.close()  # one left open would begin to upload again when it is collected
            finally:
                self._file.discard()
