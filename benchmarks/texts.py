"""From texts to counts, to a store, to a model, beside scikit-learn.

    python benchmarks/texts.py kernel --parquet FILE
    python benchmarks/texts.py store --documents 200000 --data DIR
    python benchmarks/texts.py model --documents 1600000 --data DIR --peers
    python benchmarks/texts.py formats --documents 800000 --data DIR
    python benchmarks/texts.py predict --documents 1600000 -k 20 --data DIR

``kernel`` compares TermCounter with CountVectorizer on one core, words 1-2 and characters 2. ``store`` is Parquet
to a store on disk with two workers of 1 GiB, beside CountVectorizer and save_npz in one process. ``model`` goes on to a
fitted SparseMultinomialNB with names, with --peers beside CountVectorizer, chi2 and MultinomialNB. ``formats`` is to a
store from Parquet, CSV and JSON lines with the same documents: seconds, and processor time of workers and client, each
in new workers. ``predict`` asks a model of ``-k`` terms about raw texts, beside its kernel and CountVectorizer.

The tweets are generated (benchmarks/tweets.py), unless --parquet names a file with a column ``text``. Clusters are
started, and kernels compiled, before the clock runs. Memory is the high-water mark of the largest process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved, peak_nbytes, reset_peak, seconds
from tweets import parquet, written

from nfs_dask import DaskEngine, SparseMultinomialNB, ingest, open_dataset
from nfs_dask.text.strings import Strings
from nfs_dask.units import format_bytes

NGRAMS = (1, 2)


def texts_of(paths: list[Path]) -> list[str]:
    import pyarrow.parquet as pq

    return [text for path in paths for text in pq.read_table(path, columns=["text"])["text"].to_pylist()]


def kernel(options: argparse.Namespace) -> None:
    """One core, from texts in memory to counts in memory."""
    from sklearn.feature_extraction.text import CountVectorizer

    from nfs_dask.text.counting import TermCounter
    from nfs_dask.text.settings import TextSettings

    texts = texts_of(files(options))
    strings = Strings.of(texts)
    for analyzer, ngrams in (("word", NGRAMS), ("char", (2, 2))):

        def ours(analyzer: Any = analyzer, ngrams: Any = ngrams) -> Any:
            counter = TermCounter(TextSettings(analyzer=analyzer, ngrams=ngrams))
            counter.add(strings)
            return counter.finish()

        def theirs(analyzer: str = analyzer, ngrams: tuple[int, int] = ngrams) -> Any:
            return CountVectorizer(analyzer=analyzer, ngram_range=ngrams).fit_transform(texts)

        counted, matrix = ours(), theirs()
        assert (len(counted.terms), len(counted.ids)) == (matrix.shape[1], matrix.nnz), "not the same counts"
        times = interleaved({"ours": ours, "theirs": theirs}, options.repeats)
        print(
            f"{analyzer} {ngrams[0]}-{ngrams[1]}: {len(texts):,} documents, {matrix.shape[1]:,} terms, "
            f"{matrix.nnz:,} entries: {times['ours']:.3f} s, CountVectorizer {times['theirs']:.2f} s, "
            f"{times['theirs'] / times['ours']:.1f} times"
        )


def vectorized(paths: list[Path], target: Path) -> tuple[float, int, tuple[int, int], int]:
    """The same by scikit-learn in one process: read, count, save. Seconds, peak, shape, entries."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    reset_peak()
    made: list[Any] = []

    def work() -> None:
        made.append(CountVectorizer(ngram_range=NGRAMS).fit_transform(texts_of(paths)))
        sp.save_npz(target, made[0], compressed=False)

    took = seconds(work, 1)[0]
    return took, peak_nbytes(), made[0].shape, made[0].nnz


def modelled(paths: list[Path], k: int) -> tuple[float, int]:
    """scikit-learn's way to k features and a classifier: seconds and peak."""
    import pyarrow.parquet as pq
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.feature_selection import SelectKBest, chi2
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    reset_peak()
    labels = [label for path in paths for label in pq.read_table(path, columns=["label"])["label"].to_pylist()]
    pipeline = make_pipeline(CountVectorizer(ngram_range=NGRAMS), SelectKBest(chi2, k=k), MultinomialNB())
    return seconds(lambda: pipeline.fit(texts_of(paths), labels), 1)[0], peak_nbytes()


