"""Members of a zip archive, with every damage noticed and nothing believed that would be allocated.

A zip archive lists its members at its end. The list is read as a whole, so its size is bounded. What a member says of
its size is checked by whoever reads it, and no more is unpacked than it said. Members that share bytes, by which a
small archive may become any number of bytes, are refused: together they take no more than the archive has.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from nfs_dask.documents.tarstream import Damaged
from nfs_dask.files.data_files import open_binary, size_of
from nfs_dask.units import MiB, format_bytes

DIRECTORY_NBYTES = 32 * MiB  # of the list of members: of some three hundred thousand
ENCRYPTED = 0x1
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, LookupError, OverflowError)


class BadMember(Exception):
    """A member cannot be read, and others can."""


class ZipMember:
    """A member, asked as one of tar is."""

    def __init__(self, info: zipfile.ZipInfo) -> None:
        self.info, self.name, self.size = info, info.filename, info.file_size
        self._mode = info.external_attr >> 16 if info.create_system == 3 else 0  # of Unix, which knows links

    def isdir(self) -> bool:
        return self.info.is_dir()

    def isreg(self) -> bool:
        return stat.S_IFMT(self._mode) in (0, stat.S_IFREG)


class BoundedFile:
    """A file of which no more is read at once than a list of members may take."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY_NBYTES:
            raise ValueError(
                f"the list of its members takes {format_bytes(size)}, where {format_bytes(DIRECTORY_NBYTES)} are "
                "allowed; unpack it, or make a tar archive of it"
            )
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class ZipStream:
    """The members of an archive, in the order of its list; an archive that cannot be read is `Damaged`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open = ExitStack()

    def __enter__(self) -> ZipStream:
        try:
            with _damage_told():
                file = self._open.enter_context(open_binary(self._path))
                bounded: Any = BoundedFile(file)
                self._zip = self._open.enter_context(zipfile.ZipFile(bounded))
                if sum(info.compress_size for info in self._zip.infolist()) > size_of(self._path):
                    raise ValueError("members overlap: together they are larger than the archive")
                if any(info.header_offset < 0 for info in self._zip.infolist()):
                    raise ValueError("a member begins before the archive")
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __iter__(self) -> Iterator[ZipMember]:
        yield from map(ZipMember, self._zip.infolist())

    def read(self, member: ZipMember) -> bytes:
        """The content of a regular member, all of it, with its checksum checked."""
        if member.info.flag_bits & ENCRYPTED:
            raise BadMember("it is encrypted; unpack the archive with its password, and give the folder")
        try:
            with self._zip.open(member.info) as file:
                content = file.read(member.size + 1)
        except NotImplementedError as error:
            raise BadMember(f"it is packed in a way that is not known here ({error}); pack it by deflate") from None
        except (*_DAMAGE, RuntimeError) as error:
            raise BadMember(f"it is damaged ({error})") from None
        if len(content) != member.size:
            raise BadMember(f"{len(content):,} of {member.size:,} bytes are there")
        return content


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise Damaged(f"the archive is damaged or no zip archive ({error})") from None
