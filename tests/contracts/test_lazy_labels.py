"""Labels and weights of Dask stay with the rows: the client learns what they add up to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs

RNG = np.random.default_rng(0)
CODES = RNG.integers(2, size=600)
X, Y = RNG.poisson(RNG.gamma(1.0, 1.0, (2, 20))[CODES] + 0.3), np.array(["ham", "spam"])[CODES]
LAZY, LABELS = da.from_array(X, chunks=(100, 20)), da.from_array(Y, chunks=100)
PAIRS = ((LAZY, LABELS), (X, Y))


@pytest.fixture(scope="module")
def model() -> nfs.SparseMultinomialNB:
    return nfs.SparseMultinomialNB(k=5).fit(X, Y)


def test_scores_of_lazy_rows_and_labels_are_those_of_arrays(model: nfs.SparseMultinomialNB) -> None:
    weights = np.arange(600.0)
    assert model.score(LAZY, LABELS) == model.score(X, Y)
    lazy = model.score(LAZY, LABELS, da.from_array(weights, chunks=100))
    assert lazy == pytest.approx(model.score(X, Y, weights), rel=1e-12)
    ours, theirs = nfs.evaluate(model, LAZY, LABELS).to_json(), nfs.evaluate(model, X, Y).to_json()
    np.testing.assert_array_equal(ours.pop("confusion"), theirs.pop("confusion"))
    np.testing.assert_equal(ours, theirs)
    assert model.score(LAZY, LABELS.rechunk(200)) == model.score(X, Y)
    in_a_bag = nfs.evaluate(model, LAZY, db.from_sequence(Y.tolist(), npartitions=3))
    np.testing.assert_array_equal(in_a_bag.confusion, nfs.evaluate(model, X, Y).confusion)
    with pytest.raises(nfs.InputError, match="6 and 3 partitions"):
        model.score(LAZY, db.from_sequence(Y.tolist(), npartitions=3))


@pytest.mark.parametrize("bring", [lambda: (LAZY, LABELS), lambda: (nfs.open_dataset(LAZY), LABELS), lambda: (LAZY, Y)])
def test_a_report_of_lazy_rows_shows_the_same_documents(model: nfs.SparseMultinomialNB, bring: Any) -> None:
    assert nfs.report(model, *bring(), title="t").html == nfs.report(model, X, Y, title="t").html


def test_partitions_without_labels_or_with_others_only_are_part_of_the_whole(model: nfs.SparseMultinomialNB) -> None:
    labels = Y.astype(object)
    labels[:100], labels[100:200] = None, "other"
    with pytest.warns(nfs.DataWarning, match="100 of 500 documents have labels the model was not fitted to"):
        ours = nfs.evaluate(model, LAZY, da.from_array(labels, chunks=100))
    with pytest.warns(nfs.DataWarning, match="100 of 500"):
        np.testing.assert_array_equal(ours.confusion, nfs.evaluate(model, X, labels).confusion)


FOLDS = RNG.choice(["u", "v", "w"], 600)


@pytest.mark.parametrize(
    "folds",
    [
        da.from_array(FOLDS, chunks=100),
        da.from_array(FOLDS, chunks=250),
        db.from_sequence(FOLDS.tolist(), npartitions=6),
        dd.from_pandas(pd.Series(pd.Categorical(FOLDS, categories=["u", "v", "w", "nowhere"])), npartitions=6),
    ],
)
@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("method", ["multinomial", "hybrid"])
def test_lazy_folds_are_the_same_folds(folds: Any, few: bool, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:  # in place of more than a million rows
        monkeypatch.setattr("nfs_dask.sources.dask_matrices.MOST_CODES", 10)
    ours = nfs.cross_validate(LAZY, LABELS, method=method, ks=[3], folds=folds)
    theirs = nfs.cross_validate(X, Y, method=method, ks=[3], folds=FOLDS)
    np.testing.assert_array_equal(ours.right, theirs.right)
    np.testing.assert_array_equal(ours.documents, theirs.documents)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-12)


@pytest.mark.parametrize("most", [10, 1 << 20])
def test_lazy_folds_that_are_none_are_refused(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.sources.dask_matrices.MOST_CODES", most)
    without = np.where(np.arange(600) == 7, None, FOLDS)
    for folds, message in ((without, "no fold"), (FOLDS[:-1], "599"), (np.full(600, "u"), "at least two")):
        with pytest.raises(nfs.InputError, match=message):
            nfs.cross_validate(LAZY, LABELS, method="l2", ks=[3], folds=da.from_array(folds, chunks=100))


def test_curves_and_counts_of_lazy_predictions_are_those_of_arrays(model: nfs.SparseMultinomialNB) -> None:
    for says in (model.decision_function, model.predict_log_proba):
        ours = nfs.accuracy_coverage(says(LAZY), LABELS, at_zero=0)
        theirs = nfs.accuracy_coverage(says(X), Y, at_zero=0)
        at = np.rint(ours.coverage * 600).astype(int) - 1
        np.testing.assert_allclose(ours.accuracy, theirs.accuracy[at], rtol=1e-12)
        assert ours.n == 600 and ours.coverage[-1] == 1 and len(at) > 200
    numbers = nfs.accuracy_coverage(model.decision_function(LAZY), da.from_array(CODES, chunks=200), at_zero=0)
    assert numbers.accuracy[-1] == model.score(X, Y)
    with pytest.raises(nfs.InputError, match="y has 1 labels, the scores are of 2 classes"):
        nfs.accuracy_coverage(model.decision_function(LAZY), da.full(600, "ham", chunks=100))
    ours, theirs = (nfs.plots.ReliabilityDisplay.from_predictions(y, model.predict_proba(x)) for x, y in PAIRS)
    np.testing.assert_array_equal(ours.right, theirs.right)
    np.testing.assert_array_equal(ours.posterior, theirs.posterior)
    ours, theirs = (nfs.plots.ConfusionDisplay.from_predictions(y, model.predict(x)) for x, y in PAIRS)
    np.testing.assert_array_equal(ours.confusion, theirs.confusion)
    assert ours.labels.tolist() == ["ham", "spam"]


TEXTS = [f"{'cheap' if i % 3 else 'lunch'} word{i % 5}" for i in range(40)]
IN_A_BAG = db.from_sequence(TEXTS, npartitions=4)
SORTS = db.from_sequence(["a", "b"] * 20, npartitions=4)


@pytest.mark.parametrize(
    "texts", [IN_A_BAG, dd.from_pandas(pd.Series(TEXTS), npartitions=4), IN_A_BAG.map(lambda text: {"text": text})]
)
def test_weights_and_labels_stay_beside_texts_of_every_kind(texts: Any, tmp_path: Path) -> None:
    weights = np.arange(40) / 4
    theirs = nfs.ingest(TEXTS, tmp_path / "listed.zarr", labels=["a", "b"] * 20, weights=weights)
    for number, given in enumerate(
        (da.from_array(weights, chunks=10), db.from_sequence(weights, npartitions=4), weights)
    ):
        ours = nfs.ingest(texts, tmp_path / f"{number}.zarr", labels=SORTS.map(str), weights=given)
        assert ours.fingerprint == theirs.fingerprint


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"labels": SORTS.map(lambda label: None if label == "b" else label)},
            "partition .: labels= has none for document",
        ),
        ({"weights": da.ones(39, chunks=10)}, "partition 3: X has 10 rows but sample_weight has 9"),
        ({"weights": da.ones(40, chunks=20)}, "lie in 4 partitions and weights= in 2"),
        ({"weights": -da.ones(40, chunks=10)}, "partition .: sample_weight -1.0 in row 0"),
    ],
)
def test_what_does_not_belong_beside_texts_is_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(nfs.InputError, match=message):
        nfs.ingest(IN_A_BAG, tmp_path / "s.zarr", **given)


def test_texts_of_dask_are_judged_with_their_hardest_documents(tmp_path: Path) -> None:
    model = nfs.SparseMultinomialNB(k=5).fit(nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=["a", "b"] * 20))
    frame = dd.from_pandas(pd.DataFrame({"text": TEXTS, "label": ["a", "b"] * 20}), npartitions=4)
    theirs = nfs.report(model, TEXTS, ["a", "b"] * 20, title="t").html
    assert nfs.report(model, IN_A_BAG, SORTS, title="t").html == theirs
    assert nfs.report(model, frame, label_column="label", title="t").html == theirs
    assert "word3" in theirs


def test_labels_of_a_bag_stay_beside_its_texts(tmp_path: Path) -> None:
    texts, labels = [f"{'cheap' if i % 3 else 'lunch'} word{i % 5}" for i in range(40)], ["a", "b"] * 20
    lazy = nfs.ingest(
        db.from_sequence(texts, npartitions=4),
        tmp_path / "lazy.zarr",
        labels=db.from_sequence(labels, npartitions=4),
    )
    listed = nfs.ingest(texts, tmp_path / "listed.zarr", labels=labels)
    assert lazy.fingerprint == listed.fingerprint
    with pytest.raises(nfs.InputError, match="4 partitions and labels= in 2"):
        nfs.ingest(
            db.from_sequence(texts, npartitions=4),
            tmp_path / "other.zarr",
            labels=db.from_sequence(labels, npartitions=2),
        )


SCRIPT = """
import dask.bag as db
import numpy as np
import nfs_dask as nfs

