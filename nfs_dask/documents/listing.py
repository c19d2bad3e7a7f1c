"""Which files of a folder are documents.

Every file below the folder, at any depth, but those directly in it only if there are none deeper: beside folders of
documents lie lists and a README. Nothing hidden (that begins with a dot), nothing that is no regular file, and nothing
reached by a link that leaves the folder or leads to a folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nfs_dask.errors import StoreError
from nfs_dask.files.remote import file_system_of, is_url
from nfs_dask.units import MiB, format_bytes

DOCUMENT_NBYTES = 256 * MiB  # a file of more is no document
FOLDER = "folder"  # stands for the column of labels, where these are the names of folders


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies directly in a folder."""

    path: str
    kind: str  # "file", "folder", "link" (one not to be followed), or "other"
    nbytes: int = 0
    version: Any = None  # whatever tells this version of a file from another


@dataclass
class LeftOut:
    """What was found and is no document."""

    beside: list[str] = field(default_factory=list)  # a few of the files beside folders of documents
    n_beside: int = 0
    n_links: int = 0
    n_others: int = 0

    def add_beside(self, paths: Sequence[str]) -> None:
        self.n_beside += len(paths)
        self.beside = [*self.beside, *paths][:3]

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


def printable(name: str) -> str:
    """A name as it can be shown and stored; bytes of it that are no UTF-8 are spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def label_of(path: str) -> str:
    """The name of the folder that a file lies in."""
    return printable(path.rsplit("/", 2)[-2])


def documents_in(folder: str, left_out: LeftOut) -> tuple[bool, Iterator[Entry]]:
    """Whether the documents of a folder lie directly in it, and the documents."""
    entries = list(listed(folder, folder, left_out))
    own = [entry for entry in entries if entry.kind == "file"]
    deeper = _below([entry for entry in entries if entry.kind == "folder"], folder, left_out)
    first = next(deeper, None)
    if first is None:
        return True, iter(own)
    left_out.add_beside([entry.path for entry in own])
    return False, _after(first, deeper)


def _after(first: Entry, rest: Iterable[Entry]) -> Iterator[Entry]:
    yield first
    yield from rest


def _below(folders: list[Entry], root: str, left_out: LeftOut) -> Iterator[Entry]:
    """All files at any depth, holding the entries of no more folders than lie inside one another."""
    waiting = [iter(folders)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.kind == "folder":
            waiting.append(listed(entry.path, root, left_out))
        else:
            yield entry


def listed(folder: str, root: str, left_out: LeftOut) -> Iterator[Entry]:
    """Files and folders directly in a folder, by name."""
    found = []
    for entry in _remote(folder) if is_url(folder) else _local(folder, root):
        left_out.n_links += entry.kind == "link"
        left_out.n_others += entry.kind == "other"
        if entry.kind in ("file", "folder"):
            found.append(entry)
    return iter(sorted(found, key=lambda entry: entry.path))


def _local(folder: str, root: str) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    yield _local_entry(entry, root)
    except FileNotFoundError:
        raise StoreError(f"{printable(folder)} is missing; it was there a moment ago") from None


def _local_entry(entry: os.DirEntry[str], root: str) -> Entry:
    if entry.is_dir(follow_symlinks=False):
        return Entry(entry.path, "folder")
    if entry.is_symlink() and not _leads_to_file_in(root, entry.path):
        return Entry(entry.path, "link")
    status = entry.stat()
    kind = "file" if stat.S_ISREG(status.st_mode) else "other"
    return Entry(entry.path, kind, status.st_size, status.st_mtime_ns)


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
            version = [str(info[key]) for key in ("ETag", "etag", "LastModified", "mtime", "created") if info.get(key)]
            yield Entry(path, kind, int(info["size"] or 0), version)


def too_large(nbytes: int) -> str:
    return f"a document of {format_bytes(nbytes)}, where {format_bytes(DOCUMENT_NBYTES)} are allowed"
