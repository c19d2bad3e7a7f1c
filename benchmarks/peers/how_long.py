"""How long, and with how much memory: k words, or the counts of both classes, from files.

400,000 generated documents of 26 words (`benchmarks/cases.py`), 10 million entries, as a store of ours, as uncompressed
.npz blocks for numpy, scipy, scikit-learn and dask-ml, as Parquet rows (class, word, count) for polars and duckdb, and
as Parquet rows of sparse vectors for Spark. Each way is a process of its own, which has imported, compiled and started
what it needs before clocks run, and is ended after `LIMITS`; it is not asked for more words then. Of the words a
thousandth is chosen.

A way ends with words, or, where it is named after counts, with the counts of both classes, which must be ours. Peaks
are sums over the process and all that it started; words in common are those with sparse multinomial naive Bayes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nfs_dask as nfs
from benchmarks.cases import CASES, Case, npz, store
from benchmarks.loops import dask_ml, load, numpy_loop
from benchmarks.papers.experiment import Settings
from benchmarks.papers.tables import markdown
from benchmarks.peers import spark
from benchmarks.peers.apart import Heard, Limits, heard
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.units import format_bytes

TITLE = "Seconds and memory of k words, and of counts, of 100,000 to 10 million words"
LIBRARIES = ("dask-ml", "duckdb", "polars", "pyspark")
FEATURES, QUICK_FEATURES = (100_000, 1_000_000, 10_000_000), (20_000,)
DOCUMENTS, QUICK_DOCUMENTS = 400_000, 20_000
LIMITS = Limits(seconds=40, nbytes=12 << 30)  # those of two processors
SHARE = 1000  # of how many words one is chosen
COUNTS = "counts: "  # begins the name of a way that ends with them
PROCESSES = 2  # workers of clusters
WORKER = "4GiB"  # of memory, as dask-ml needs 2 GiB and does not end in one

Choose = Callable[[], np.ndarray]


def name_of(features: int, documents: int) -> str:
    """The name of a generated case, which is known by it from then on."""
    name = f"peers-{features}" if documents == DOCUMENTS else f"peers-{features}-{documents}"
    CASES[name] = Case(documents, features)
    return name


def rows_of(name: str, data: Path) -> Path:
    """The entries as rows of Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = data / f"{name}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        schema = pa.schema([("class", pa.int8()), ("word", pa.int32()), ("count", pa.int32())])
        with pq.ParquetWriter(part, schema) as writer:
            for block in CASES[name].blocks(0, CASES[name].n_blocks):
                codes = np.repeat(block.codes, np.diff(block.indptr)).astype(np.int8)
                writer.write_table(pa.table([codes, block.indices, block.data.astype(np.int32)], schema=schema))
        part.rename(path)
    return path


def vectors_of(name: str, data: Path) -> Path:
    """The documents as Spark reads them."""
    path, case = data / f"{name}-vectors.parquet", CASES[name]
    if path.exists():
        return path
    blocks = case.blocks(0, case.n_blocks)
    return spark.write(path, ((b.indptr, b.indices, b.data, b.codes) for b in blocks), case.n_features)


def write_all(name: str, data: Path) -> None:
    for form in (npz, store, rows_of, vectors_of):
        form(name, data)


# Ways: of the name of a case, a folder and of k a function to be timed


def ours(name: str, data: Path, k: int) -> Choose:
    model = nfs.SparseMultinomialNB(k=k, engine=nfs.SerialEngine())
    dataset = store(name, data)
    model.fit(dataset)  # compiles
    return lambda: model.fit(dataset).get_support(indices=True)


def cluster() -> Any:
    from distributed import Client, LocalCluster

    common = {"dashboard_address": None, "threads_per_worker": 1, "memory_limit": WORKER}
    return Client(LocalCluster(n_workers=PROCESSES, **common), set_as_default=False)