X = np.array([[3, 0, 1], [2, 0, 0], [0, 1, 4], [0, 2, 1]])
y = db.from_sequence(["a", "a", "b", "b"], npartitions=2)
print(nfs.SparseMultinomialNB(k=2).fit(X, y).predict(X).tolist())
"""


def test_a_script_without_a_guard_takes_labels_of_a_bag(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "['a', 'a', 'b', 'b']", done.stderr


MANY = """
import resource, sys
from fractions import Fraction
import dask.array as da, dask.bag as db
import numpy as np
import nfs_dask as nfs
from distributed import Client, LocalCluster

def reached():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def rows(n, chunk):
    y = da.arange(n, chunks=chunk) % 2
    return ((da.arange(n, chunks=chunk)[:, None] + da.arange(2, chunks=2)[None, :]) % 2).astype(np.int8), y

def fit(n, chunk):
    X, y = rows(n, chunk)
    nfs.SparseMultinomialNB(k="all").fit(X, y)

def judge(n, chunk):
    X, y = rows(n, chunk)
    assert model.score(X, y) == 1 == nfs.evaluate(model, X, y).accuracy
    nfs.report(model, X, y)

def fold(n, chunk):
    X, y = rows(n, chunk)
    folds = da.arange(n, chunks=chunk) // 2 % 3
    assert nfs.cross_validate(X, y, method="multinomial", ks=["all"], folds=folds).right.sum() == n

