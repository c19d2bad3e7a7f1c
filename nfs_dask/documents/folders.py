"""Folders with one file for each document, and one folder for each class.

Documents are all files below the folder, at any depth, but those directly in it only if there are none deeper: beside
folders of documents lie lists and a README. Left out is what is hidden (begins with a dot), no regular file, or reached
by a link that leaves the folder or leads to a folder. The label of a document is the name of the folder it lies in.

Folders are listed once, by whoever opens them, in the order of the names, and one warning says how much was left out.
A piece is a packed list of files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple, TypeAlias

from nfs_dask.documents.checking import Builder
from nfs_dask.documents.decoding import check_encoding, to_utf8
from nfs_dask.documents.document_source import PIECE_NBYTES, Batch, ListedPieces, TextColumns
from nfs_dask.errors import DataWarning, InputError, StoreError, warn
from nfs_dask.files.ahead import ahead
from nfs_dask.files.remote import file_system_of, is_url, read_object
from nfs_dask.units import MiB, format_bytes

DOCUMENT_NBYTES = 256 * MiB  # a file of more is no document
FOLDER = "folder"  # stands for the column of labels, where these are the names of folders
PIECE_FILES = 2_000
READ_FILES = 64  # remote ones asked for at once, of the few MB of a piece
RUNS_IN_FLIGHT = 2  # of such: one is counted while the next one comes
TABLES = (".parquet", ".pq", ".csv", ".tsv", ".xlsx", ".xlsm", ".jsonl", ".ndjson")

_VERSIONS = ("ETag", "etag", "LastModified", "mtime", "created")  # of a file, as file systems call them

File: TypeAlias = tuple[str, int]  # path or URL, and bytes


class FolderDocuments(ListedPieces):
    """Documents of folders; pieces are runs of files.

    Parameters
    ----------
    folders : sequence of str
        Absolute paths or URLs. Their documents come in this order.
    columns : TextColumns
        Its encoding and what to do about bad documents.
    """

    def __init__(self, folders: Sequence[str], columns: TextColumns) -> None:
        check_encoding(columns.encoding)
        folders = [folder.rstrip("/") for folder in folders]
        check_apart(folders)
        self.columns = columns
        self.labelled = len(folders) > 1
        left_out = LeftOut()
        digest = hashlib.blake2b(json.dumps(columns.to_json()).encode(), digest_size=16)
        nbytes, self.pieces = 0, list[bytes]()
        for run in _runs(self._listed(folders, left_out, digest), PIECE_FILES, PIECE_NBYTES):
            nbytes += sum(size for _, size in run)
            self.pieces.append(zlib.compress(json.dumps(run).encode()))
        self.nbytes = nbytes
        self.fingerprint = digest.hexdigest()
        where, found = ", ".join(map(printable, folders)), str(left_out)
        if not self.pieces:
            raise InputError(
                f"{where} holds no documents, which are files in folders" + (f"; {found}" if found else "")
            )
        if found:
            warn(f"not taken for documents in {where}: {found}", DataWarning)

    def _listed(self, folders: Sequence[str], left_out: LeftOut, digest: Any) -> Iterator[File]:
        for folder in folders:
            directly, documents = documents_in(folder, left_out)
            self.labelled = self.labelled or not directly
            for number, entry in enumerate(documents):
                if number == 0 and entry.path.lower().endswith(TABLES):
                    raise InputError(
                        f"{printable(entry.path)} is a table, while files in a folder are one document each; name them "
                        f"by a pattern, such as {printable(folder)}/*{os.path.splitext(entry.path)[1]}"
                    )
                digest.update(json.dumps([entry.path, entry.nbytes, entry.version]).encode())
                yield entry.path, entry.nbytes

    def batches(self, piece: int) -> Iterator[Batch]:
        """The documents of a run of files."""
        builder = Builder(replace(self.columns, label=FOLDER if self.labelled else None), printable)
        for path, content in _read(json.loads(zlib.decompress(self.pieces[piece]))):
            if isinstance(content, str):
                builder.bad(path, "broken", content)
            else:
                builder.add(path, [to_utf8(content, self.columns.encoding)], printable(path.rsplit("/", 2)[-2]))
            if builder.full:
                yield builder.take()
        yield from builder.rest()


def printable(name: str) -> str:
    """A name as it can be shown and stored; bytes of it that are no UTF-8 are spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def too_large(nbytes: int) -> str:
    return f"a document of {format_bytes(nbytes)}, where {format_bytes(DOCUMENT_NBYTES)} are allowed"


def check_apart(folders: Sequence[str]) -> None:
    """Refuse folders inside others."""
    for outer, inner in pairwise(sorted(folders, key=lambda folder: folder.split("/"))):
        if f"{inner}/".startswith(f"{outer}/"):
            raise InputError(
                f"{printable(inner)} is in {printable(outer)}, which was given too, so its documents would count "
                "twice; give one of them"
            )


# Listing


class Entry(NamedTuple):
    """What lies directly in a folder."""

    path: str
    kind: str  # "file", "folder", "link" (one not to be followed), or "other"
    nbytes: int = 0
    version: Any = None  # whatever tells this version of a file from another


@dataclass
class LeftOut:
    """What was found and is no document."""

    beside: list[str] = field(default_factory=list)  # files beside folders of documents, a few of them
    n_beside: int = 0
    n_links: int = 0
    n_others: int = 0

    def __str__(self) -> str:
        said = []
        if self.n_beside:
            names = ", ".join(printable(os.path.basename(path)) for path in self.beside)
            said.append(f"files beside folders of documents, such as {names} ({self.n_beside:,})")
        if self.n_links:
            said.append(f"links that leave the folder or lead to folders or to nothing ({self.n_links:,})")
        if self.n_others:
            said.append(f"what is neither a file nor a folder ({self.n_others:,})")
        return "; ".join(said)


