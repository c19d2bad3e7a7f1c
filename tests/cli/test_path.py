"""path and plan from the command line: what a fit would give, and what it would take."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from tests.helpers.commands import as_json, run

CORPUS = GeneratedCorpus(1500, 300, 2, words_per_document=20, block_rows=400)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "corpus.zarr"
    nfs.ingest(CORPUS, path)
    return path


@pytest.fixture
def store(fresh: Path, tmp_path: Path) -> Path:
    """A store beside which nothing is kept yet."""
    return Path(shutil.copytree(fresh, tmp_path / "corpus.zarr"))


def test_path_for_people_fits_a_screen_and_reads_no_document_twice(store: Path) -> None:
    first = run("path", store, "--method", "multinomial")
    lines = [line for line in first.stdout.splitlines() if line.strip()]
    assert 20 <= len(lines) <= 26
    assert "value" in lines[1] and "relative gap" in lines[1] and "certified" in lines[1]
    assert [lines[3].split()[0], lines[-2].split()[0]] == ["1", "300"]
    assert "the documents were read" in lines[-1] and "of 300 rows shown" in lines[-1]
    assert "no document read" in run("path", store, "--alpha", 0.1).stdout
    assert len(as_json("path", store)["path"]) == 300


def test_wrong_paths_are_refused(store: Path) -> None:
    assert "--binarize is for" in run("path", store, "--binarize", 0, code=2).stderr
    assert "x>=0" in run("path", store, "--method", "bernoulli", "--binarize", -1, code=2).stderr
    assert "--ks 1,10,100" in run("path", "--help").stdout


# Plans of a fit


def test_a_plan_of_a_model_counts_what_the_fit_counts(store: Path) -> None:
    counts = as_json("plan", store, "--method", "multinomial", "-k", 0.1)
    assert counts["statistic"] == nfs.open_dataset(store).class_counts().describe()
    assert (counts["k"], counts["method"], counts["kept"]) == (30, "multinomial", False)
    presence = as_json("plan", store, "--method", "bernoulli", "--binarize", 2, "-k", "all")
    assert (presence["statistic"]["with_documents"], presence["statistic"]["threshold"]) == (True, 2.0)
    assert presence["k"] == 300
    assert "k = 10 of 300 features" in run("plan", store, "--method", "multinomial").stdout


def test_a_plan_says_that_nothing_would_be_read(store: Path) -> None:
    assert "Kept" not in run("plan", store, "--method", "multinomial").stdout
    nfs.SparseMultinomialNB(5).fit(nfs.open_dataset(store))
    assert as_json("plan", store, "--method", "multinomial")["kept"]
    assert "reads no documents" in run("plan", store, "--method", "multinomial").stdout
    assert not as_json("plan", store, "--method", "bernoulli", "--binarize", 0)["kept"]


@pytest.mark.filterwarnings("always::nfs_dask.DataWarning")
def test_a_plan_checks_k_and_the_data(store: Path) -> None:
    assert "neither a number of features" in run("plan", store, "--method", "multinomial", "-k", 0, code=2).stderr
    warned = run("plan", store, "--method", "multinomial", "-k", 1000).stderr
    assert warned.count("all are kept") == 1
    run("plan", store, "--method", "multinomial", "--binarize", 0, code=2)


def test_a_plan_takes_an_estimator_or_a_statistic(store: Path) -> None:
    dataset = nfs.open_dataset(store)
    plan = nfs.plan(dataset, nfs.SparseMultinomialNB(7))
    same = nfs.plan(dataset, dataset.class_counts())  # but for the memory that happens to be free
    assert replace(plan, resources=same.resources) == same
    assert plan.panels == 1
    own = nfs.SparseMultinomialNB(7, engine=nfs.SerialEngine(panels=3))
    assert nfs.plan(dataset, own).panels == 3
    assert nfs.plan(dataset, own, nfs.SerialEngine(panels=2)).panels == 2
    presence = nfs.plan(dataset, nfs.SparseBernoulliNB(7, binarize=0.0))
    assert presence.statistic["with_documents"]
    assert not list((store / "nfs_dask").glob("statistics/*")), "nothing was counted"
    for wrong in ("multinomial", 3, None, nfs.SparseMultinomialNB):
        with pytest.raises(nfs.InputError, match=r"SparseMultinomialNB\(k=100\)"):
            nfs.plan(dataset, wrong)
    for estimator, message in (
        (nfs.SparseMultinomialNB(0), "keeps no feature"),
        (nfs.SparseMultinomialNB(5, alpha=-1), "alpha"),
        (nfs.SparseMultinomialNB(5, solver="magic"), "magic"),
        (nfs.SparseBernoulliNB(5, binarize=None), "binarize"),
        (nfs.SparseMultinomialNB(5, class_prior=[1]), "class_prior"),
    ):
        with pytest.raises(nfs.InputError, match=message):
            nfs.plan(dataset, estimator)
    unlabelled = nfs.ingest(sp.csr_array(np.eye(3)), store.parent / "unlabelled.zarr")
    with pytest.raises(nfs.InputError, match="no labels"):
        nfs.plan(unlabelled, nfs.SparseMultinomialNB())


def test_rules_take_their_options(tmp_path: Path) -> None:
    store = tmp_path / "words.zarr"
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    nfs.ingest(rng.poisson(0.2 + 0.3 * (y[:, None] * (np.arange(40) < 8))), store, labels=y)
    given = ("path", store, "--choose", "near", "--ks", "1,2,5,10,40", "--folds", "3")
    table = nfs.cross_validate(nfs.open_dataset(store), method="multinomial", ks=[1, 2, 5, 10, 40], folds=3)
    for within, by in ((0.0, "accuracy"), (0.2, "accuracy"), (0.05, "balanced"), (0.3, "log_loss")):
        chosen = as_json(*given, "--within", within, "--by", by)["chosen"]
        assert chosen["k"] == table.choose("near", by=by, within=within)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--within", "0.1"), "--within is for --choose near"),
        (("--choose", "cv", "--within", "0.1"), "--within is for --choose near"),
        (("--choose", "elbow", "--by", "balanced"), "--by is for --choose 1se and cv and near"),
        (("--choose", "near", "--within", "1"), "1.0 is not in the range 0<=x<1"),
        (("--choose", "near", "--by", "balance"), "balanced"),
    ],
)
def test_options_of_other_rules_are_refused_before_anything_is_read(given: Any, message: str) -> None:
    refused = run("path", "nowhere.zarr", *given, code=2)
    assert message in " ".join(refused.stderr.replace("│", "").split())
