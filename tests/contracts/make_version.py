"""Write what test_versions.py opens: stores, models, kept statistics, run folders and results of this version.

``python -m tests.contracts.make_version tests/contracts/version-0.1.0.zip``, once for each version that is released.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nfs_dask as nfs
from tests.helpers.slow_blocks import slow_environment

FITS: dict[str, dict[str, Any]] = {  # for each store
    "texts": {
        "multinomial": nfs.SparseMultinomialNB(k=10),
        "smoothed": nfs.SparseMultinomialNB(k=30, alpha=0.1),
        "always": nfs.SparseMultinomialNB(k=10, always=["w100", "w101"]),
        "weighted": nfs.SparseMultinomialNB(k=10, class_weight="balanced", fit_prior=False),
        "everything": nfs.SparseMultinomialNB(k="all"),
        "bernoulli": nfs.SparseBernoulliNB(k=10, alpha=0.5),
        "l2": nfs.SparseCentroid(k=10),
        "l1": nfs.SparseCentroid(k=10, metric="manhattan"),
        "mahalanobis": nfs.SparseCentroid(k=10, metric="mahalanobis"),
        "total": nfs.SparseCentroid(k=10, metric="mahalanobis", covariance="total", variance_floor=0.01),
        "hybrid": nfs.HybridNB(),
        "fixed": nfs.HybridNB(k=20, prior="fixed", tables="separate"),
        "error": nfs.ErrorRateSelector(k=6),
        "searched": nfs.ErrorRateSelector(k=6, search="floating", n_tokens=[10]),
    },
    "pairs": {
        "multinomial": nfs.SparseMultinomialNB(k=9),
        "printed": nfs.SparseMultinomialNB(k=9, solver="bisection"),
        "bernoulli": nfs.SparseBernoulliNB(k=9),
        "l1": nfs.SparseCentroid(k=9, metric="manhattan"),
        "hybrid": nfs.HybridNB(k=15),
        "error": nfs.ErrorRateSelector(k=4, search="forward"),
    },
    "tfidf": {
        "multinomial": nfs.SparseMultinomialNB(k=10),
        "bernoulli": nfs.SparseBernoulliNB(k=10),
        "l2": nfs.SparseCentroid(k=10),
        "l1": nfs.SparseCentroid(k=30, metric="manhattan"),
    },
    "genes": {
        "l2": nfs.SparseCentroid(k=5),
        "l1": nfs.SparseCentroid(k=5, metric="manhattan"),
        "mahalanobis": nfs.SparseCentroid(k=5, metric="mahalanobis"),
        "full": nfs.SparseCentroid(k=5, metric="mahalanobis", covariance="full"),
    },
    "regions": {"hybrid": nfs.HybridNB(), "part": nfs.HybridNB(k=20)},
}


def texts(seed: int, n: int, classes: str) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    words, often = [f"w{i:03d}" for i in range(120)], 1 / np.arange(1, 121)
    rows = []
    for i in range(n):
        weight = often.copy()
        place = i % len(classes)
        weight[7 * place : 7 * place + 30 : 3] *= 2.5
        chosen = rng.choice(words, rng.integers(4, 25), p=weight / weight.sum())
        rows.append([" ".join(chosen), " ".join(chosen[:3]), classes[place]])
    return rows


def genes(n: int = 200, m: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    X = np.where(rng.random((n, m)) < 0.4, rng.normal(size=(n, m)), 0)
    X[y == 1, ::9] += 0.5
    return X, y


def write_csv(path: str, rows: list[list[str]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["text", "title", "topic"], *rows])


def inputs(name: str) -> Any:
    """What models of a store predict: raw text, or a matrix."""
    if name == "genes":
        return genes()[0]
    rows = texts(2, 40, "abc")
    return pd.DataFrame(rows, columns=["text", "title", "topic"]) if name == "regions" else [row[0] for row in rows]


def results_of(model: Any, name: str) -> dict[str, np.ndarray]:
    """Numbers of a fitted or a loaded model, by attribute."""
    found = {"support": model.get_support(indices=True), "decision": np.asarray(model.decision_function(inputs(name)))}
    for attribute in ("objective_", "upper_bound_", "dual_gap_", "certified_", "intercept_", "dual_point_", "centers_"):
        value = getattr(model, attribute, None)
        if value is not None:
            found[attribute] = np.asarray(value)
    return found


def tables_of(dataset: Any) -> dict[str, np.ndarray]:
    """Paths over k and cross-validation."""
    found = {}
    for method in ("multinomial", "bernoulli", "l2", "l1"):
        path = nfs.path(dataset, method, ks=[2, 5, 10, 40])
        found[f"path/{method}/value"], found[f"path/{method}/bound"] = path.value, path.bound
        table = nfs.cross_validate(dataset, method=method, ks=[5, 10], folds=3)
        found[f"folds/{method}"] = np.array([table.scores(k=k) for k in (5, 10)])
    return found


def command(*words: str, **how: Any) -> subprocess.Popen[str]:
    code = "from nfs_dask.cli.main import cli; cli(prog_name='nfs-dask')"
    return subprocess.Popen([sys.executable, "-c", code, *words], text=True, **how)


def make_stores() -> None:
    write_csv("texts.csv", texts(0, 300, "abc"))
    write_csv("more.csv", texts(1, 60, "abc"))
    write_csv("pairs.csv", texts(5, 200, "ab"))
    named: dict[str, Any] = {"label_column": "topic", "block_bytes": 4000}
    nfs.ingest("texts.csv", "texts", text_column="text", **named)
    nfs.ingest("pairs.csv", "pairs", text_column="text", **named)
    nfs.ingest("texts.csv", "appended", text_column="text", **named)
    nfs.ingest("more.csv", "appended", text_column="text", append=True, **named)
    nfs.ingest("texts.csv", "tfidf", text_column="text", tfidf=True, sublinear_tf=True, ngrams=(1, 2), **named)
    nfs.ingest("texts.csv", "regions", regions=["text", "title"], **named)
    X, y = genes()
    nfs.ingest(X, "genes", labels=y, block_bytes=8000)


def make_runs() -> None:
    """A run folder of a fit that is done, and one of a fit that was ended in mid-pass."""
    fit = ["fit", "texts", "run.model", "-k", "10", "--no-cache"]
    assert command(*fit, "--run", "finished").wait() == 0
    shutil.rmtree("run.model")
    slow = slow_environment(Path("slow").absolute(), 0.3, checkpoint_seconds=0)
    process = command(*fit, "--run", "ended", env=slow)
    while not Path("ended/class_counts").exists():
        time.sleep(0.05)
    time.sleep(1)  # which is three of ten blocks
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    shutil.rmtree("slow")


def make_models() -> None:
    results, digests = {}, {}
    for store, fits in FITS.items():
        dataset = nfs.open_dataset(store)
        digests[store] = dataset.fingerprint
        for name, estimator in fits.items():
            estimator.fit(dataset).save(f"{store}.{name}.model")
            for attribute, value in results_of(estimator, store).items():
                results[f"{store}/{name}/{attribute}"] = value
    for name, value in tables_of(nfs.open_dataset("texts")).items():
        results[f"texts/{name}"] = value
    np.savez_compressed("results.npz", **results)
    Path("fingerprints.json").write_text(json.dumps(digests))


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_stores()
        make_runs()
        make_models()
        shutil.make_archive(str(target.with_suffix("")), "zip", folder)
        print(f"{target}: {target.stat().st_size:,} bytes")