def cover(n, chunk):
    X, y = rows(n, chunk)
    assert nfs.accuracy_coverage(model.decision_function(X), y).accuracy[-1] == 1
    nfs.plots.ReliabilityDisplay.from_predictions(y, model.predict_proba(X))
    assert np.trace(nfs.plots.ConfusionDisplay.from_predictions(y, model.predict(X)).confusion) == n

def weigh(n, chunk):
    numbers = db.range(n // 20, npartitions=n // chunk)
    labels, weights = numbers.map(lambda i: "Aa"[i % 2] * 100), numbers.map(lambda i: Fraction(10**30 + i, 10**31))
    texts = numbers.map(lambda i: "tea" if i % 2 else "coffee")
    nfs.ingest(texts, sys.argv[2], labels=labels, weights=weights, overwrite=True)

if __name__ == "__main__":
    import matplotlib
    matplotlib.use("Agg")
    n = int(float(sys.argv[1]))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        X, y = rows(100, 50)
        model = nfs.SparseMultinomialNB(k="all").fit(X.compute(), y.compute())
        steps = fit, judge, fold, cover, weigh
        for step in steps:
            step(400, 100)
        before = reached()
        for step in steps[:2] if n > 10**7 else steps:
            step(n, n // 20)
            print(step.__name__, reached() - before, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("rows", ["1e7", "1e8"])
def test_no_row_reaches_the_client(rows: str, tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    command = [sys.executable, tmp_path / "many.py", rows, tmp_path / "s.zarr"]
    environment = os.environ | {"DASK_DISTRIBUTED__WORKER__DAEMON": "true"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1180, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    grown = dict(line.split() for line in done.stdout.splitlines())
    assert list(grown) == ["fit", "judge", "fold", "cover", "weigh"][: 2 if rows == "1e8" else 5]
    assert max(map(int, grown.values())) < 50  # MiB; one byte of each of 1e8 rows is 95, a number of each of 1e7 is 76
