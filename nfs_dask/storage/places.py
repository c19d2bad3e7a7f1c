"""Where a store is written, who may write there, and when it becomes visible.

On a local disk a new store is built in a hidden folder beside its place and renamed; behind a URL the root metadata
is created last, and only if nobody else created it. Appending replaces objects one by one by what begins with the same
values, and the root metadata last. What an interrupted writer leaves is no part of a store; `clean_up` takes it away.
"""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder
from nfs_dask.storage.header import ROOT
from nfs_dask.storage.layout import OWN

INGEST = ".ingest"  # ends the name of the hidden folder in which an ingest of documents keeps what it has finished
WRITING = "writing"  # the object by which a writer claims a store
SCRATCH = "scratch-"


def ingest_folder(store: Folder) -> Folder:
    """The hidden folder beside a store in which an ingest of documents keeps what it has finished."""
    parent, _, name = store.location.rstrip("/").rpartition("/")
    return Folder(f"{parent}/.{name}{INGEST}")


def clean_up(location: str | os.PathLike[str]) -> None:
    """Remove what writers that died left at ``location``. Only call it when nothing is being written there.

    A store with its root metadata stays, and loses the claim and scratch files of a dead writer. Without root metadata
    there is no store: behind a URL everything below a writer's claim goes, on a local disk its hidden folders do. What
    an ingest of documents had finished goes too.
    """
    folder = Folder.of(location)
    ingest_folder(folder).remove()
    own = folder / OWN
    if folder.exists(ROOT):
        for name in own.names():
            if name.startswith(SCRATCH):
                (own / name).remove()
        _release(folder)
    elif folder.remote and own.exists(
        WRITING
    ):  # nothing but a claim tells a writer's leftovers from other people's data
        folder.remove()
    if not folder.remote:
        place = Path(folder.location)
        for ending in (".????????.partial", f"{INGEST}-????????????"):
            for partial in place.parent.glob(f".{glob.escape(place.name)}{ending}"):
                Folder.of(partial).remove()


def check_new(folder: Folder) -> None:
    """Refuse a place where there is something."""
    if folder.names() or (not folder.remote and os.path.exists(folder.location) and not os.path.isdir(folder.location)):
        raise StoreError(
            f"{folder.location} exists; choose another place, append=True to add rows to a store, "
            "or remove it first (nfs-dask ingest --clean-up removes what an interrupted one left)"
        )


@contextmanager
def new_store(folder: Folder) -> Iterator[Folder]:
    """A folder to build a new store in. An error or an interruption removes what was begun."""
    check_new(folder)
    if folder.remote:
        with claimed(folder):
            try:
                yield folder
            except BaseException:
                if not folder.exists(ROOT):
                    folder.remove()
                raise
        return
    place = Path(folder.location)
    building = Folder.of(place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.partial"))
    try:
        yield building
    finally:
        building.remove()  # gone already when it was renamed into place


def publish(folder: Folder, building: Folder, root: bytes) -> None:
    taken = StoreError(
        f"{folder.location} appeared while it was being written; another writer was faster, and its store stands"
    )
    if folder.remote:
        if not folder.write_new(ROOT, root):
            raise taken
        return
    building.write(ROOT, root)
    try:
        os.rename(building.location, folder.location)
    except OSError as error:
        if os.path.exists(folder.location):
            raise taken from None
        raise error


@contextmanager
def claimed(folder: Folder) -> Iterator[None]:
    """Keep others from writing to the same place at the same time."""
    if not (folder / OWN).write_new(WRITING, b"{}"):
        raise StoreError(
            f"{folder.location} is being written by another process, or one died while it wrote; "
            "if none is running, add --clean-up to nfs-dask ingest, or call nfs_dask.storage.places.clean_up, and try "
            "again"
        )
    try:
        yield
    finally:
        _release(folder)


def _release(folder: Folder) -> None:
    (folder / OWN).delete(WRITING)


@contextmanager
def scratch_folder(folder: Folder) -> Iterator[str]:
    """A folder for files that tasks hand to each other."""
    scratch = folder / OWN / f"{SCRATCH}{uuid.uuid4().hex[:8]}"
    try:
        yield scratch.location
    finally:
        scratch.remove()
