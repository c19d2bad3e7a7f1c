"""How long, and with how much memory: k words, chosen from files by us and by what a user would pick instead.

    python benchmarks/peers.py [--data DIR] [--features 100000 1000000 10000000] [--seconds 60] [--ways ...]

400,000 generated documents of 26 words (`cases.py`), 10 million entries, as a store of ours, as uncompressed .npz
blocks for numpy, scipy and scikit-learn, and as Parquet rows (class, word, count) for polars and duckdb. Each way is a
process of its own that has compiled and imported before the clock runs, and is ended after --seconds. Of the words a
thousandth is chosen.

A way ends with words, or, where it is named after counts, with the counts of both classes, which must be ours. Peaks
are the high-water marks of processes; words in common are those with sparse multinomial naive Bayes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case, npz, store
from counting import load, numpy_loop
from measure import peak_nbytes, reset_peak

import nfs_dask as nfs
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.units import format_bytes

DOCUMENTS = 400_000
LEAD_SECONDS = 60.0  # that a process may take to import, to compile and to start workers
Found = tuple[float, int, np.ndarray]  # seconds, bytes, and words or counts


def name_of(features: int) -> str:
    return f"peers-{features}"


def rows_of(features: int, data: Path) -> Path:
    """The entries as rows of Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = data / f"{name_of(features)}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        schema = pa.schema([("class", pa.int8()), ("word", pa.int32()), ("count", pa.int32())])
        with pq.ParquetWriter(part, schema) as writer:
            for block in CASES[name_of(features)].blocks(0, CASES[name_of(features)].n_blocks):
                codes = np.repeat(block.codes, np.diff(block.indptr)).astype(np.int8)
                writer.write_table(pa.table([codes, block.indices, block.data.astype(np.int32)], schema=schema))
        part.rename(path)
    return path


# Ways: of a folder, a number of features and of k a function to be timed


def ours(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    model = nfs.SparseMultinomialNB(k=k, engine=nfs.SerialEngine())
    dataset = store(name_of(features), data)
    model.fit(dataset)  # compiles
    return lambda: model.fit(dataset).get_support(indices=True)


def printed(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    paths = npz(name_of(features), data)
    return lambda: bisection.solve(numpy_loop(paths, features), k, alpha=1.0).support


def all_rows(data: Path, features: int) -> tuple[Any, np.ndarray]:
    """One matrix and its labels, as scikit-learn wants them."""
    from scipy import sparse

    parts = [load(path, features) for path in npz(name_of(features), data)]
    return sparse.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])


def chi2(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    from sklearn.feature_selection import SelectKBest, chi2

    return lambda: SelectKBest(chi2, k=k).fit(*all_rows(data, features)).get_support(indices=True)


def mutual_information(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    from sklearn.feature_selection import SelectKBest, mutual_info_classif

    return lambda: SelectKBest(mutual_info_classif, k=k).fit(*all_rows(data, features)).get_support(indices=True)


def largest_weights(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    from sklearn.naive_bayes import MultinomialNB

    def choose() -> np.ndarray:
        weights = MultinomialNB().fit(*all_rows(data, features)).feature_log_prob_
        return np.sort(np.argpartition(-np.abs(weights[1] - weights[0]), k)[:k])

    return choose


def l1_logistic(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    """One fit at C = 1: how many words it keeps is as it comes, and a search over C would take several."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(penalty="l1", solver="liblinear")
    return lambda: np.flatnonzero(model.fit(*all_rows(data, features)).coef_[0])


def polars_counts(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    import polars as pl

    path = rows_of(features, data)
    groups = pl.scan_parquet(path).group_by("class", "word").agg(pl.col("count").sum())
    return lambda: dense(*groups.collect(engine="streaming").to_numpy().T, features)


def duckdb_counts(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    import duckdb

    query = f"select class, word, sum(count)::bigint as n from '{rows_of(features, data)}' group by all"
    return lambda: dense(*duckdb.sql(query).fetchnumpy().values(), features)


def counts(data: Path, features: int, k: int) -> Callable[[], np.ndarray]:
    dataset, engine = store(name_of(features), data), nfs.SerialEngine()
    dataset.reduce(dataset.class_counts(), engine)
    return lambda: dataset.reduce(dataset.class_counts(), engine).state.arrays["sums"]


def dense(classes: np.ndarray, words: np.ndarray, n: np.ndarray, features: int) -> np.ndarray:
    out = np.zeros((2, features), np.int64)
    out[classes.astype(np.int64), words.astype(np.int64)] = n
    return out


WAYS: dict[str, Callable[[Path, int, int], Callable[[], np.ndarray]]] = {
    "nfs-dask, sparse multinomial": ours,
    "the paper's bisection": printed,
    "scikit-learn, chi2": chi2,
    "scikit-learn, largest weights of MultinomialNB": largest_weights,
    "scikit-learn, mutual information": mutual_information,
    "scikit-learn, l1 logistic, C = 1": l1_logistic,
    "counts: nfs-dask": counts,
    "counts: polars": polars_counts,
    "counts: duckdb": duckdb_counts,
}


def one(way: str, data: Path, features: int, k: int, told: Any) -> None:
    """In a process of its own: say that all is ready, then what was found."""
    warnings.simplefilter("ignore")
    CASES[name_of(features)] = Case(DOCUMENTS, features)
    function = WAYS[way](data, features, k)
    reset_peak()
    told.put("ready")
    start = time.perf_counter()
    found = function()
    told.put((time.perf_counter() - start, peak_nbytes(), found))


def timed(way: str, data: Path, features: int, k: int, limit: float) -> Found | None:
    """What a way finds; None if it takes longer than that."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=one, args=(way, data, features, k, told), daemon=True)
    process.start()
    try:
        told.get(timeout=LEAD_SECONDS)
        return told.get(timeout=limit)  # type: ignore[no-any-return]
    except queue.Empty:
        return None
    finally:
        process.kill()
        process.join()


def row(way: str, found: Found | None, truth: dict[str, np.ndarray], limit: float) -> str:
    if found is None:
        return f"| {way} | more than {limit:.0f} | | |"
    took, nbytes, what = found
    if way.startswith("counts"):
        assert (what == truth.setdefault("counts", what)).all(), way
        common = "the same counts"
    else:
        ours = truth.setdefault("words", what)
        common = f"{len(np.intersect1d(what, ours)) / len(ours):.0%} of ours, {len(what):,} in all"
    return f"| {way} | {took:.2f} | {format_bytes(nbytes)} | {common} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--features", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    options = parser.parse_args()
    for features in options.features:
        k, truth = features // 1000, dict[str, np.ndarray]()
        CASES[name_of(features)] = Case(DOCUMENTS, features)
        npz(name_of(features), options.data), store(name_of(features), options.data), rows_of(features, options.data)
        print(f"\n{features:,} words, k = {k:,}\n\n| way | seconds | peak | words |\n| --- | --- | --- | --- |")
        for way in options.ways:
            print(row(way, timed(way, options.data, features, k, options.seconds), truth, options.seconds), flush=True)


if __name__ == "__main__":
    main()
