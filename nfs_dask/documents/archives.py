"""Documents straight from tar archives, plain or compressed, and from zip. Nothing is ever extracted to a disk.

An archive is one piece, read from its beginning to its end, and its documents come in its order. A folder inside is
named as if the archive were one: ``aclImdb_v1.tar.gz/aclImdb/train``. As in `folders`, every file below is a document,
labelled by the name of the folder it lies in (at the top of an archive: by the name of the archive).

Files directly in the folder that is meant are documents or are not: that is decided before anything is read, by the
first ``LOOK_FILES`` files of the folder. If all of them lie directly in it, those are documents; if one lies deeper,
they are lists and a README. So an archive is unpacked once more by whoever opens it, but only up to there.

Members whose names are absolute or hold ``..`` are bad input. Links, devices and hidden files are no documents.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

from nfs_dask.documents.archive_members import ZIP, BadMember, Damaged, Member, is_zip, members
from nfs_dask.documents.checking import Builder, failure
from nfs_dask.documents.decoding import check_encoding, to_utf8
from nfs_dask.documents.document_source import Batch, ListedPieces, TextColumns
from nfs_dask.documents.folders import DOCUMENT_NBYTES, FOLDER, TABLES, check_apart, printable, too_large
from nfs_dask.documents.parameters import OnError
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import fingerprint, size_of
from nfs_dask.files.remote import split_query

logger = logging.getLogger("nfs_dask")

SUFFIXES = (ZIP, ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
LOOK_FILES = 1_000
FOLDERS_NAMED = 10

Path: TypeAlias = tuple[str, ...]  # of a member, or of a folder, inside its archive


def inside(name: str) -> Path | None:
    """Where in the archive a member is; None if its name leads out of it.

    >>> inside("./train/pos/1.txt"), inside("/etc/passwd"), inside("a/../../b")
    (('train', 'pos', '1.txt'), None, None)
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    return None if name.startswith("/") or ".." in parts else parts


def split_archive(path: str) -> tuple[str, Path] | None:
    """The archive and the folder inside that a path or URL means; None if no part of it is named as an archive.

    The query of a URL is the archive's.

    >>> split_archive("data/mail.tar.gz/train/"), split_archive("data/train")
    (('data/mail.tar.gz', ('train',)), None)
    >>> split_archive("https://host/mail.zip/train?sig=abc")
    ('https://host/mail.zip?sig=abc', ('train',))
    """
    name, query = split_query(path)
    parts = name.split("/")
    for end, part in enumerate(parts, 1):
        archive = "/".join(parts[:end])
        if part.lower().endswith(SUFFIXES) and not os.path.isdir(archive):
            return archive + query, tuple(part for part in parts[end:] if part not in ("", "."))
    return None


