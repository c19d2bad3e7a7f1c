"""Members of a tar archive in one pass, plain or compressed, with every damage noticed.

`tarfile` alone takes a cut or garbled header for the end of the archive, keeps every header it has read, believes any
size, and ignores the checksums of compressed streams.
"""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from nfs_dask.documents.compression import OPENERS
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary
from nfs_dask.units import MiB, format_bytes

HEADER_NBYTES = 1 * MiB  # of what stands before a member: long names and extended headers
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BLOCK_NBYTES = 512
_BUFFER_NBYTES = 1 << 16
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}  # by first bytes
_DAMAGE = (
    *(tarfile.TarError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError),
    *(ValueError, LookupError, OverflowError, struct.error),  # what tarfile lets through from headers of nonsense
)


class Damaged(Exception):
    """An archive cannot be read to its end."""


class _Header(tarfile.TarInfo):
    """A header that is whole. tarfile takes a cut or garbled one for the end of the archive, and would allocate any."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        if len(buf) < _BLOCK_NBYTES:
            raise EOFError("it is cut short: its end mark is missing")
        ended = not any(buf)
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if ended:
                raise
            raise ValueError(f"{error} where a member should begin") from None
        if header.size < 0:
            raise ValueError(f"a member of {header.size} bytes")
        if header.type in _EXTENDED and header.size > HEADER_NBYTES:
            raise ValueError(
                f"a name or header of {format_bytes(header.size)}, where {format_bytes(HEADER_NBYTES)} are allowed"
            )
        return header


class TarStream:
    """The members of an archive one after another, each to be read before the next; whatever is wrong is `Damaged`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open = ExitStack()

    def __enter__(self) -> TarStream:
        try:
            with self._damage_told():
                file = self._open.enter_context(open_binary(self._path))
                stream = self._open.enter_context(_unpacked(file))
                # tarfile would unpack it too, but check no checksum, and stop after the first of joined streams.
                tar = tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER_NBYTES, tarinfo=_Header, encoding="utf-8")
                self._tar = self._open.enter_context(tar)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while True:
            with self._damage_told():
                member = self._tar.next()
                if member is None:
                    self._check_end()
                    return
                self._tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep every one
            yield member

    def read(self, member: tarfile.TarInfo) -> bytes:
        """The content of a regular member, all of it."""
        with self._damage_told():
            file = self._tar.extractfile(member)
            assert file is not None  # as it is regular
            content = file.read()
            if len(content) != member.size:
                raise EOFError(f"{len(content):,} of {member.size:,} bytes of {member.name!r} are there")
            return content

    def _check_end(self) -> None:
        """Read to the very end, for the checksums there; a second archive after the first would be lost silently."""
        rest: IO[bytes] = self._tar.fileobj  # type: ignore[assignment]
        another: bool | None = None
        while content := rest.read(_BUFFER_NBYTES):
            another = _begins_archive(content) if another is None else another
        if another:
            raise ValueError("another archive follows its end; they are joined by tar --concatenate, not by cat")

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except (*_DAMAGE, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk or the network, not the content
                raise
            raise Damaged(f"the archive is damaged or no tar archive ({error})") from None


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The archive itself, told by its first bytes whatever its name."""
    begin = file.read(6)
    file.seek(0)
    for mark, compression in _PACKED.items():
        if begin.startswith(mark):
            with OPENERS[compression](file) as unpacked:
                yield unpacked
            return
    yield file


def _begins_archive(content: bytes) -> bool | None:
    """Whether the first block that is not empty is the header of a member; None if all are empty."""
    for start in range(0, len(content), _BLOCK_NBYTES):
        block = content[start : start + _BLOCK_NBYTES]
        if any(block):
            try:
                tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError:
                return False
            return True
    return None