@contextmanager
def two_workers() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def ingested(paths: list[Path], target: Path, labelled: bool = False, ngrams: tuple[int, int] = NGRAMS) -> Any:
    shutil.rmtree(target, ignore_errors=True)
    return ingest(
        list(paths),
        target,
        text_column="text",
        ngrams=ngrams,
        label_column="label" if labelled else None,
        engine=DaskEngine(),
    )


def store(options: argparse.Namespace) -> None:
    """From Parquet to a store on disk."""
    paths, target = files(options), options.data / "texts.zarr"
    with two_workers() as client, multiprocessing.get_context("spawn").Pool(1) as pool:
        ingested(paths[:1], target)  # compiles
        theirs, ours = [], []
        for _ in range(options.repeats):
            theirs.append(pool.apply(vectorized, (paths, options.data / "texts.npz")))
            client.run(reset_peak)
            ours += seconds(lambda: ingested(paths, target), 1)
        peak = max(client.run(peak_nbytes).values())
    dataset = open_dataset(target)
    took, most, shape, nnz = min(theirs)
    assert (dataset.n_rows, dataset.n_features, dataset.nnz) == (*shape, nnz), "not the same counts"
    print(
        f"Parquet to store: {dataset.n_rows:,} documents, {dataset.n_features:,} terms, {dataset.nnz:,} entries: "
        f"{min(ours):.2f} s in 2 workers of 1 GiB (peak {format_bytes(peak)}), scikit-learn {took:.1f} s "
        f"({format_bytes(most)}), {took / min(ours):.1f} times"
    )


def model(options: argparse.Namespace) -> None:
    """From Parquet to a fitted model with names."""
    paths, target = files(options), options.data / "texts.zarr"
    with two_workers() as client:
        ingested(paths[:1], target, labelled=True)
        client.run(reset_peak)
        reset_peak()
        fitted: list[Any] = []
        counting = seconds(lambda: fitted.append(ingested(paths, target, labelled=True)), 1)[0]
        estimator = SparseMultinomialNB(k=options.k, engine=DaskEngine())
        fitting = seconds(lambda: estimator.fit(fitted[0]), 1)[0]
        peak, client_peak = max(client.run(peak_nbytes).values()), peak_nbytes()
    print(
        f"Parquet to model: {fitted[0]!r}: {counting:.1f} s to the store and {fitting:.1f} s to the model, "
        f"peak of a worker {format_bytes(peak)} of 1 GiB, of the client {format_bytes(client_peak)}"
    )
    for label, top in estimator.top_features(8).items():
        print(f"  {label}: {', '.join(name for name, _ in top)}")
    if options.peers:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            took, most = pool.apply(modelled, (paths, options.k))
        print(f"scikit-learn: {took:.1f} s, peak {format_bytes(most)}; {took / (counting + fitting):.1f} times")


def formats(options: argparse.Namespace) -> None:
    """The same documents to a store from each format, taking turns."""
    paths = files(options)
    kinds = of_kinds(paths)
    for ngrams in ((1, 1), NGRAMS):
        found: dict[str, list[tuple[float, float, int]]] = {kind: [] for kind in kinds}
        for _ in range(options.repeats):
            for kind, sources in kinds.items():
                found[kind].append(cost(sources, options.data / "texts.zarr", ngrams))
        middle = {kind: [statistics.median(some) for some in zip(*costs, strict=True)] for kind, costs in found.items()}
        for kind, (took, used, peak) in middle.items():
            print(
                f"{ngrams[0]}-{ngrams[1]}-grams, {options.documents:,} documents from {kind}: {took:.2f} s "
                f"({took / middle['parquet'][0]:.2f} times Parquet's), processor {used:.2f} s "
                f"({used / middle['parquet'][1]:.2f} times), peak of a worker {format_bytes(int(peak))}"
            )


