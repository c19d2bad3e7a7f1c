"""``nfs-dask demo``: the whole way on a generated corpus, with nothing to set up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, say, show_line, table
from nfs_dask.cli.places import check_model, overwrite_option
from nfs_dask.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.engine import Engine
    from nfs_dask.models.model import Model


HELD_OUT = 4  # for so many documents that are fitted, one is generated to be predicted


@click.command()
@click.option("--documents", type=click.IntRange(100), default=20_000, show_default=True, help="How many to generate.")
@click.option("--features", type=click.IntRange(100), default=5_000, show_default=True, help="Words of the vocabulary.")
@click.option("--words", type=click.IntRange(2), default=20, show_default=True, help="How many words to choose.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another corpus.")
@click.option("--keep", metavar="DIR", help="Leave dataset and model in this new folder, to try other commands on.")
@overwrite_option
@cluster_options
@json_option
def demo(
    documents: int, features: int, words: int, seed: int, keep: str | None, overwrite: bool, cluster: ClusterOptions
) -> None:
    """See it work, in seconds and with nothing to set up.

    Documents of two classes are generated, with ten words planted in each, and written to a dataset. A multinomial
    model chooses the words that tell the classes apart: they should be the planted ones. A certificate says how much
    better any other choice could be. Then more documents are generated, and their classes predicted.

    \b
    nfs-dask demo
    nfs-dask demo --documents 200000 --workers 2 --memory-limit 1GiB
    nfs-dask demo --keep /tmp/corpus && nfs-dask path /tmp/corpus/demo.zarr
    """
    if cluster.scheduler is not None and keep is None:
        raise click.UsageError("workers elsewhere do not reach a temporary folder; name one they do with --keep DIR")
    from nfs_dask.cli.corpus import GeneratedCorpus
    from nfs_dask.dataset import Dataset
    from nfs_dask.estimators.multinomial import MultinomialClassifier
    from nfs_dask.ingestion.ingest import ingest
    from nfs_dask.prediction.evaluation import evaluate

    corpus = GeneratedCorpus(documents, features, seed=seed)
    others = GeneratedCorpus(max(1, documents // HELD_OUT), features, seed=seed, first_block=corpus.n_blocks)
    if keep is not None:
        check_model(f"{keep}/demo.model", overwrite)
    with _folder(keep) as folder, cluster.engine(corpus) as engine:
        say(f"generating {documents:,} documents over {features:,} words")
        clock = _Clock()
        dataset = ingest(corpus, f"{folder}/demo.zarr", overwrite=overwrite, engine=engine)
        clock.lap("write")
        model = MultinomialClassifier(words, engine=engine).fit(dataset)
        clock.lap("fit")
        verdict = evaluate(model.model_, Dataset(others), engine)
        clock.lap("evaluate")
        if keep:
            model.save(f"{folder}/demo.model")
        values = {
            "store": dataset.location if keep else None,
            "model": f"{folder}/demo.model" if keep else None,
            "documents": dataset.n_rows,
            "features": dataset.n_features,
            "entries": dataset.nnz,
            "classes": corpus.classes,
            "planted": [corpus.planted_words(c) for c in range(corpus.n_classes)],
            "words": _chosen(model.model_, dataset, engine),
            "objective": model.objective_,
            "upper_bound": model.upper_bound_,
            "gap": model.dual_gap_,
            "certified": model.certified_,
            "held_out": verdict.n,
            "accuracy": verdict.accuracy,
            "interval": verdict.interval,
            "seconds": clock.laps,
        }
    answer(values, lambda console: _show(values, console))


class _Clock:
    """Seconds of one step after another."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._since = now - self._since, now


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    """The folder to work in, which is deleted afterwards unless it is to be kept."""
    if keep is not None:
        keeps(f"what was written so far is in {keep}")
        yield keep
        return
    keeps("the temporary folder was deleted")
    with tempfile.TemporaryDirectory(prefix="nfs-dask-demo-") as folder:
        yield folder


def _chosen(model: Model, dataset: Dataset, engine: Engine) -> list[dict[str, Any]]:
    """The words that were chosen, with their counts in each class and what they say; the strongest first."""
    from nfs_dask.statistics.counts import sums

    counts = sums(dataset.reduce(dataset.class_counts(), engine).state.arrays)[:, model.support]
    margins, labels = model.margins(), model.classes.tolist()
    order = (-margins.max(axis=0)).argsort(kind="stable")
    return [
        {
            "word": model.feature_names[i],
            "counts": counts[:, i].tolist(),
            "speaks_for": labels[int(margins[:, i].argmax())],
            "weight": float(margins[:, i].max()),
        }
        for i in order
    ]


def _show(values: dict[str, Any], console: Console) -> None:
    topics = zip(values["classes"], values["planted"], strict=True)
    planted = {word: str(label) for label, words in topics for word in words}
    columns = ["word", *(f"in {label}" for label in values["classes"]), "speaks for", "weight", "planted in"]
    rows = [
        [row["word"], *row["counts"], row["speaks_for"], f"{row['weight']:.2f}", planted.get(row["word"], "-")]
        for row in values["words"]
    ]
    console.print(table("The words that were chosen", columns, rows))
    found = sum(row["word"] in planted for row in values["words"])
    show_line(f"{found} of these {len(rows)} words are among the {len(planted)} planted ones.", console)
    show_line(
        f"Certificate: log likelihood {values['objective']:,.3f}, and no other choice of {len(rows)} words is better"
        + ("." if values["certified"] else f" by more than {values['gap']:.3g}."),
        console,
    )
    low, high = values["interval"]
    show_line(
        f"Accuracy on {values['held_out']:,} documents that were not fitted: {values['accuracy']:.3f} "
        f"(95 % between {low:.3f} and {high:.3f}).",
        console,
    )
    seconds = {name: format_seconds(lap) for name, lap in values["seconds"].items()}
    show_line(
        f"{values['documents']:,} documents, {values['entries']:,} entries: generated and written in "
        f"{seconds['write']}, fitted in {seconds['fit']}; the others generated and predicted in {seconds['evaluate']}.",
        console,
    )
    if values["store"]:
        show_line(f"The dataset is in {values['store']}, the model in {values['model']}", console)