def in_archive(archive: str, folder: Path) -> str:
    """The path or URL of a folder inside an archive, as `split_archive` takes it apart."""
    name, query = split_query(archive)
    return "/".join((name, *folder)) + query


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A folder inside an archive, or at the top the archive itself."""

    folder: Path
    own: bool  # whether documents lie directly in it

    def holds(self, member: Path) -> bool:
        return len(member) > len(self.folder) and member[: len(self.folder)] == self.folder

    def has_document(self, member: Path) -> bool:
        return self.holds(member) and (self.own or len(member) > len(self.folder) + 1)


class ArchiveDocuments(ListedPieces):
    """Documents of archives, one piece for each.

    Parameters
    ----------
    places : sequence of (archive, folder inside)
        An archive may be named several times, with different folders inside.
    columns : TextColumns
        Its encoding and what to do about bad documents.
    """

    def __init__(self, places: Sequence[tuple[str, Path]], columns: TextColumns) -> None:
        check_encoding(columns.encoding)
        check_apart(["/".join((split_query(archive)[0], *folder)) for archive, folder in places])
        folders: dict[str, list[Path]] = {}
        for archive, folder in places:
            folders.setdefault(archive, []).append(folder)
        self.columns = columns
        self.nbytes = sum(size_of(archive) for archive in folders)
        self.fingerprint = fingerprint(folders, list(folders.values()), columns.to_json())
        self.pieces = [(archive, look(archive, wanted, columns.on_error)) for archive, wanted in folders.items()]
        parts = [part for _, found in self.pieces for part in found]
        self.labelled = len(parts) > 1 or not parts[0].own

    def batches(self, piece: int) -> Iterator[Batch]:
        """The documents of one archive, in its order."""
        archive, parts = self.pieces[piece]
        columns = replace(self.columns, label=FOLDER if self.labelled else None)
        builder = Builder(columns, lambda name: archive if name is None else f"{archive}: {printable(name)}")
        left_out: Counter[str] = Counter()
        try:
            with closing(members(archive)) as found:
                for member in found:
                    self._add(archive, member, parts, builder, left_out)
                    if builder.full:
                        yield builder.take()
        except Damaged as error:
            builder.bad(None, "broken", str(error))
        yield from builder.rest()
        if left_out:
            counts = ", ".join(f"{what} ({n:,})" for what, n in left_out.items())
            logger.warning("not taken for documents in %s: %s", archive, counts)

    def _add(
        self, archive: str, member: Member, parts: Sequence[ArchivePart], builder: Builder, left_out: Counter[str]
    ) -> None:
        """Add the document that a member is, if it is one."""
        if member.kind == "folder":
            return
        path = inside(member.name)
        if path is None:
            what = "a member whose name leads out of the archive; such names are never followed"
            builder.bad(member.name, "broken", what)
        elif is_hidden(path) or not any(part.holds(path) for part in parts):
            return
        elif member.kind == "other":
            left_out["links or devices"] += 1
        elif not any(part.has_document(path) for part in parts):
            left_out["files beside folders of documents"] += 1
        elif member.size > DOCUMENT_NBYTES:
            builder.bad(member.name, "broken", too_large(member.size))
        else:
            try:
                text = to_utf8(member.read(), self.columns.encoding)
            except BadMember as error:
                builder.bad(member.name, "broken", str(error))
            else:
                builder.add(member.name, [text], printable((archive_name(archive), *path)[-2]))


def look(archive: str, folders: Sequence[Path], on_error: OnError) -> tuple[ArchivePart, ...]:
    """Which parts of an archive folders inside it are; reads on until the first files of each have told."""
    direct: Counter[Path] = Counter()
    deeper: set[Path] = set()
    seen: dict[str, None] = {}
    try:
        with closing(members(archive)) as found:
            for member in found:
                path = inside(member.name)
                if not path or member.kind != "file" or is_hidden(path):
                    continue
                if is_zip(archive) and path[-1].lower().endswith(TABLES):
                    raise InputError(
                        f"{archive} holds a table, {printable('/'.join(path))}, while files in an archive are one "
                        "document each; unpack it, and give the table"
                    )
                if len(seen) < FOLDERS_NAMED:
                    seen["/".join(path[:-1])] = None
                for folder in folders:
                    if ArchivePart(folder, False).has_document(path) and direct[folder] < LOOK_FILES:
                        deeper.add(folder)
                    elif ArchivePart(folder, True).has_document(path):
                        direct[folder] += 1
                if all(folder in deeper or direct[folder] >= LOOK_FILES for folder in folders):
                    break
    except Damaged as error:
        if on_error == "fail":
            raise failure(archive, str(error)) from None
    else:
        for folder in folders:
            if folder not in deeper and not direct[folder]:
                wanted = f" in a folder {printable('/'.join(folder))}" if folder else ""
                names = ", ".join(printable(name) or "its top" for name in seen)
                hint = f"; name a folder that has some, such as {names}" if names else ""
                raise InputError(f"{archive} has no files{wanted}{hint}")
    return tuple(ArchivePart(folder, folder not in deeper) for folder in folders)


def archive_name(archive: str) -> str:
    """The name of an archive without its ending."""
    name = split_query(archive)[0].rstrip("/").rsplit("/", 1)[-1]
    return next((name[: -len(end)] for end in SUFFIXES if name.lower().endswith(end)), name)


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path)
