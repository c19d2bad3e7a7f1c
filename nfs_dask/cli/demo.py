"""``nfs-dask demo``: the whole way on a generated corpus, with nothing to set up."""

from __future__ import annotations

import tempfile
import time
from contextlib import nullcontext
from typing import Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, check_model, say, show, show_line, table
from nfs_dask.cli.reporting import keeps
from nfs_dask.units import format_seconds

HELD_OUT = 4  # for so many documents that are fitted, one is generated to be predicted


@click.command()
@click.option("--documents", type=click.IntRange(100), default=20_000, show_default=True, help="How many to generate.")
@click.option("--features", type=click.IntRange(100), default=5_000, show_default=True, help="Words of the vocabulary.")
@click.option("--words", type=click.IntRange(2), default=20, show_default=True, help="How many words to choose.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another corpus.")
@click.option("--keep", metavar="DIR", help="Leave dataset and model in this new folder, to try other commands on.")
@options.overwrite
@options.cluster
@options.json_output
def demo(
    documents: int,
    features: int,
    words: int,
    seed: int,
    keep: str | None,
    overwrite: bool,
    cluster: options.ClusterOptions,
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
    from nfs_dask.statistics.counts import sums

    corpus = GeneratedCorpus(documents, features, seed=seed)
    others = GeneratedCorpus(max(1, documents // HELD_OUT), features, seed=seed, first_block=corpus.n_blocks)
    if keep is not None:
        check_model(f"{keep}/demo.model", overwrite)
    keeps("the temporary folder was deleted" if keep is None else f"what was written so far is in {keep}")
    temporary = tempfile.TemporaryDirectory(prefix="nfs-dask-demo-") if keep is None else nullcontext(keep)
    with temporary as folder, cluster.engine(corpus) as engine:
        say(f"generating {documents:,} documents over {features:,} words")
        moments = [time.perf_counter()]
        dataset = ingest(corpus, f"{folder}/demo.zarr", overwrite=overwrite, engine=engine)
        moments.append(time.perf_counter())
        model = MultinomialClassifier(words, engine=engine).fit(dataset)
        moments.append(time.perf_counter())
        verdict = evaluate(model.model_, Dataset(others), engine)
        moments.append(time.perf_counter())
        if keep:
            model.save(f"{folder}/demo.model")
        chosen = model.model_
        counts = sums(dataset.reduce(dataset.class_counts(), engine).state.arrays)[:, chosen.support]
        margins, labels = chosen.margins(), chosen.classes.tolist()
        strongest_first = (-margins.max(axis=0)).argsort(kind="stable")
        values = {
            "store": dataset.location if keep else None,
            "model": f"{folder}/demo.model" if keep else None,
            "documents": dataset.n_rows,
            "features": dataset.n_features,
            "entries": dataset.nnz,
            "classes": corpus.classes,
            "planted": [corpus.planted_words(c) for c in range(corpus.n_classes)],
            "words": [
                {
                    "word": chosen.feature_names[i],
                    "counts": counts[:, i].tolist(),
                    "speaks_for": labels[int(margins[:, i].argmax())],
                    "weight": float(margins[:, i].max()),
                }
                for i in strongest_first
            ],
            "objective": model.objective_,
            "upper_bound": model.upper_bound_,
            "gap": model.dual_gap_,
            "certified": model.certified_,
            "held_out": verdict.n,
            "accuracy": verdict.accuracy,
            "interval": verdict.interval,
            "seconds": {name: moments[i + 1] - moments[i] for i, name in enumerate(("write", "fit", "evaluate"))},
        }
    if answer(values):
        _show(values)


def _show(values: dict[str, Any]) -> None:
    planted = {
        word: str(label) for label, words in zip(values["classes"], values["planted"], strict=True) for word in words
    }
    columns = ["word", *(f"in {label}" for label in values["classes"]), "speaks for", "weight", "planted in"]
    rows = [
        [row["word"], *row["counts"], row["speaks_for"], f"{row['weight']:.2f}", planted.get(row["word"], "-")]
        for row in values["words"]
    ]
    show(table("The words that were chosen", columns, rows))
    found = sum(row["word"] in planted for row in values["words"])
    low, high = values["interval"]
    seconds = {name: format_seconds(lap) for name, lap in values["seconds"].items()}
    lines = [
        f"{found} of these {len(rows)} words are among the {len(planted)} planted ones.",
        f"Certificate: log likelihood {values['objective']:,.3f}, and no other choice of {len(rows)} words is better"
        + ("." if values["certified"] else f" by more than {values['gap']:.3g}."),
        f"Accuracy on {values['held_out']:,} documents that were not fitted: {values['accuracy']:.3f} "
        f"(95 % between {low:.3f} and {high:.3f}).",
        f"{values['documents']:,} documents, {values['entries']:,} entries: generated and written in "
        f"{seconds['write']}, fitted in {seconds['fit']}; the others generated and predicted in {seconds['evaluate']}.",
    ]
    if values["store"]:
        lines.append(f"The dataset is in {values['store']}, the model in {values['model']}")
    show_line("\n".join(lines))
