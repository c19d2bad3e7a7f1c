"""A folder of objects, on a local disk or behind an fsspec URL, with the few operations the package needs.

An object becomes visible whole or not at all: local files are renamed into place, remote ones appear when they close.
Credentials and end points come from the environment or fsspec's configuration of each process, never from a task.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nfs_dask.errors import StoreError


def is_url(location: str) -> bool:
    return "://" in location and not location.startswith("file://")


@dataclass(frozen=True)
class Folder:
    """``location`` is a local path or an fsspec URL such as ``s3://bucket/prefix``."""

    location: str

    @classmethod
    def of(cls, location: str | os.PathLike[str]) -> Folder:
        text = os.fspath(location)
        return cls(text if is_url(text) else os.path.abspath(text.removeprefix("file://")))

    @property
    def remote(self) -> bool:
        return is_url(self.location)

    def __truediv__(self, name: str) -> Folder:
        return Folder(self.path(name))

    def path(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    def _fs(self) -> Any:
        import fsspec

        return fsspec.core.url_to_fs(self.location, use_listings_cache=False)[0]

    def exists(self, name: str) -> bool:
        return bool(self._fs().exists(self.path(name))) if self.remote else os.path.exists(self.path(name))

    def names(self) -> list[str]:
        """Names directly inside, sorted; empty when the folder is not there."""
        if not self.remote:
            return sorted(os.listdir(self.location)) if os.path.isdir(self.location) else []
        try:
            found = self._fs().ls(self.location, detail=False)
        except FileNotFoundError:
            return []
        return sorted(str(name).rstrip("/").rsplit("/", 1)[-1] for name in found)

    def size(self, name: str) -> int:
        return int(self._fs().size(self.path(name))) if self.remote else os.path.getsize(self.path(name))

    def nbytes(self) -> int:
        """Bytes of all objects inside, or of the one object that the location names."""
        if self.remote:
            return int(self._fs().du(self.location))
        place = Path(self.location)
        return sum(path.stat().st_size for path in (place.rglob("*") if place.is_dir() else [place]) if path.is_file())

    def read(self, name: str, start: int | None = None, stop: int | None = None) -> bytes:
        """Bytes ``start .. stop - 1`` of an object, or all of it. A negative start counts from the end."""
        try:
            if self.remote:
                return bytes(self._fs().cat_file(self.path(name), start=start, end=stop))
            with open(self.path(name), "rb") as file:
                if start is not None and start < 0:
                    start = max(0, os.fstat(file.fileno()).st_size + start)
                file.seek(start or 0)
                return file.read(-1 if stop is None else stop - (start or 0))
        except FileNotFoundError:
            raise StoreError(f"{self.path(name)} is missing") from None

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to, that appears under its name when the block ends without an error."""
        if self.remote:
            with self._remote_file(name) as file:
                yield file
            return
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
        try:
            with open(partial, "wb") as file:
                yield file
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    @contextmanager
    def _remote_file(self, name: str) -> Iterator[IO[bytes]]:
        file = self._fs().open(self.path(name), "wb", autocommit=False)
        try:
            yield file
        except BaseException:
            file.discard()
            raise
        file.close()
        file.commit()

    def write(self, name: str, content: bytes) -> None:
        if self.remote:
            self._fs().pipe_file(self.path(name), content)
        else:
            with self.create(name) as file:
                file.write(content)

    def write_new(self, name: str, content: bytes) -> bool:
        """Write an object unless one is there; whether it was this call that wrote it."""
        try:
            if self.remote:
                self._fs().pipe_file(self.path(name), content, mode="create")
                return True
            Path(self.location).mkdir(parents=True, exist_ok=True)
            partial = Path(self.path(f".{name}.{uuid.uuid4().hex[:8]}.partial"))
            partial.write_bytes(content)
            try:
                os.link(partial, self.path(name))  # unlike a rename, refuses an existing name
            finally:
                partial.unlink()
            return True
        except FileExistsError:
            return False

    def delete(self, name: str) -> None:
        """Delete one object; fine if it is not there."""
        if not self.remote:
            Path(self.path(name)).unlink(missing_ok=True)
        elif self.exists(name):
            self._fs().rm_file(self.path(name))

    def remove(self) -> None:
        """Delete the folder and all in it; fine if it is not there."""
        if not self.remote:
            shutil.rmtree(self.location, ignore_errors=True)
        else:
            fs = self._fs()
            if fs.exists(self.location):
                fs.rm(self.location, recursive=True)
