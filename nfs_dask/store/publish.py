"""Where a store is written, who may write there, and when it becomes visible.

On a local disk a new store is built in a hidden folder beside its place and renamed; behind a URL the root metadata
is created last, and only if nobody else created it. Appending replaces objects one by one by what begins with the same
values, and the root metadata last. What an interrupted writer leaves is no part of a store. Writers claim where they
write (see `nfs_dask.files.claims`): the next one takes away what is left of one that is gone, `clean_up` of any.
"""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nfs_dask.errors import StoreError
from nfs_dask.files.claims import WRITING, Claim, forget, held, is_abandoned, seems_abandoned
from nfs_dask.files.folder import Folder, check_writable, parent_of, rename_folder
from nfs_dask.files.sealed import json_object
from nfs_dask.store.header import ROOT, Header, find_header
from nfs_dask.store.layout import OWN, other_editions

INGEST = ".ingest"  # ends the name of the hidden folder in which an ingest of documents keeps what it has finished
SCRATCH = "scratch-"


def ingest_folder(store: Folder) -> Folder:
    """The hidden folder beside a store in which an ingest of documents keeps what it has finished."""
    parent, _, name = store.location.rstrip("/").rpartition("/")
    return Folder(f"{parent}/.{name}{INGEST}")


def clean_up(location: str | os.PathLike[str]) -> None:
    """Remove what writers that died left at ``location``. Only call it when nothing is being written there.

    Writers whose process is known to be gone need no such help: the next one cleans up after them. A store with its
    root metadata stays, and loses claims and scratch files. Without root metadata there is no store: behind a URL
    everything below a writer's claim goes, on a local disk its hidden folders do. What an ingest of documents had
    finished goes too.
    """
    folder = Folder.of(location)
    ingest_folder(folder).remove()
    own = folder / OWN
    if folder.exists(ROOT):
        header = find_header(json_object(folder, ROOT), folder.location)
        if header is not None:
            remove_other_editions(folder, header)
        _remove_scratch(own)
        forget(own)
    elif folder.remote and own.exists(WRITING):  # nothing but a claim tells leftovers from other people's data
        folder.remove()
    for partial in _hidden(folder):
        partial.remove()


def _remove_scratch(own: Folder) -> None:
    for name in own.names():
        if name.startswith(SCRATCH):
            (own / name).remove()


def _hidden(folder: Folder) -> list[Folder]:
    """The hidden folders of writers beside a local place."""
    if folder.remote:
        return []
    place = Path(folder.location)
    endings = (".????????.partial", f"{INGEST}-????????????")
    return [Folder.of(path) for end in endings for path in place.parent.glob(f".{glob.escape(place.name)}{end}")]


def remove_other_editions(folder: Folder, header: Header) -> None:
    """Remove what arrays were before they were written anew in a wider type, and what a writer that died began."""
    for numbers in header.typed():
        array = folder / numbers.name
        for name in other_editions(numbers, array.names()):
            if name == "c":
                (array / name).remove()
            else:
                array.delete(name)


def check_new(folder: Folder, *, overwrite: bool = False) -> None:
    """Refuse a place where there is something, unless it is what a writer left whose process is gone.

    With ``overwrite`` a store of ours may be there, and nothing else.
    """
    if seems_abandoned(folder / OWN) and not folder.exists(ROOT):
        return
    if overwrite and is_store(folder):
        return
    if overwrite and folder.names():
        raise StoreError(
            f"{folder.location} is not a store of ours, which overwrite=True replaces; choose another place"
        )
    if folder.names() or (not folder.remote and os.path.exists(folder.location) and not os.path.isdir(folder.location)):
        raise StoreError(
            f"{folder.location} exists; choose another place, append=True to add rows to a store, overwrite=True to "
            "replace one, or remove it first (nfs_dask.store.publish.clean_up removes what an interrupted one left)"
        )


def check_place(folder: Folder, overwrite: bool = False) -> None:
    """Refuse a place for a new store where there is something, or where nothing can be written."""
    check_new(folder, overwrite=overwrite)
    check_writable(parent_of(folder.location)[0])


def is_store(folder: Folder) -> bool:
    """Whether a store of ours, of any version, lies there."""
    return folder.exists(ROOT) and find_header(json_object(folder, ROOT), folder.location) is not None


@dataclass(frozen=True)
class Building:
    """A store on its way."""

    folder: Folder  # where it is written
    place: Folder  # where it will be
    claim: Claim
    overwrite: bool = False  # whether a store that is there makes way

    def publish(self, root: bytes) -> None:
        """Make it visible."""
        taken = StoreError(
            f"{self.place.location} appeared while it was being written; another writer was faster, and its store "
            "stands"
        )
        self.claim.check()
        if self.folder.remote:
            if not self.folder.write_new(ROOT, root):
                raise taken
            return
        self.folder.write(ROOT, root)
        self.claim.release()  # a store has no claim in it
        with self._old_aside():
            try:
                rename_folder(self.folder, self.place)
            except OSError as error:
                if os.path.exists(self.place.location):
                    raise taken from None
                raise error

    @contextmanager
    def _old_aside(self) -> Iterator[None]:
        """Put the store that makes way under a hidden name, until the new one stands in its place."""
        if not (self.overwrite and is_store(self.place)):
            yield
            return
        aside = Folder(f"{self.folder.location.removesuffix('.partial')}.old.partial")
        rename_folder(self.place, aside)
        try:
            yield
        except BaseException:
            if not os.path.exists(self.place.location):
                rename_folder(aside, self.place)
            raise
        aside.remove()


@contextmanager
def new_store(folder: Folder, *, overwrite: bool = False) -> Iterator[Building]:
    """A folder to build a new store in. An error or an interruption removes what was begun.

    With ``overwrite`` it takes the place of a store that is there: on a local disk when it is complete; behind a URL,
    where nothing can be renamed, the old one goes first.
    """
    check_new(folder, overwrite=overwrite)
    if folder.remote:
        with claimed(folder) as claim:
            if overwrite:
                folder.delete(ROOT)
            _remove_all_but_claims(folder)
            try:
                yield Building(folder, folder, claim)
            except BaseException:
                if not folder.exists(ROOT):
                    folder.remove()
                raise
        return
    for left in _hidden(folder):
        if is_abandoned(left / OWN):
            left.remove()
    place = Path(folder.location)
    building = Folder.of(place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.partial"))
    try:
        with held(building / OWN, folder.location) as claim:
            yield Building(building, folder, claim, overwrite)
    finally:
        building.remove()  # gone already when it was renamed into place


def _remove_all_but_claims(folder: Folder) -> None:
    """What a writer left that is gone."""
    own = folder / OWN
    for inside in (folder, own):
        for name in inside.names():
            if not (inside == folder and name == OWN) and not (inside == own and name.startswith(WRITING)):
                (inside / name).remove()


@contextmanager
def claimed(folder: Folder) -> Iterator[Claim]:
    """Keep others from writing to the same place at the same time; what a writer left that is gone goes."""
    with held(folder / OWN, folder.location) as claim:
        if claim.taken_over:
            _remove_scratch(folder / OWN)
        yield claim


@contextmanager
def scratch_folder(folder: Folder) -> Iterator[str]:
    """A folder for files that tasks hand to each other."""
    scratch = folder / OWN / f"{SCRATCH}{uuid.uuid4().hex[:8]}"
    try:
        yield scratch.location
    finally:
        scratch.remove()
