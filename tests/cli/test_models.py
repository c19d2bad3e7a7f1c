"""fit, predict and evaluate from the command line."""

from __future__ import annotations

import csv
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import MultinomialNB

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.errors import InputError
from nfs_dask.estimators.loading import load_model
from nfs_dask.estimators.scikit_learn import SparseMultinomialNB
from nfs_dask.ingestion.ingest import ingest
from tests.helpers.commands import as_json, run

CORPUS = GeneratedCorpus(3000, 400, 3, words_per_document=20, block_rows=700)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "corpus.zarr"
    ingest(CORPUS, path)
    return path


def matrix() -> tuple[sp.csr_matrix, np.ndarray]:
    blocks = list(CORPUS.blocks(0, CORPUS.n_blocks))
    parts = [sp.csr_matrix((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)) for b in blocks]
    return sp.vstack(parts).tocsr(), CORPUS.classes[np.concatenate([b.codes for b in blocks])]


def test_all_features_and_priors_equal_scikit_learn(store: Path, tmp_path: Path) -> None:
    X, y = matrix()
    run("fit", store, tmp_path / "m", "-k", "all", "--alpha", 0.3, "--class-prior", "0.2,0.3,0.5")
    theirs = MultinomialNB(alpha=0.3, class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    np.testing.assert_allclose(load_model(tmp_path / "m").predict_proba(X), theirs.predict_proba(X), atol=1e-12)


def test_a_run_is_resumed_or_refused(store: Path, tmp_path: Path) -> None:
    run("fit", store, tmp_path / "m", "--run", tmp_path / "run", "--no-cache")
    message = run("fit", store, tmp_path / "n", "--run", tmp_path / "run", "--no-cache", code=3).stderr
    assert "--resume" in message
    assert as_json("fit", store, tmp_path / "n", "--resume", tmp_path / "run", "--no-cache")["counts_reused"]
    run("fit", store, tmp_path / "other", "--resume", tmp_path / "nowhere", code=3)
    run("fit", store, tmp_path / "m", "--resume", "a", "--run", "b", code=2)


def test_bad_input_has_its_exit_code(store: Path, tmp_path: Path) -> None:
    assert "no such word" in run("fit", store, tmp_path / "m", "--always", "no such word", code=3).stderr
    run("fit", store, tmp_path / "m", "--method", "bernoulli", "--solver", "cuts", code=2)
    run("predict", tmp_path / "nothing", store, code=3)
    assert not (tmp_path / "m").exists()
    other = tmp_path / "other.zarr"
    ingest(GeneratedCorpus(100, 50, 2, planted=2), other)
    run("fit", store, tmp_path / "m")
    assert "400" in run("evaluate", tmp_path / "m", other, code=3).stderr


def test_a_model_that_could_not_be_written_is_refused_before_anything_is_read(store: Path, tmp_path: Path) -> None:
    place = tmp_path / "notes"
    place.write_text("mine")
    refused = run("fit", store, place, "--run", tmp_path / "run", code=3)
    assert "is not a model; name a new place" in refused.stderr
    assert not (tmp_path / "run").exists() and place.read_text() == "mine"


def test_odd_labels_and_names_come_through(tmp_path: Path) -> None:
    labels = np.array(['<script>alert("x")</script>', "a label, with spaces\nand lines"])
    X = sp.csr_matrix(np.array([[3, 0, 1], [2, 1, 0], [0, 3, 1], [0, 2, 2]] * 5))
    names = ["<b>bold</b>", "two words", "näme"]
    ingest(X, tmp_path / "odd.zarr", labels=labels[np.arange(20) % 4 // 2], names=names)
    values = as_json("fit", tmp_path / "odd.zarr", tmp_path / "m", "-k", 2)
    assert values["classes"] == sorted(labels.tolist())
    out = tmp_path / "out.csv"
    run("predict", tmp_path / "m", tmp_path / "odd.zarr", "--out", out)
    with out.open(newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == set(labels)
    run("evaluate", tmp_path / "m", tmp_path / "odd.zarr")


def test_a_loaded_model_says_that_it_has_no_counts(store: Path, tmp_path: Path) -> None:
    X, y = matrix()
    fitted = SparseMultinomialNB(k=15, alpha=0.5, always=[3, 9], class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    fitted.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.transform(X).toarray(), fitted.transform(X).toarray())
    assert loaded.top_features() == fitted.top_features()
    for act in (lambda: loaded.partial_fit(X, y), lambda: loaded.forget(X, y), lambda: loaded.scores_):
        with pytest.raises(InputError, match="loaded from a file"):
            act()
    assert loaded.fit(X, y).scores_.shape == (400,)


def test_an_ingest_cleans_up_after_one_that_died(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(np.eye(4)))
    np.save(tmp_path / "y.npy", np.array(["a", "b", "a", "b"]))
    ingested = ("ingest", tmp_path / "X.npz", "--labels", tmp_path / "y.npy")
    run(*ingested, tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / "nfs_dask" / "writing").write_text("{}")  # the claim of a writer that was killed
    assert "--clean-up" in run(*ingested, tmp_path / "s.zarr", "--append", code=3).stderr
    assert as_json(*ingested, tmp_path / "s.zarr", "--append", "--clean-up")["rows"] == 8


def test_a_pipe_is_written_to_and_stays_one(store: Path, tmp_path: Path) -> None:
    run("fit", store, tmp_path / "m", "-k", 20)
    run("predict", tmp_path / "m", store, "--out", tmp_path / "whole.csv")
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    run("predict", tmp_path / "m", store, "--out", pipe)
    reader.join(30)
    assert read == [(tmp_path / "whole.csv").read_text()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    run("predict", tmp_path / "m", store, "--out", tmp_path, code=3)
