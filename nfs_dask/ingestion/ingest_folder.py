"""Where an ingest of documents keeps what it has finished, so that another one can go on from there.

    ingest.json            what is being ingested, and how
    piece-00000012.json    the segments of a piece that has been counted
    *                      segments, and ranges of merged names

Documents that can be recognised again are kept at a place that follows from the store's; others in a temporary folder.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nfs_dask._version import __version__
from nfs_dask.errors import ResumeError, StoreError
from nfs_dask.files.claims import Claim, held
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import MOST_JSON, sealed, unsealed
from nfs_dask.store.publish import ingest_folder

logger = logging.getLogger("nfs_dask")

IDENTITY = "ingest.json"


@contextmanager
def open_run_directory(store: Folder, identity: dict[str, Any], *, resumable: bool) -> Iterator[Folder]:
    """The folder of one ingest. It is removed at the end, unless something went wrong that another try can mend."""
    folder = ingest_folder(store)
    if not resumable:
        folder = Folder(f"{folder.location}-{uuid.uuid4().hex[:12]}")
    with held(folder, store.location) as claim:
        if resumable:
            _enter(folder, identity, store)
        with _tidied(folder, claim, resumable):
            yield folder


@contextmanager
def _tidied(folder: Folder, claim: Claim, resumable: bool) -> Iterator[None]:
    try:
        yield
    except BaseException:
        claim.release()
        if resumable and len(folder.names()) > 1:
            logger.warning(
                "what was finished is kept in %s; the same ingest goes on from there, and "
                "nfs_dask.store.publish.clean_up removes it",
                folder.location,
            )
        else:
            folder.remove()
        raise
    claim.release()
    folder.remove()


def _enter(folder: Folder, identity: dict[str, Any], store: Folder) -> None:
    """Begin, or make sure that what was begun there is the same."""
    # Another version may cut the documents into other pieces, or count otherwise.
    now = json.loads(json.dumps({"version of nfs-dask": __version__, **identity}))
    if not folder.exists(IDENTITY):
        folder.write(IDENTITY, sealed(now))
        return
    try:
        then = unsealed(folder.read(IDENTITY, 0, MOST_JSON))
        differing = [key for key in now if then.get(key) != now[key]]
    except (ValueError, AttributeError) as error:
        raise StoreError(f"{folder.path(IDENTITY)} is damaged ({error}); remove {folder.location}") from error
    if differing:
        raise ResumeError(
            f"an interrupted ingest into {store.location} was begun with other {', '.join(differing)}. Ingest what it "
            f"was begun with, or remove what it left, {folder.location}, with nfs_dask.store.publish.clean_up"
        )
    logger.info("going on with the ingest begun in %s", folder.location)
