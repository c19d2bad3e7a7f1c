"""A folder of objects, on a local disk or behind an fsspec URL, with the few operations the package needs.

An object becomes visible whole or not at all: local files are renamed into place, remote ones appear when they close.
Credentials and end points come from the environment or fsspec's configuration of each process, never from a task.
"""

from __future__ import annotations

import errno
import glob
import itertools
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.errors import InputError, NoRoomError, StoreError
from nfs_dask.files.remote import Upload, file_system_of, is_url, read_object, slice_of
from nfs_dask.redaction import PlacesHidden

PROBE = ".nfs-probe-"  # begins the names of files that show where one can write


@dataclass(frozen=True, repr=False)
class Folder(PlacesHidden):
    """``location`` is a local path or an fsspec URL such as ``s3://bucket/prefix``."""

    location: str
    lasting: bool = True  # what is written has to outlive a power cut

    @classmethod
    def of(cls, location: str | os.PathLike[str]) -> Folder:
        if not isinstance(location, (str, os.PathLike)):
            raise InputError(f"{location!r} is no place; give a path or URL, as a string or a pathlib.Path")
        text = os.fspath(location)
        if not text:
            raise InputError("a path or URL is empty; name a place")
        return cls(text if is_url(text) else os.path.abspath(os.path.expanduser(text.removeprefix("file://"))))

    @property
    def remote(self) -> bool:
        return is_url(self.location)

    def __truediv__(self, name: str) -> Folder:
        return Folder(self.path(name), self.lasting)

    @property
    def scratch(self) -> Folder:
        """The same folder, for files that a power cut may take."""
        return Folder(self.location, lasting=False)

    def path(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    @contextmanager
    def _fs(self) -> Iterator[Any]:
        """The remote file system."""
        with file_system_of(self.location) as (fs, _):
            yield fs

    def exists(self, name: str) -> bool:
        if not self.remote:
            return os.path.exists(self.path(name))
        with self._fs() as fs:
            return bool(fs.exists(self.path(name)))

    def names(self) -> list[str]:
        """Names directly inside, sorted; empty when the folder is not there."""
        if not self.remote:
            return sorted(os.listdir(self.location)) if os.path.isdir(self.location) else []
        try:
            with self._fs() as fs:
                found = fs.ls(self.location, detail=False)
        except FileNotFoundError:
            return []
        return sorted({str(name).rstrip("/").rsplit("/", 1)[-1] for name in found})

    def size(self, name: str) -> int:
        """Bytes of an object."""
        try:
            if not self.remote:
                return os.path.getsize(self.path(name))
            with self._fs() as fs:
                return int(fs.size(self.path(name)))
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{self.path(name)} is missing") from None

    def nbytes(self) -> int:
        """Bytes of all objects inside, or of the one object that the location names."""
        if self.remote:
            with self._fs() as fs:
                return int(fs.du(self.location))
        place = Path(self.location)
        return sum(path.stat().st_size for path in (place.rglob("*") if place.is_dir() else [place]) if path.is_file())

    def read(self, name: str, start: int | None = None, stop: int | None = None) -> bytes:
        """Bytes ``start .. stop - 1`` of an object, or all of it. A negative start counts from the end."""
        if self.remote:
            return self._read_remote(name, start, stop)
        with self._at_slice(name, start, stop) as (file, size):
            return file.read(size)

    def read_array(self, name: str, start: int | None = None, stop: int | None = None) -> Array:
        """As `read`: bytes that are not to be written to, of a local file in memory that was used before."""
        if self.remote:
            return np.frombuffer(self._read_remote(name, start, stop), np.uint8)
        with self._at_slice(name, start, stop) as (file, size):
            content = np.empty(size, np.uint8)
            found: Array = read_only(content[: file.readinto(content.data)])
            return found

    def _read_remote(self, name: str, start: int | None, stop: int | None) -> bytes:
        try:
            with self._fs() as fs:
                return read_object(fs, self.path(name), start, stop)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{self.path(name)} is missing") from None

    @contextmanager
    def _at_slice(self, name: str, start: int | None, stop: int | None) -> Iterator[tuple[BufferedReader, int]]:
        """A local file where a slice of it begins, and the bytes of that; what is no file is reported by its name."""
        try:
            if not stat.S_ISREG(os.stat(self.path(name)).st_mode):  # a pipe, for one, would be waited for
                raise StoreError(f"{self.path(name)} is not a file, and one must be there; it is damaged")
            with open(self.path(name), "rb") as file:
                size = os.fstat(file.fileno()).st_size  # of the file that was opened: another may have its name by now
                first, last = slice_of(start, stop, size)
                file.seek(first)
                yield file, last - first
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{self.path(name)} is missing") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StoreError(f"{self.path(name)} is a link that leads to itself; it is damaged") from None
            error.filename = error.filename or self.path(name)
            raise

    def read_into(self, name: str, start: int, out: Any, size: int) -> bool:
        """Fill an array with the bytes of a local file from ``start`` on; False where there is none of that size."""
        try:
            found = os.stat(self.path(name))
            if not stat.S_ISREG(found.st_mode) or found.st_size != size:
                return False
            with open(self.path(name), "rb", buffering=0) as file:
                file.seek(start)
                return file.readinto(out) == len(out)
        except OSError:
            return False

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to, that appears under its name when the block ends without an error.

        Unless the folder is for scratch, it is on the disk by then, and a power cut leaves all of it or nothing.
        """
        if self.remote:
            with self._remote_file(name) as file:
                yield file
            return
        path, lasting = Path(self.path(name)), self.lasting
        _make_folder(path.parent, lasting)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
        try:
            with _named(path), open(partial, "wb") as file:
                yield file
                _settle(file, lasting)
            os.replace(partial, path)
            _settle_folder(path.parent, lasting)
        finally:
            partial.unlink(missing_ok=True)

    @contextmanager
    def _remote_file(self, name: str) -> Iterator[IO[bytes]]:
        with self._fs() as fs:
            upload = Upload(fs, self.path(name))
        try:
            yield cast(IO[bytes], upload)
            with self._fs():
                upload.commit()
        except BaseException:
            upload.discard()
            raise

    def write(self, name: str, content: bytes | memoryview) -> None:
        if self.remote:
            with self._fs() as fs:
                fs.pipe_file(self.path(name), bytes(content))
        else:
            with self.create(name) as file:
                file.write(content)

    def write_new(self, name: str, content: bytes) -> bool:
        """Write an object unless one is there; whether it was this call that wrote it."""
        path = Path(self.path(name))
        if not self.remote:
            _make_folder(path.parent, True)
        try:
            if self.remote:
                with self._fs() as fs:
                    fs.pipe_file(self.path(name), content, mode="create")
                return True
            partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
            try:
                with _named(path), open(partial, "wb") as file:
                    file.write(content)
                    _settle(file, True)
                _name_new(partial, path)
                _settle_folder(path.parent, True)
            finally:
                partial.unlink(missing_ok=True)
            return True
        except FileExistsError:
            return self.remote and self._holds(name, content)

    def _holds(self, name: str, content: bytes) -> bool:
        """Whether an object is what this process wrote a moment ago, by a request of which no answer came."""
        try:
            return self.read(name, 0, len(content) + 1) == content
        except StoreError:
            return False

    def writable(self) -> bool:
        """Whether objects can be written here, found by writing one."""
        probe = f"{PROBE}{uuid.uuid4().hex[:12]}"
        try:
            self.scratch.write(probe, b"")
            self.delete(probe)
        except OSError:
            return False
        return True

    def delete(self, name: str) -> None:
        """Delete one object; fine if it is not there."""
        if not self.remote:
            Path(self.path(name)).unlink(missing_ok=True)
        elif self.exists(name):
            with self._fs() as fs:
                fs.rm_file(self.path(name))

    def remove(self) -> None:
        """Delete the folder and all in it; fine if it is not there."""
        if not self.remote:
            shutil.rmtree(self.location, ignore_errors=True)
            return
        with self._fs() as fs:
            if glob.has_magic(self.location):  # rm would take it for a pattern, and delete whatever matches
                for path in fs.find(self.location):
                    fs.rm_file(path)
            elif fs.exists(self.location):
                fs.rm(self.location, recursive=True)

    def remove_empty(self) -> None:
        """Delete the folder if nothing is in it; behind a URL there is no such thing."""
        if not self.remote:
            with suppress(OSError):
                os.rmdir(self.location)


def rename_folder(folder: Folder, to: Folder) -> None:
    """Give a local folder another name beside its own, for good; refuses one that is taken by anything."""
    os.rename(folder.location, to.location)
    _settle_folder(Path(to.location).parent, True)


def _name_new(partial: Path, path: Path) -> None:
    """Give a finished file its name, unless something has that: FileExistsError then."""
    try:
        os.link(partial, path)  # unlike a rename, refuses an existing name
    except FileExistsError:
        raise
    except (OSError, AttributeError, NotImplementedError):  # a system, or a mounted disk, without links
        path.touch(exist_ok=False)  # the name is taken, and for a moment what has it is empty
        try:
            os.replace(partial, path)
        except BaseException:
            path.unlink()
            raise


def _make_folder(path: Path, lasting: bool) -> None:
    """Make a folder and those above it."""
    missing = [path, *path.parents] if lasting else []
    missing = list(itertools.takewhile(lambda one: not one.exists(), missing))
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _settle_folder(made.parent, lasting)


def _settle(file: IO[bytes], lasting: bool) -> None:
    """Bring what was written to the disk."""
    if lasting:
        file.flush()
        os.fsync(file.fileno())


def _settle_folder(path: Path, lasting: bool) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not lasting:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # a folder that may be written but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems know no such thing
        pass
    finally:
        os.close(descriptor)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file there was no room for, by an error that no task repeats."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoRoomError(error.errno, error.strerror, error.filename or str(path)) from None
        raise


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