def ours_on_workers(name: str, data: Path, k: int) -> Choose:
    model, client = nfs.SparseMultinomialNB(k=k, engine=nfs.DaskEngine()), cluster()
    dataset = store(name, data)

    def fit() -> np.ndarray:
        with client.as_current():
            return model.fit(dataset).get_support(indices=True)

    fit()  # compiles
    return fit


def printed(name: str, data: Path, k: int) -> Choose:
    paths, features = npz(name, data), CASES[name].n_features
    return lambda: bisection.solve(numpy_loop(paths, features), k, alpha=1.0).support


def all_rows(name: str, data: Path) -> tuple[Any, np.ndarray]:
    """One matrix and its labels, as scikit-learn wants them."""
    from scipy import sparse

    parts = [load(path, CASES[name].n_features) for path in npz(name, data)]
    return sparse.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])


def chi2(name: str, data: Path, k: int) -> Choose:
    from sklearn.feature_selection import SelectKBest, chi2

    return lambda: SelectKBest(chi2, k=k).fit(*all_rows(name, data)).get_support(indices=True)


def mutual_information(name: str, data: Path, k: int) -> Choose:
    from sklearn.feature_selection import SelectKBest, mutual_info_classif

    return lambda: SelectKBest(mutual_info_classif, k=k).fit(*all_rows(name, data)).get_support(indices=True)


def largest_weights(name: str, data: Path, k: int) -> Choose:
    from sklearn.naive_bayes import MultinomialNB

    def choose() -> np.ndarray:
        weights = MultinomialNB().fit(*all_rows(name, data)).feature_log_prob_
        return np.sort(np.argpartition(-np.abs(weights[1] - weights[0]), k)[:k])

    return choose


def l1_logistic(name: str, data: Path, k: int) -> Choose:
    """One fit at C = 1: how many words it keeps is as it comes, and a search over C would take several."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(l1_ratio=1, solver="liblinear")
    return lambda: np.flatnonzero(model.fit(*all_rows(name, data)).coef_[0])


def chi2_of_spark(name: str, data: Path, k: int) -> Choose:
    rows = spark.read(vectors_of(name, data))
    rows.count()  # starts what it needs
    return lambda: spark.by_chi2(rows, k)


def counts_of_spark(name: str, data: Path, k: int) -> Choose:
    """Counts that are those of the logarithms it tells, where each class has as many words as in the blocks."""
    rows, paths, features = spark.read(vectors_of(name, data)), npz(name, data), CASES[name].n_features
    rows.count()
    words = np.zeros(2)
    for X, y in (load(path, features) for path in paths):
        words += np.bincount(y, np.asarray(X.sum(axis=1, dtype=np.int64)).ravel(), minlength=2)
    return lambda: np.rint(spark.smoothed_shares(rows) * (words + features)[:, None]).astype(np.int64) - 1


def import_dask_ml() -> None:
    import dask_ml.wrappers  # noqa: F401 - which takes seconds


def counts_of_dask_ml(name: str, data: Path, k: int) -> Choose:
    paths, features, client = npz(name, data), CASES[name].n_features, cluster()
    import_dask_ml()
    client.run(import_dask_ml)
    return lambda: dask_ml(client, paths, features)


def counts_of_polars(name: str, data: Path, k: int) -> Choose:
    import polars as pl

    path, features = rows_of(name, data), CASES[name].n_features
    groups = pl.scan_parquet(path).group_by("class", "word").agg(pl.col("count").sum())
    return lambda: dense(*groups.collect(engine="streaming").to_numpy().T, features)


def counts_of_duckdb(name: str, data: Path, k: int) -> Choose:
    import duckdb

    features = CASES[name].n_features
    query = f"select class, word, sum(count)::bigint as n from '{rows_of(name, data)}' group by all"
    return lambda: dense(*duckdb.sql(query).fetchnumpy().values(), features)


def our_counts(name: str, data: Path, k: int) -> Choose:
    dataset, engine = store(name, data), nfs.SerialEngine()
    dataset.reduce(dataset.class_counts(), engine)
    return lambda: dataset.reduce(dataset.class_counts(), engine).state.arrays["sums"]


def dense(classes: np.ndarray, words: np.ndarray, n: np.ndarray, features: int) -> np.ndarray:
    out = np.zeros((2, features), np.int64)
    out[classes.astype(np.int64), words.astype(np.int64)] = n
    return out


WAYS: dict[str, Callable[[str, Path, int], Choose]] = {
    "nfs-dask, sparse multinomial, one process": ours,
    f"nfs-dask, sparse multinomial, {PROCESSES} workers": ours_on_workers,
    "the paper's bisection": printed,
    "scikit-learn, chi2": chi2,
    "scikit-learn, largest weights of MultinomialNB": largest_weights,
    "scikit-learn, mutual information": mutual_information,
    "scikit-learn, one l1 logistic fit, C = 1": l1_logistic,
    "Spark, chi2": chi2_of_spark,
    f"{COUNTS}nfs-dask, one process": our_counts,
    f"{COUNTS}polars": counts_of_polars,
    f"{COUNTS}duckdb": counts_of_duckdb,
    f"{COUNTS}dask-ml, {PROCESSES} workers": counts_of_dask_ml,
    f"{COUNTS}Spark, naive Bayes": counts_of_spark,
}
QUICK_WAYS = (next(iter(WAYS)), "scikit-learn, chi2", f"{COUNTS}nfs-dask, one process", f"{COUNTS}polars")


def one(way: str, features: int, documents: int, data: Path) -> Iterator[Any]:
    """In a process of its own: say that all is ready, then what was found."""
    choose = WAYS[way](name_of(features, documents), data, features // SHARE)
    yield None
    yield choose()


def told(found: Heard, way: str, truth: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the table says of a way; ``truth`` is what ours have found, and counts must be the same."""
    if found.ended is not None:
        return {"ended": found.ended}
    (answer,) = found.answers
    out = {"seconds": answer.seconds, "processor": answer.processor, "nbytes": answer.nbytes}
    counts = way.startswith(COUNTS)
    if "nfs-dask" in way:
        truth.setdefault(COUNTS if counts else "words", answer.value)
    if counts:
        assert COUNTS not in truth or np.array_equal(answer.value, truth[COUNTS]), way
        return out
    out |= {"words": len(answer.value)}
    best = truth.get("words")
    return out if best is None else out | {"in common": len(np.intersect1d(answer.value, best)) / len(best)}


