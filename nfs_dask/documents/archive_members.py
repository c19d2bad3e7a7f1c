"""Members of tar and zip archives one after another, with every damage noticed and no size believed.

`tarfile` alone takes a cut or garbled header for the end of an archive, keeps every header it has read, believes any
size, and ignores the checksums of compressed streams. A zip archive lists its members at its end; the list is read as a
whole, so its size is bounded. Members that share bytes, by which a small archive may become any number of bytes, are
refused: together they take no more than the archive has.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

from nfs_dask.documents.lines import OPENERS
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary, size_of
from nfs_dask.files.remote import split_query
from nfs_dask.units import MiB, format_bytes

ZIP = ".zip"
HEADER_NBYTES = 1 * MiB  # of what stands before a member of tar: long names and extended headers
DIRECTORY_NBYTES = 32 * MiB  # of the list of members of zip: of some three hundred thousand
ENCRYPTED = 0x1
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
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError, OSError),
    *(ValueError, LookupError, OverflowError, struct.error),  # which libraries let through from headers of nonsense
)


class Damaged(Exception):
    """An archive cannot be read to its end."""


class BadMember(Exception):
    """A member cannot be read, and others can."""


class Member(NamedTuple):
    """A member, to be read before the next one is asked for."""

    name: str
    kind: str  # "file", "folder" or "other"
    size: int
    read: Callable[[], bytes]  # all of its content


def is_zip(archive: str) -> bool:
    return split_query(archive)[0].lower().endswith(ZIP)


def members(archive: str) -> Generator[Member, None, None]:
    """The members in their order; what is wrong with an archive is `Damaged`. To be closed when left early."""
    return _zip_members(archive) if is_zip(archive) else _tar_members(archive)


@contextmanager
def _damage_told(kind: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk or the network, not the content
            raise
        raise Damaged(f"the archive is damaged or no {kind} archive ({error})") from None


# tar


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


def _tar_members(path: str) -> Generator[Member, None, None]:
    with ExitStack() as stack:
        with _damage_told("tar"):
            file = stack.enter_context(open_binary(path))
            begin = file.read(6)
            file.seek(0)
            # By its first bytes, whatever its name. tarfile would unpack it too, but check no checksum, and stop after
            # the first of joined streams.
            packed = next((OPENERS[suffix] for mark, suffix in _PACKED.items() if begin.startswith(mark)), None)
            stream = stack.enter_context(packed(file)) if packed else file
            tar: Any = stack.enter_context(
                tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER_NBYTES, tarinfo=_Header, encoding="utf-8")
            )
        while True:
            with _damage_told("tar"):
                info = tar.next()
                if info is None:
                    _check_end(tar.fileobj)
                    return
                tar.members.clear()  # tarfile would keep every one
            kind = "folder" if info.isdir() else "file" if info.isreg() else "other"
            yield Member(info.name, kind, info.size, partial(_read_tar, tar, info))


def _read_tar(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    with _damage_told("tar"):
        file = tar.extractfile(info)
        assert file is not None  # as it is regular
        content = file.read()
        if len(content) != info.size:
            raise EOFError(f"{len(content):,} of {info.size:,} bytes of {info.name!r} are there")
        return content


def _check_end(rest: IO[bytes]) -> None:
    """Read to the very end, for the checksums there; a second archive after the first would be lost silently."""
    first: bytes | None = None  # block that is not empty
    while content := rest.read(_BUFFER_NBYTES):
        blocks = (content[start : start + _BLOCK_NBYTES] for start in range(0, len(content), _BLOCK_NBYTES))
        first = first or next(filter(any, blocks), None)
    if first is None:
        return
    try:
        tarfile.TarInfo.frombuf(first, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return
    raise ValueError("another archive follows its end; they are joined by tar --concatenate, not by cat")


# zip


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


def _zip_members(path: str) -> Generator[Member, None, None]:
    with ExitStack() as stack:
        with _damage_told("zip"):
            bounded: Any = BoundedFile(stack.enter_context(open_binary(path)))
            archive = stack.enter_context(zipfile.ZipFile(bounded))
            infos = archive.infolist()
            if sum(info.compress_size for info in infos) > size_of(path):
                raise ValueError("members overlap: together they are larger than the archive")
            if any(info.header_offset < 0 for info in infos):
                raise ValueError("a member begins before the archive")
        for info in infos:
            mode = info.external_attr >> 16 if info.create_system == 3 else 0  # of Unix, which knows links
            plain = stat.S_IFMT(mode) in (0, stat.S_IFREG)
            kind = "folder" if info.is_dir() else "file" if plain else "other"
            yield Member(info.filename, kind, info.file_size, partial(_read_zip, archive, info))


def _read_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & ENCRYPTED:
        raise BadMember("it is encrypted; unpack the archive with its password, and give the folder")
    try:
        with archive.open(info) as file:
            content = file.read(info.file_size + 1)
    except NotImplementedError as error:
        raise BadMember(f"it is packed in a way that is not known here ({error}); pack it by deflate") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, LookupError, OverflowError, RuntimeError) as error:
        raise BadMember(f"it is damaged ({error})") from None
    if len(content) != info.file_size:
        raise BadMember(f"{len(content):,} of {info.file_size:,} bytes are there")
    return content
