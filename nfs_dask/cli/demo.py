"""``nfs-dask demo``: the whole way on a generated corpus, with nothing to set up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, printable, say, table
from nfs_dask.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.block import Array
    from nfs_dask.dataset import Dataset


@click.command()
@click.option("--documents", type=click.IntRange(1), default=20_000, show_default=True, help="How many to generate.")
@click.option("--features", type=click.IntRange(100), default=5_000, show_default=True, help="Words of the vocabulary.")
@click.option("--words", type=click.IntRange(1), default=20, show_default=True, help="How many words to show.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another corpus.")
@click.option("--keep", metavar="DIR", help="Leave the dataset in this new folder, to try other commands on.")
@cluster_options
@json_option
def demo(documents: int, features: int, words: int, seed: int, keep: str | None, cluster: ClusterOptions) -> None:
    """See it work, in seconds and with nothing to set up.

    Documents of two classes are generated, with ten words planted in each; they are written to a dataset, and counted.
    The words whose counts differ most between the classes are shown: they should be the planted ones.

    \b
    nfs-dask demo
    nfs-dask demo --documents 200000 --workers 2 --memory-limit 1GiB
    nfs-dask demo --keep /tmp/corpus && nfs-dask info /tmp/corpus/demo.zarr
    """
    if cluster.scheduler is not None and keep is None:
        raise click.UsageError("workers elsewhere do not reach a temporary folder; name one they do with --keep DIR")
    from nfs_dask.corpus import GeneratedCorpus
    from nfs_dask.dataset import ingest

    corpus = GeneratedCorpus(documents, features, seed=seed)
    with _folder(keep) as folder, cluster.engine(corpus) as engine:
        say(f"generating {documents:,} documents over {features:,} words")
        started = time.perf_counter()
        dataset = ingest(corpus, folder / "demo.zarr", engine=engine)
        written = time.perf_counter() - started
        reduction = dataset.reduce(dataset.class_counts(), engine)
        rows = _contrasts(dataset, reduction.state.arrays, words)
        values = {
            "store": dataset.location if keep else None,
            "documents": dataset.n_rows,
            "features": dataset.n_features,
            "entries": dataset.nnz,
            "classes": corpus.classes,
            "planted": [corpus.planted_words(c) for c in range(corpus.n_classes)],
            "words": rows,
            "seconds": {"write": written, "count": reduction.seconds},
        }
    answer(values, lambda console: _show(values, console))


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """The folder to work in, which is deleted afterwards unless it is to be kept."""
    if keep is not None:
        keeps(f"what was written so far is in {keep}")
        yield Path(keep)
        return
    keeps("the temporary folder was deleted")
    with tempfile.TemporaryDirectory(prefix="nfs-dask-demo-") as folder:
        yield Path(folder)


def _contrasts(dataset: Dataset, arrays: dict[str, Array], n: int) -> list[dict[str, Any]]:
    """The ``n`` words whose counts differ most between classes, as measured by how much chance would let them differ.

    Ties go to the lower column.
    """
    import numpy as np

    from nfs_dask.statistics.counts import sums

    counts = sums(arrays)
    expected = counts.sum(axis=1, keepdims=True) * (counts.sum(axis=0) / counts.sum())
    excess = (counts - expected).max(axis=0) / np.sqrt(np.maximum(counts.sum(axis=0), 1))
    columns = np.argsort(-excess, kind="stable")[:n]
    names = dataset.names(columns) or [str(column) for column in columns]
    return [{"word": name, "counts": counts[:, column].tolist()} for name, column in zip(names, columns, strict=True)]


def _show(values: dict[str, Any], console: Console) -> None:
    topics = zip(values["classes"], values["planted"], strict=True)
    planted = {word: str(label) for label, words in topics for word in words}
    columns = ["word", *(f"in {label}" for label in values["classes"]), "planted in"]
    rows = [[row["word"], *row["counts"], planted.get(row["word"], "-")] for row in values["words"]]
    console.print(table("Words whose counts differ most between the classes", columns, rows))
    found = sum(row["word"] in planted for row in values["words"])
    console.print(f"{found} of these {len(rows)} words are among the {len(planted)} planted ones.")
    seconds = values["seconds"]
    console.print(
        f"{values['documents']:,} documents, {values['entries']:,} entries: "
        f"generated and written in {format_seconds(seconds['write'])}, counted in {format_seconds(seconds['count'])}."
    )
    if values["store"]:
        console.print(printable(f"The dataset is in {values['store']}"))
