"""Weights and priors of classes, against the same weights given to every document."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.utils.class_weight import compute_sample_weight

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.errors import InputError
from nfs_dask.estimators import naive_bayes

N, M = 150, 40
LABELS = np.array(["eggs", "ham", "spam"])
BY_LABEL = {"spam": 4.0, "eggs": 0.3}
WEIGHTS = pytest.mark.parametrize("class_weight", ["balanced", BY_LABEL], ids=["balanced", "by label"])
METHODS = {
    "multinomial": lambda **more: nfs.SparseMultinomialNB(k=8, **more),
    "bernoulli": lambda **more: nfs.SparseBernoulliNB(k=8, binarize=0.0, **more),
    "error": lambda **more: nfs.ErrorRateSelector(k=6, **more),
    "error under the priors": lambda **more: nfs.ErrorRateSelector(k=6, balanced=False, **more),
    "hybrid": lambda **more: nfs.HybridNB(ridge=0.1, **more),
    "hybrid on some words": lambda **more: nfs.HybridNB(ridge=0.1, k=12, prior="fixed", **more),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    y = LABELS[rng.choice(3, N, p=[0.2, 0.7, 0.1])]
    rates = rng.gamma(0.6, 1.0, (3, M))
    return rng.poisson(rates[np.searchsorted(LABELS, y)]), y


def same(one, other, X):
    assert one.get_support(indices=True).tolist() == other.get_support(indices=True).tolist()
    np.testing.assert_allclose(one.class_count_, other.class_count_, rtol=1e-12)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@WEIGHTS
def test_weights_of_classes_are_weights_of_their_documents(data, method, class_weight):
    X, y = data
    weighted = METHODS[method]().fit(X, y, sample_weight=compute_sample_weight(class_weight, y))
    same(METHODS[method](class_weight=class_weight).fit(X, y), weighted, X)


@pytest.mark.parametrize("method", ["multinomial", "hybrid"])
def test_they_multiply_weights_of_documents(data, method):
    X, y = data
    w = np.random.default_rng(0).uniform(0.5, 2.0, N)
    given = METHODS[method](class_weight=BY_LABEL).fit(X, y, sample_weight=w)
    same(given, METHODS[method]().fit(X, y, sample_weight=w * compute_sample_weight(BY_LABEL, y)), X)


@pytest.mark.parametrize("method", ["multinomial", "bernoulli", "hybrid"])
def test_of_stores_and_dask_collections(data, method, tmp_path):
    X, y = data
    expected = METHODS[method](class_weight="balanced").fit(X, y)
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y, block_bytes=4000)
    same(METHODS[method](class_weight="balanced").fit(stored), expected, X)
    chunks = da.from_array(X, chunks=(40, M))
    same(METHODS[method](class_weight="balanced").fit(chunks, da.from_array(y, chunks=40)), expected, X)


def test_kept_counts_serve_all_weights(data, tmp_path):
    X, y = data
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y)
    nfs.SparseMultinomialNB(k=8).fit(stored)
    model = nfs.SparseMultinomialNB(k=8, class_weight="balanced").fit(stored)
    assert model.provenance_["reused"]
    np.testing.assert_array_equal(model.feature_count_, [X[y == label].sum(axis=0) for label in LABELS])


@pytest.mark.parametrize("method", ["multinomial", "bernoulli"])
def test_counts_too_wide_for_memory(data, method, tmp_path, monkeypatch):
    X, y = data
    expected = METHODS[method](class_weight="balanced").fit(X, y)
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y)
    monkeypatch.setattr(naive_bayes, "too_wide", lambda panels, n_classes: True)
    model = METHODS[method](class_weight="balanced", engine=nfs.SerialEngine(panels=3)).fit(stored)
    same(model, expected, X)


def test_documents_that_are_added_change_what_is_balanced(data):
    X, y = data
    whole = nfs.SparseMultinomialNB(k=8, class_weight="balanced").fit(X, y)
    grown = nfs.SparseMultinomialNB(k=8, class_weight="balanced").partial_fit(X[:50], y[:50], classes=LABELS)
    same(grown.partial_fit(X[50:], y[50:]), whole, X)
    np.testing.assert_allclose(grown.scores_, whole.scores_)
    less = whole.forget(X[50:], y[50:])
    same(less, nfs.SparseMultinomialNB(k=8, class_weight="balanced").fit(X[:50], y[:50]), X)


def test_gains_are_those_of_the_weighted_documents(data):
    X, y = data
    weighted = nfs.SparseBernoulliNB(k=8, binarize=0.0).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    model = nfs.SparseBernoulliNB(k=8, binarize=0.0, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(model.scores_, weighted.scores_, rtol=1e-9)


def test_cross_validation_balances_each_fold(data):
    X, y = data
    folds = np.arange(N) % 3
    found = nfs.cross_validate(X, y, method="multinomial", ks=[5, 10], folds=folds, class_weight="balanced")
    for k in (5, 10):
        right = 0
        for fold in range(3):
            model = nfs.SparseMultinomialNB(k=k, class_weight="balanced").fit(X[folds != fold], y[folds != fold])
            right += int((model.predict(X[folds == fold]) == y[folds == fold]).sum())
        assert found.accuracy.mean(axis=0)[0, list(found.ks).index(k)] == pytest.approx(right / N)
    with pytest.raises(InputError, match="weights of documents"):
        nfs.cross_validate(X, y, method="hybrid", ks=[4], folds=folds, class_weight="balanced")


@pytest.mark.parametrize("ours", [nfs.SparseMultinomialNB, nfs.SparseBernoulliNB])
def test_priors_are_scikit_learns(data, ours):
    X, y = data
    X = (X > 0).astype(np.int64)
    theirs = MultinomialNB if ours is nfs.SparseMultinomialNB else BernoulliNB
    for given, listed in (
        ({"spam": 0.2, "ham": 0.5, "eggs": 0.3}, [0.3, 0.5, 0.2]),
        ("uniform", [1 / 3] * 3),
        ([0.1, 0.2, 0.7],) * 2,
    ):
        found = ours(k="all", class_prior=given).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(found, theirs(class_prior=listed).fit(X, y).predict_proba(X), atol=1e-9)


def test_labels_that_are_numbers_may_be_written_as_texts(data):
    X, y = data
    codes = np.searchsorted(LABELS, y)
    one = nfs.SparseMultinomialNB(k=5, class_weight={0: 2, np.int64(2): 3}).fit(X, codes)
    same(nfs.SparseMultinomialNB(k=5, class_weight={"0": 2, "2": 3}).fit(X, codes), one, X)


def test_they_are_kept_in_model_files(data, tmp_path):
    X, y = data
    codes = np.searchsorted(LABELS, y)
    given = {"class_weight": {0: np.int64(2), np.int64(2): 3}, "class_prior": {0: 0.2, 1: 0.3, np.int64(2): 0.5}}
    model = nfs.SparseMultinomialNB(k=5, **given).fit(X, codes)
    model.save(tmp_path / "m")
    loaded = nfs.load_model(tmp_path / "m")
    same(loaded, model, X)
    same(nfs.SparseMultinomialNB(**loaded.get_params()).fit(X, codes), model, X)
    shown = CliRunner().invoke(cli, ["info", str(tmp_path / "m")])
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize("method", ["multinomial", "hybrid"])
def test_on_workers(data, method, tmp_path, cluster):
    X, y = data
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y, block_bytes=4000)
    same(METHODS[method](class_weight="balanced").fit(stored), METHODS[method](class_weight="balanced").fit(X, y), X)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"class_weight": "equal"}, "class_weight='equal'; give 'balanced', or a weight for labels"),
        ({"class_weight": [1, 2, 3]}, "a weight for labels such as"),
        ({"class_weight": {"spma": 2}}, r"names the class 'spma', and the classes are 'eggs', 'ham', 'spam'.*'spam'"),
        ({"class_weight": {"spam": 0}}, "finite weights above 0"),
        ({"class_weight": {"spam": "much"}}, "no number"),
        ({"class_prior": "balanced"}, "give 'uniform' for equal ones"),
        ({"class_prior": {"spam": 0.2, "ham": 0.8}}, "says nothing of 'eggs'"),
        ({"class_prior": {"spam": 0.2, "ham": 0.8, "egg": 1}}, "names the class 'egg'"),
        ({"class_prior": [0.5, 0.5]}, "Number of priors must match"),
    ],
)
def test_what_is_refused(data, given, told):
    X, y = data
    with pytest.raises(InputError, match=told):
        nfs.SparseMultinomialNB(k=3, **given).fit(X, y)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_classes_of_centers_weigh_the_same_already(data, metric):
    X, y = data
    plain = nfs.SparseCentroid(k=5, metric=metric).fit(X, y)
    weighted = nfs.SparseCentroid(k=5, metric=metric).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    np.testing.assert_allclose(plain.centers_, weighted.centers_)
    with pytest.raises(TypeError, match="all classes weigh the same"):
        nfs.SparseCentroid(class_weight="balanced")


def test_the_command_line(data, tmp_path):
    X, y = data
    nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y)

    for n, (options, given) in enumerate(
        [
            (["--class-weight", "balanced"], {"class_weight": "balanced"}),
            (["--class-weight", "spam=4,eggs=0.3"], {"class_weight": BY_LABEL}),
            (["--class-prior", "uniform"], {"class_prior": "uniform"}),
            (["--class-prior", "spam=.2,ham=.5,eggs=.3"], {"class_prior": [0.3, 0.5, 0.2]}),
            (["--class-prior", "0.3,0.5,0.2"], {"class_prior": [0.3, 0.5, 0.2]}),
        ]
    ):
        out = tmp_path / f"m{n}"
        done = CliRunner().invoke(cli, ["fit", str(tmp_path / "s.zarr"), "-k", "8", *options, str(out)])
        assert done.exit_code == 0, done.output
        same(nfs.load_model(out), nfs.SparseMultinomialNB(k=8, **given).fit(X, y), X)
    for options in (["--method", "l2", "--class-weight", "balanced"], ["--class-prior", "a=1,a=2"]):
        assert CliRunner().invoke(cli, ["fit", str(tmp_path / "s.zarr"), *options, str(tmp_path / "n")]).exit_code == 2


def test_plans_have_the_pass_that_balances(data, tmp_path):
    X, y = data
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "s.zarr", labels=y)

    def passes(**given):
        return len(nfs.HybridNB(**given).plans(stored, nfs.SerialEngine()))

    assert passes(class_weight=BY_LABEL) == passes()
    assert passes(class_weight="balanced") == passes() + 1
    assert len(nfs.SparseMultinomialNB(class_weight="balanced").plans(stored, None)) == 1