def run(settings: Settings) -> dict[str, Any]:
    documents = settings.either(QUICK_DOCUMENTS, DOCUMENTS)
    too_long: dict[str, str] = {}

    def of(label: str) -> dict[str, Any]:
        features, truth = int(label), dict[str, np.ndarray]()
        write_all(name_of(features, documents), settings.generated)
        out: dict[str, Any] = {}
        for way in settings.either(QUICK_WAYS, WAYS):
            if way not in too_long:
                found = heard(one, (way, features, documents, settings.generated), LIMITS)
                out[way] = told(found, way, truth)
                if found.ended:
                    too_long[way] = f"{found.ended}, with fewer words"
            else:
                out[way] = {"ended": too_long[way]}
        return out

    return settings.each(map(str, settings.either(QUICK_FEATURES, FEATURES)), of)


def _cell(found: dict[str, Any]) -> str:
    if "ended" in found:
        return str(found["ended"])
    return f"{found['seconds']:.2f} s ({found['processor']:.2f}), {format_bytes(found['nbytes'])}"


def _common(parts: list[dict[str, Any]]) -> str:
    """Words in common with ours, from the fewest to the most features."""
    return ", ".join(f"{one['in common']:.0%}" for one in parts if "in common" in one)


def table(values: dict[str, Any]) -> str:
    head = ["way: seconds (of all processors), peak", *(f"{int(n):,} words" for n in values), "words in common"]
    ways = next(iter(values.values()))
    rows = []
    for way in ways:
        parts = [found[way] for found in values.values()]
        rows.append([way, *map(_cell, parts), "counts equal" if way.startswith(COUNTS) else _common(parts)])
    return markdown(head, rows)
