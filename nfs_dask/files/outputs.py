"""Places that something will be written to, looked at before the work begins that it comes from."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder


def check_writable(folder: Folder) -> None:
    """Refuse a folder that cannot be written to. One that is not there yet is made when it is needed."""
    if folder.remote:
        if not folder.writable():
            raise StoreError(f"{folder.location} cannot be written to; name another place, or see to permissions")
        return
    place = Path(folder.location)
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise StoreError(f"{folder.location} cannot be a folder, as {there} is a file; name another place")
    try:
        with tempfile.TemporaryFile(dir=there):  # which has no name where the system knows such files
            pass
    except OSError as error:
        raise StoreError(
            f"{there} cannot be written to ({error.strerror}); name another place, or see to permissions"
        ) from None


def parent_of(place: str | os.PathLike[str]) -> tuple[Folder, str]:
    """The folder that a file or a folder of this path or URL is in, and its name there."""
    parent, _, name = Folder.of(place).location.rstrip("/").rpartition("/")
    return Folder.of(parent or "/"), name
