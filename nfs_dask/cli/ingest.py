"""``nfs-dask ingest``: files into a store."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, printable
from nfs_dask.errors import InputError
from nfs_dask.units import format_seconds

if TYPE_CHECKING:
    from nfs_dask.block import Array


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("store")
@click.option("--label-column", metavar="NAME", help="The column of the source that holds the labels.")
@click.option("--labels", type=click.Path(), metavar="FILE", help="One label for each row: .npy, or a line each.")
@click.option("--weights", type=click.Path(), metavar="FILE", help="One weight for each row: .npy, or a line each.")
@click.option("--names", type=click.Path(), metavar="FILE", help="One name for each feature, a line each.")
@click.option("--append", is_flag=True, help="Add the rows to a store that is there.")
@click.option("--clean-up", is_flag=True, help="First remove what an ingest that died left at STORE.")
@cluster_options
@json_option
def ingest(
    sources: tuple[str, ...],
    store: str,
    label_column: str | None,
    labels: str | None,
    weights: str | None,
    names: str | None,
    append: bool,
    clean_up: bool,
    cluster: ClusterOptions,
) -> None:
    """Write matrices from files into STORE, from which every pass reads fastest.

    A SOURCE is a .npz, .svmlight or .h5ad file, an AnnData Zarr or another store; a path, a URL or a pattern. The store
    becomes visible when it is complete.

    \b
    nfs-dask ingest matrix.npz --labels labels.npy mail.zarr
    nfs-dask ingest 'parts/*.svmlight' s3://bucket/mail.zarr --workers 4
    nfs-dask ingest cells.h5ad --label-column cell_type cells.zarr
    """
    if label_column is not None and labels is not None:
        raise click.UsageError("--labels and --label-column both say what the labels are; give one of them")
    from nfs_dask.dataset import ingest
    from nfs_dask.sources.open import open_source
    from nfs_dask.storage import places

    if clean_up:
        places.clean_up(store)
    keeps(f"{store} is as it was before")
    started = time.perf_counter()
    source = open_source(
        sources[0] if len(sources) == 1 else [_Location(source) for source in sources],
        labels=label_column if labels is None else _column(labels),
        sample_weight=None if weights is None else _column(weights),
    )
    with cluster.engine(source) as engine:
        dataset = ingest(source, store, names=None if names is None else _lines(names), append=append, engine=engine)
    seconds = time.perf_counter() - started
    values: dict[str, Any] = {
        "store": dataset.location,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "entries": dataset.nnz,
        "classes": dataset.classes,
        "kind": dataset.kind,
        "fingerprint": dataset.fingerprint,
        "seconds": seconds,
    }
    answer(values, lambda console: console.print(printable(f"{dataset!r}, written in {format_seconds(seconds)}")))


@dataclass(frozen=True)
class _Location(os.PathLike[str]):
    """A path or URL as it was written; `pathlib` would take a slash from a URL."""

    text: str

    def __fspath__(self) -> str:
        return self.text


def _column(file: str) -> Array:
    """One value for each row: numbers where all are, else texts."""
    import numpy as np

    if file.endswith(".npy"):
        try:
            column: Array = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise InputError(
                f"{file}: {error}; save plain numbers or texts, as in numpy.save(file, labels.astype(str))"
            ) from error
        return column
    lines = _lines(file)
    for kind in (np.int64, np.float64):
        try:
            return np.array(lines, kind)
        except (ValueError, OverflowError):
            continue
    return np.array(lines)


def _lines(file: str) -> Sequence[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text in UTF-8 ({error.reason}); write one value for each line") from error
