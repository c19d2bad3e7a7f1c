"""Folders with one file for each document, and one folder for each class.

Which files are documents, `listing` says; the label of one is the name of the folder it lies in. The folders are listed
once, by whoever opens them, in the order of the names, and one warning says how much was left out. A piece is a packed
list of files.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, TypeAlias

from nfs_dask.documents.checking import Builder
from nfs_dask.documents.decoding import check_encoding, to_utf8
from nfs_dask.documents.document_source import PIECE_NBYTES, Batch, ListedPieces, TextColumns
from nfs_dask.documents.listing import DOCUMENT_NBYTES, FOLDER, LeftOut, documents_in, label_of, printable, too_large
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.files.ahead import ahead
from nfs_dask.files.remote import file_system_of, is_url, read_object

PIECE_FILES = 2_000
READ_FILES = 64  # remote ones asked for at once, of the few MB of a piece
RUNS_IN_FLIGHT = 2  # of such: one is counted while the next one comes
TABLES = (".parquet", ".pq", ".csv", ".tsv", ".xlsx", ".xlsm", ".jsonl", ".ndjson")

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

    in_memory = False
    weighted = False
    delayed: Sequence[Any] | None = None
    import_nbytes = 0

    def __init__(self, folders: Sequence[str], columns: TextColumns) -> None:
        check_encoding(columns.encoding)
        folders = [folder.rstrip("/") for folder in folders]
        _check_apart(folders)
        self.columns = columns
        self.labelled = len(folders) > 1
        left_out = LeftOut()
        digest = hashlib.blake2b(json.dumps(columns.to_json()).encode(), digest_size=16)
        nbytes = 0
        pieces = []
        for run in _runs(self._listed(folders, left_out, digest), PIECE_FILES, PIECE_NBYTES):
            nbytes += sum(size for _, size in run)
            pieces.append(zlib.compress(json.dumps(run).encode()))
        self.pieces = pieces
        self.nbytes: int | None = nbytes
        self.fingerprint: str | None = digest.hexdigest()
        where = ", ".join(map(printable, folders))
        if not pieces:
            found = str(left_out)
            raise InputError(
                f"{where} holds no documents, which are files in folders" + (f"; {found}" if found else "")
            )
        if str(left_out):
            warn(f"not taken for documents in {where}: {left_out}", DataWarning)

    def _listed(self, folders: Sequence[str], left_out: LeftOut, digest: Any) -> Iterator[File]:
        for folder in folders:
            directly, documents = documents_in(folder, left_out)
            self.labelled = self.labelled or not directly
            for number, entry in enumerate(documents):
                if number == 0 and entry.path.lower().endswith(TABLES):
                    raise InputError(_of_tables(folder, entry.path))
                digest.update(json.dumps([entry.path, entry.nbytes, entry.version]).encode())
                yield entry.path, entry.nbytes

    def batches(self, piece: int) -> Iterator[Batch]:
        """The documents of a run of files."""
        builder = Builder(replace(self.columns, label=FOLDER if self.labelled else None), printable)
        for path, content in _read(json.loads(zlib.decompress(self.pieces[piece]))):
            if isinstance(content, str):
                builder.bad(path, "broken", content)
            else:
                builder.add(path, [to_utf8(content, self.columns.encoding)], label_of(path))
            if builder.full:
                yield builder.take()
        yield from builder.rest()


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
            if _is_whole(content, wanted[path])
        }
        return [(path, came[path] if path in came else _one(fs, path, nbytes)) for path, nbytes in files]


def _is_whole(content: Any, nbytes: int) -> bool:
    return not isinstance(content, BaseException) and len(content) == nbytes


def _one(fs: Any, path: str, nbytes: int) -> bytes | str:
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


def _of_tables(folder: str, path: str) -> str:
    suffix = os.path.splitext(path)[1]
    return (
        f"{printable(path)} is a table, while files in a folder are one document each; name them by a pattern, "
        f"such as {printable(folder)}/*{suffix}"
    )


def _check_apart(folders: Sequence[str]) -> None:
    """Refuse folders inside others."""
    for outer, inner in pairwise(sorted(folders, key=lambda folder: folder.split("/"))):
        if f"{inner}/".startswith(f"{outer}/"):
            raise InputError(
                f"{printable(inner)} is in {printable(outer)}, which was given too, so its documents would count "
                "twice; give one of them"
            )
