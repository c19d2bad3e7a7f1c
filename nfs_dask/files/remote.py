"""The file systems behind URLs. What goes wrong with them is an OSError without secrets, whichever library says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.redaction import redacted


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
