"""Arrays in ``.npz`` and ``.npy`` files, read in ranges without being loaded. Nothing read is ever unpickled."""

from __future__ import annotations

import errno
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.data_files import open_binary, size_of

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # what stands before each member of a zip archive
_STEP = 1 << 24  # bytes taken from a compressed member at a time


@dataclass(frozen=True)
class ArchiveMember:
    """One array of an archive, known by its header."""

    path: str
    name: str  # without .npy
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # where the values begin: in the archive if they are stored plainly, else in the unpacked member
    stored: bool
    fortran: bool = False  # whether a matrix lies there column after column

    @property
    def where(self) -> str:
        return f"{self.name} in {self.path}" if self.name else self.path

    @contextmanager
    def open(self) -> Iterator[MemberReader]:
        """Read ranges of values; going forward costs one pass at most, also where they are compressed."""
        with ExitStack() as stack:
            file: IO[bytes] = stack.enter_context(open_binary(self.path))
            if not self.stored:
                file = stack.enter_context(self._unpacked(file))
            yield MemberReader(self, file)

    def _unpacked(self, file: IO[bytes]) -> IO[bytes]:
        try:
            return zipfile.ZipFile(file).open(f"{self.name}.npy")
        except (zipfile.BadZipFile, KeyError, NotImplementedError) as error:
            raise StoreError(f"{self.where} is damaged or has changed ({error}); open the file again") from None

    def read(self) -> Array:
        """All values, for what is known to be small."""
        with self.open() as reader:
            return reader.read(0, int(np.prod(self.shape))).reshape(self.shape)


class MemberReader:
    """Ranges of an open member."""

    def __init__(self, member: ArchiveMember, file: IO[bytes]) -> None:
        self._member = member
        self._file = file

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``, in memory of their own."""
        member = self._member
        out = np.empty(stop - start, member.dtype)
        view = out.view(np.uint8).data
        try:
            self._file.seek(member.start + start * member.dtype.itemsize)
            done = 0
            while done < len(view):
                part = self._file.read(min(_STEP, len(view) - done))
                if not part:
                    raise EOFError(f"{len(view) - done} bytes are missing")
                view[done : done + len(part)] = part
                done += len(part)
            if not member.stored and stop == math.prod(member.shape):
                self._file.read(1)  # beyond the last one: the checksum of all that came before is compared
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise StoreError(f"{member.where} is damaged or cut short ({error}); write the file again") from None
        return out

    def rows(self, start: int, stop: int) -> Array:
        """Rows ``start .. stop - 1`` of a matrix."""
        n_rows, width = self._member.shape
        if not self._member.fortran:
            return self.read(start * width, stop * width).reshape(-1, width)
        out = np.empty((stop - start, width), self._member.dtype)
        for column in range(width):
            out[:, column] = self.read(column * n_rows + start, column * n_rows + stop)
        return out


def open_array(path: str) -> ArchiveMember:
    """The array of a ``.npy`` file, of which only the header is read."""
    with open_binary(path) as file:
        header = _header(file, path)
        length = file.tell()
    return _checked(ArchiveMember(path, "", *header[:2], length, True, header[2]), size_of(path) - length)


def open_archive(path: str, only: str | None = None) -> dict[str, ArchiveMember]:
    """The arrays of an archive by name, or one of them. Only headers are read."""
    with open_binary(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                suffix = ".npy" if only is None else f"{only}.npy"
                infos = [info for info in archive.infolist() if _told(path, file, info).endswith(suffix)]
                return {info.filename.removesuffix(".npy"): _member(path, file, archive, info) for info in infos}
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that of a place before the beginning
                raise
            raise StoreError(
                f"{path} is not an npz archive, or is damaged ({error}); write it with scipy.sparse.save_npz"
            ) from None


def _member(path: str, file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ArchiveMember:
    name = info.filename.removesuffix(".npy")
    if info.flag_bits & 1:
        raise StoreError(f"{name} in {path} is encrypted; write the archive without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise StoreError(f"{name} in {path} is not compressed as numpy does it; write it with scipy.sparse.save_npz")
    with archive.open(info) as member:
        dtype, shape, fortran = _header(member, f"{name} in {path}")
        length = member.tell()
    stored = info.compress_type == zipfile.ZIP_STORED
    start = length + (_begin(file, info) if stored else 0)
    found = _checked(ArchiveMember(path, name, dtype, shape, start, stored, fortran), info.file_size - length)
    if stored:
        _check_stored(archive, info, found.where)
    return found


def _check_stored(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> None:
    """Refuse a plainly stored member that was altered: what is read later are parts of it, which have no checksum."""
    try:
        with archive.open(info) as content:
            while content.read(_STEP):
                pass
    except (zipfile.BadZipFile, EOFError) as error:
        raise StoreError(f"{where} is damaged or cut short ({error}); write the file again") from None


def _checked(member: ArchiveMember, there: int) -> ArchiveMember:
    """The member, if its values have as many bytes as its header says."""
    nbytes = member.dtype.itemsize * math.prod(member.shape)
    if there != nbytes:
        raise StoreError(f"{member.where} is damaged: its header says {nbytes} bytes of values, {there} are there")
    return member


def _header(member: IO[bytes], where: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Type and shape of an array, and whether columns come first, refusing whatever would need unpickling."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        read = readers[np.lib.format.read_magic(member)]
        shape, fortran, dtype = read(member)
    except (ValueError, KeyError, zlib.error, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(f"{where} has no header of a numpy array ({error}); write the file again") from None
    if dtype.hasobject:
        raise StoreError(f"{where} holds Python objects, which are not read as they could run code; store plain values")
    if dtype.kind not in "biufSU":
        raise StoreError(f"{where} has type {dtype}; numbers or text are read")
    return dtype, shape, fortran and len(shape) > 1


def _told(path: str, file: IO[bytes], info: zipfile.ZipInfo) -> str:
    """The name of a member; refused where its own header has another, or a comment may hide the next in the list."""
    file.seek(info.header_offset)
    fields = file.read(_LOCAL_HEADER.size)
    name = file.read(_LOCAL_HEADER.unpack(fields)[-2]) if len(fields) == _LOCAL_HEADER.size else b""
    if name != info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437") or info.comment:
        raise StoreError(f"{path} is damaged: a part of it has two names, or a comment; write the file again")
    return info.filename


def _begin(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where the content of a plainly stored member begins in the archive."""
    file.seek(info.header_offset)
    fields = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    return int(info.header_offset + _LOCAL_HEADER.size + fields[-2] + fields[-1])