def cost(sources: list[Path], target: Path, ngrams: tuple[int, int]) -> tuple[float, float, int]:
    """Of an ingest by two new workers: seconds, processor seconds, peak of a worker."""
    with two_workers() as client:
        ingested(sources[:1], target, labelled=True, ngrams=ngrams)  # loads what is compiled
        client.run(reset_peak)
        before = processor_seconds(client)
        took = seconds(partial(ingested, sources, target, labelled=True, ngrams=ngrams), 1)[0]
        return took, processor_seconds(client) - before, max(client.run(peak_nbytes).values())


def predict(options: argparse.Namespace) -> None:
    """A model of few terms of many, on raw texts: of one process, but for files, which tasks on threads read."""
    import pandas as pd
    from sklearn.feature_extraction.text import CountVectorizer

    from nfs_dask.prediction.reader import Reader

    paths, target = files(options), options.data / "texts.zarr"
    with two_workers():
        dataset = ingested(paths, target, labelled=True)
    estimator = SparseMultinomialNB(k=options.k).fit(dataset)
    model = estimator.model_
    texts = texts_of(paths[:4])
    strings, series, reader = Strings.of(texts), pd.Series(texts), Reader(model)
    vectorizer = CountVectorizer(ngram_range=NGRAMS, vocabulary=model.feature_names)
    weights, intercept = model.coefficients()

    def kernel_alone() -> Any:
        counter = reader.counter()
        counter.add(strings)
        return counter.finish()

    def theirs() -> Any:
        return vectorizer.transform(texts) @ weights.T + intercept

    ways = {
        "the kernel alone": kernel_alone,
        "list of str": lambda: estimator.predict(texts),
        "Series": lambda: estimator.predict(series),
        **{f"files, {kind}": partial(read_and_scored, reader, some) for kind, some in of_kinds(paths[:4]).items()},
    }
    agreed = (np.ravel(theirs()) > 0) == (estimator.predict(texts) == model.classes[1])
    assert agreed.mean() > 0.9999, "not the same classes"  # ties of rounding aside
    for way in ways.values():
        way()  # loads what is compiled
    times = interleaved(ways, options.repeats) | interleaved({"CountVectorizer": theirs}, 1)
    for name, took in times.items():
        print(
            f"{options.k} of {dataset.n_features:,} terms, {len(texts):,} documents, {name}: {took:.3f} s, "
            f"{took / times['the kernel alone']:.2f} times the kernel, "
            f"{times['CountVectorizer'] / took:.1f} times faster than CountVectorizer"
        )


def of_kinds(paths: list[Path]) -> dict[str, list[Path]]:
    return {"parquet": paths, "csv": written(paths, "csv"), "jsonl": written(paths, "jsonl")}


def read_and_scored(reader: Any, paths: list[Path]) -> int:
    """How many documents of files got a class, on one core."""
    from nfs_dask.documents.document_source import TextColumns
    from nfs_dask.documents.locations import open_tables
    from nfs_dask.prediction.model_rows import ModelTask, ReadDocuments
    from nfs_dask.prediction.scoring import classify
    from nfs_dask.sources.source import one_by_one

    documents = open_tables(tuple(map(str, paths)), TextColumns(("text",)))
    documents.look(one_by_one)
    task = ModelTask(ReadDocuments(documents, reader), 0, documents.n_pieces, reader.model)
    return len(classify(task).rows)


def processor_seconds(client: Any) -> float:
    """Used so far by the workers and by this process."""
    return sum(client.run(time.process_time).values()) + time.process_time()


def files(options: argparse.Namespace) -> list[Path]:
    if options.parquet is not None:
        return [options.parquet]
    return parquet(options.documents, options.data / "tweets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kernel", "store", "model", "formats", "predict"])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--parquet", type=Path)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-k", type=int, default=1000)
    parser.add_argument("--peers", action="store_true", help="Also scikit-learn's way to a model.")
    options = parser.parse_args()
    {"kernel": kernel, "store": store, "model": model, "formats": formats, "predict": predict}[options.what](options)


if __name__ == "__main__":
    main()
