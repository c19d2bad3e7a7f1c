"""Places that commands write to: looked at before any work, replaced where that is asked for, whole or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from nfs_dask.errors import StoreError


def overwrite_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--overwrite``."""
    return click.option("--overwrite", is_flag=True, help="Replace what is there already.")(command)


def check_output_file(place: str | None, overwrite: bool, *endings: str) -> None:
    """Refuse a file of another ending, or that is there or cannot be written; devices and pipes have no ending."""
    if place is None or _is_device(place):
        return
    from nfs_dask.files.folder import check_writable, parent_of

    folder, name = parent_of(place)
    if not folder.remote and Path(folder.path(name)).is_dir():
        raise StoreError(f"{place} is a folder; name a file in it")
    if not ends_in(place, *endings):
        raise click.UsageError(
            f"{place!r} says by its ending what to write; give one that ends in {' or '.join(endings)}"
        )
    if folder.exists(name) and not overwrite:
        raise StoreError(f"{place} exists; name another file, or replace it with --overwrite")
    check_writable(folder)


def ends_in(place: str, *endings: str) -> bool:
    """Whether the name of a file, without the query of a URL, has one of these endings."""
    from nfs_dask.files.remote import split_query

    return split_query(place)[0].lower().endswith(endings)


def check_model(place: str, overwrite: bool) -> None:
    """Refuse a place for a model where one is, or anything else, or that cannot be written."""
    from nfs_dask.files.folder import Folder, check_writable, parent_of
    from nfs_dask.store.model_files import check_place, is_model

    check_place(place)
    if is_model(place) and not overwrite:
        raise StoreError(f"{place} holds a model; name another place, or replace it with --overwrite")
    check_writable(Folder.of(place) if is_model(place) else parent_of(place)[0])


@contextmanager
def output_file(place: str) -> Iterator[IO[bytes]]:
    """A file that appears when it is whole. What is no file, such as a device or a pipe, is written to as it is."""
    if _is_device(place):
        with open(place, "wb") as file:
            yield file
        return
    from nfs_dask.files.folder import parent_of

    folder, name = parent_of(place)
    with folder.create(name) as file:
        yield file


def _is_device(place: str) -> bool:
    """Whether something is there that is neither a file nor a folder."""
    path = Path(place)
    return path.exists() and not path.is_file() and not path.is_dir()
