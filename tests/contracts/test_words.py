"""Messages, names and defaults that users meet: they say what is so, in the words of the field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB

import nfs_dask as nfs

X = np.array([[3, 0, 1], [2, 0, 0], [0, 1, 4], [0, 2, 1]])
Y = ["a", "a", "b", "b"]


def test_negative_values_lead_to_the_method_that_takes_them() -> None:
    with pytest.raises(nfs.InputError, match="Negative values in data .*SparseCentroid") as refused:
        nfs.SparseMultinomialNB(k=2).fit(-X, Y)
    assert "clipped" not in str(refused.value) and "shifted" not in str(refused.value)
    assert nfs.SparseCentroid(k=2).fit(-X, Y).predict(-X).tolist() == Y


@pytest.mark.parametrize("bad", [np.nan, -1.0])
def test_a_value_in_memory_is_named_by_row_and_column(bad: float) -> None:
    broken = X.astype(float)
    broken[2, 1] = bad
    with pytest.raises(nfs.InputError, match="in row 2, column 1;") as refused:
        nfs.SparseMultinomialNB(k=2).fit(broken, Y)
    assert "block" not in str(refused.value)


def test_counts_are_binarized_as_scikit_learns_are() -> None:
    ours, theirs = nfs.SparseBernoulliNB(k="all").fit(X, Y), BernoulliNB().fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    assert ours.get_params()["binarize"] == theirs.get_params()["binarize"] == 0.0
    counted = nfs.path(X, "bernoulli", [1, 2], y=Y)
    np.testing.assert_array_equal(counted.value, nfs.path(X > 0, "bernoulli", [1, 2], y=Y).value)
    with pytest.raises(nfs.InputError, match="takes 0 and 1"):
        nfs.SparseBernoulliNB(k=2, binarize=None).fit(X, Y)


@pytest.mark.parametrize("estimator", ["SparseMultinomialNB", "SparseBernoulliNB", "SparseCentroid", "HybridNB"])
def test_a_wrong_argument_is_one_of_the_class_that_was_called(estimator: str) -> None:
    with pytest.raises(TypeError, match=rf"^{estimator}\.__init__\(\) got an unexpected keyword argument 'kk'"):
        getattr(nfs, estimator)(kk=3)


def test_the_package_lists_its_public_names_alone() -> None:
    assert dir(nfs) == sorted({*nfs.__all__, "plots"})


def test_a_word_that_one_document_repeats_is_warned_of(tmp_path: Path) -> None:
    texts = [f"win money {'now' if i % 3 else 'today'}" for i in range(40)] + ["lunch at noon tomorrow"] * 40
    texts[3] += " spamword" * 300
    labels = ["spam"] * 40 + ["ham"] * 40
    store = nfs.ingest(texts, tmp_path / "burst.zarr", labels=labels)
    said = r"1 of the 3 chosen features \(33%\) .*'spamword' is 300 times in each of 1\."
    with pytest.warns(nfs.DataWarning, match=said):
        model = nfs.SparseMultinomialNB(k=3).fit(store)
    assert "spamword" in model.get_feature_names_out()
    nfs.SparseMultinomialNB(k=3).fit(nfs.ingest(texts, tmp_path / "fewer.zarr", labels=labels, min_df=2))


def test_smoothing_of_many_absent_words_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    rare = (rng.random((250, 20_000)) < 0.001).astype(np.int8)
    classes = np.repeat(["a", "b"], [200, 50])
    with pytest.warns(nfs.DataWarning, match="with 4,000 features, smoothing alone .* nats towards the largest class"):
        model = nfs.SparseBernoulliNB(k=4_000).fit(rare, classes)
    assert (model.predict(np.zeros((1, 20_000))) == "a").all()
    nfs.SparseBernoulliNB(k=100).fit(rare, classes)


def test_one_is_singular(tmp_path: Path) -> None:
    store = nfs.ingest(X[:2], tmp_path / "one.zarr", labels=Y[:2])
    assert repr(store).endswith("1 class>")
    wide = np.tile(X, 4)[:, :11]
    shown = str(nfs.SparseMultinomialNB(k="all").fit(wide, Y).explain(wide + 1, documents=[0]))
    assert "1 more feature that contributes less" in shown


def test_a_first_command_says_that_it_compiles_once(tmp_path: Path) -> None:
    (tmp_path / "mail.csv").write_text("label,text\n" + "spam,win money now\nham,lunch at noon\n" * 50)
    command = [Path(sys.executable).with_name("nfs-dask"), "ingest", "mail.csv", "mail.zarr", "--label-column", "label"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stderr
    assert said.count("first ingest: compiling once") == 1
