"""``nfs-dask label``: labels for the rows of a store that has none."""

from __future__ import annotations

import click

from nfs_dask.cli.output import answer, json_option, keeps, show_line
from nfs_dask.cli.texts import column_of_file


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@json_option
def label(store: str, file: str) -> None:
    """Give each row of STORE, which has no labels, the one that FILE has for it: a .npy array, or a line each.

    Rows and values are not read again, and what was kept beside the data stays.

    \b
    nfs-dask label mail.zarr folders.txt
    nfs-dask label genes.zarr tissues.npy
    """
    keeps(f"{store} is as it was before")
    from nfs_dask.dataset import open_dataset
    from nfs_dask.errors import InputError
    from nfs_dask.sources.labels import encode
    from nfs_dask.store.writer import add_labels

    classes, codes = encode(column_of_file(file))
    if (codes < 0).any():
        raise InputError(f"{file} has no label for row {int((codes < 0).argmax())}; give one for each row")
    add_labels(store, classes, codes)
    dataset = open_dataset(store)
    values = {"store": dataset.location, "rows": dataset.n_rows, "classes": dataset.classes}
    answer(values, lambda console: show_line(f"{dataset!r}", console))