def documents_in(folder: str, left_out: LeftOut) -> tuple[bool, Iterator[Entry]]:
    """Whether the documents of a folder lie directly in it, and the documents."""
    entries = _entries(folder, folder, left_out)
    own = [entry for entry in entries if entry.kind == "file"]
    deeper = _below([entry for entry in entries if entry.kind == "folder"], folder, left_out)
    first = next(deeper, None)
    if first is None:
        return True, iter(own)
    left_out.n_beside += len(own)
    left_out.beside = [*left_out.beside, *(entry.path for entry in own)][:3]
    return False, chain([first], deeper)


def _below(folders: list[Entry], root: str, left_out: LeftOut) -> Iterator[Entry]:
    """All files at any depth, holding the entries of no more folders than lie inside one another."""
    waiting = [iter(folders)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.kind == "folder":
            waiting.append(iter(_entries(entry.path, root, left_out)))
        else:
            yield entry


def _entries(folder: str, root: str, left_out: LeftOut) -> list[Entry]:
    """Files and folders directly in a folder, by name."""
    found = list(_remote(folder) if is_url(folder) else _local(folder, root))
    left_out.n_links += sum(entry.kind == "link" for entry in found)
    left_out.n_others += sum(entry.kind == "other" for entry in found)
    return sorted((entry for entry in found if entry.kind in ("file", "folder")), key=lambda entry: entry.path)


def _local(folder: str, root: str) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield Entry(entry.path, "folder")
                elif entry.is_symlink() and not _leads_to_file_in(root, entry.path):
                    yield Entry(entry.path, "link")
                else:
                    status = entry.stat()
                    kind = "file" if stat.S_ISREG(status.st_mode) else "other"
                    yield Entry(entry.path, kind, status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        raise StoreError(f"{printable(folder)} is missing; it was there a moment ago") from None


def _leads_to_file_in(root: str, link: str) -> bool:
    target = os.path.realpath(link)
    return os.path.isfile(target) and target.startswith(os.path.realpath(root).rstrip("/") + "/")


def _remote(folder: str) -> Iterator[Entry]:
    with file_system_of(folder) as (fs, inside):
        found = fs.ls(inside, detail=True)
    for info in found:
        name = info["name"].rstrip("/")
        base = name.rsplit("/", 1)[-1]
        if base.startswith(".") or name == inside.rstrip("/"):  # an object can stand for the folder itself
            continue
        path = f"{folder.rstrip('/')}/{base}"
        if info["type"] == "directory":
            yield Entry(path, "folder")
        else:
            kind = "link" if info.get("islink") else "file" if info["type"] == "file" else "other"
            version = [str(info[key]) for key in _VERSIONS if info.get(key)]
            yield Entry(path, kind, int(info["size"] or 0), version)


# Reading


def _runs(files: Iterable[File], most_files: int, most_nbytes: int) -> Iterator[list[File]]:
    run: list[File] = []
    nbytes = 0
    for file in files:
        if run and (len(run) == most_files or nbytes + file[1] > most_nbytes):
            yield run
            run, nbytes = [], 0
        run.append(file)
        nbytes += file[1]
    if run:
        yield run


def _read(files: Iterable[File]) -> Iterator[tuple[str, bytes | str]]:
    """The content of each file, or what is wrong with it."""
    for protocol, group in groupby(files, lambda file: file[0].partition("://")[0] if is_url(file[0]) else None):
        if protocol is None:
            yield from ((path, _read_local(path)) for path, _ in group)
        else:
            for run in ahead(_read_remote, _runs(group, READ_FILES, PIECE_NBYTES), RUNS_IN_FLIGHT):
                yield from run


def _read_local(path: str) -> bytes | str:
    try:
        with open(path, "rb") as file:
            nbytes = os.fstat(file.fileno()).st_size
            return file.read() if nbytes <= DOCUMENT_NBYTES else too_large(nbytes)
    except OSError as error:
        return _unreadable(error)


def _read_remote(files: Sequence[File]) -> list[tuple[str, bytes | str]]:
    """Some files at once, as each of them takes long to arrive and little to read.

    They are asked for as ranges, a byte longer than listed: libraries look how large an object is before they read all
    of it, which is as long a way again. What does not come, or not in the listed size, is read whole.
    """
    wanted = {path: nbytes for path, nbytes in files if 0 < nbytes <= DOCUMENT_NBYTES}
    with file_system_of(files[0][0]) as (fs, _):
        ends = [nbytes + 1 for nbytes in wanted.values()]
        found = fs.cat_ranges(list(wanted), [0] * len(ends), ends, on_error="return") if wanted else ()
        came = {
            path: bytes(content)
            for path, content in zip(wanted, found, strict=True)
            if not isinstance(content, BaseException) and len(content) == wanted[path]
        }
        return [(path, came[path] if path in came else _read_one(fs, path, nbytes)) for path, nbytes in files]


def _read_one(fs: Any, path: str, nbytes: int) -> bytes | str:
    if nbytes > DOCUMENT_NBYTES:
        return too_large(nbytes)
    try:
        return read_object(fs, path, None, None)
    except (FileNotFoundError, PermissionError) as error:
        return _unreadable(error)


def _unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is gone since the folder was listed"
    return "the file may not be read" if isinstance(error, PermissionError) else f"the file fails: {error.strerror}"
