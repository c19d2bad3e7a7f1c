"""The hybrid naive Bayes from the command line: fit, plan, predict, evaluate and info."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from nfs_dask import HybridNB, SparseMultinomialNB
from nfs_dask.prediction.coverage import Reliability
from nfs_dask.store.layout import Layout
from tests.helpers.clusters import TwoWorkers
from tests.helpers.commands import as_json, run

N, WORDS = 240, 40
CLASSES = ("ham", "junk", "spam")
PARAMETERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "few": {"k": 8, "ridge": 0.1},
    "sums": {"normalize": False, "tables": "separate", "prior": "fixed", "alpha": 0.5},
}
each = pytest.mark.parametrize("name", PARAMETERS)


def letters(n: int = N, n_classes: int = 2, seed: int = 0) -> list[dict[str, str]]:
    """Letters whose words differ a little between folders; each repeats words of its own."""
    rng = np.random.default_rng(seed)
    tilt = np.random.default_rng(7).normal(0, 0.6, (n_classes, WORDS))
    words = np.array([f"word{i}" for i in range(WORDS)])
    made = []
    for i in range(n):
        often = np.exp(tilt[i % n_classes]) * rng.gamma(0.4, size=WORDS)
        subject, body = (rng.choice(words, size=size, p=often / often.sum()) for size in (rng.integers(0, 5), 25))
        folder = CLASSES[i % n_classes]
        made.append({"subject": " ".join(subject), "body": " ".join(body), "folder": folder})
    return made


def write(path: Path, some: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(letter) + "\n" for letter in some))
    return path


def options(name: str) -> list[Any]:
    """What says the parameters on the command line."""
    words: list[Any] = ["--method", "hybrid"]
    for key, value in PARAMETERS[name].items():
        words += ["--no-normalize"] if key == "normalize" else ["-k" if key == "k" else f"--{key}", value]
    return words


@pytest.fixture(params=[2, 3], ids=["two", "three"], scope="module")
def n_classes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, n_classes: int) -> Path:
    folder = tmp_path_factory.mktemp("written")
    path = write(folder / "letters.jsonl", letters(n_classes=n_classes))
    run("ingest", path, "--region", "subject", "--region", "body", "--label-column", "folder", folder / "letters.zarr")
    return folder / "letters.zarr"


@pytest.fixture
def store(tmp_path: Path, written: Path) -> Path:
    """A store of two regions, beside which nothing is kept yet, and its documents."""
    return Path(shutil.copytree(written.parent, tmp_path, dirs_exist_ok=True)) / written.name


def blocks_of(store: Path, place: Path) -> Path:
    """The same data in several blocks, without texts: a matrix."""
    from nfs_dask.store.writer import write_store

    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(nfs.open_dataset(store).source, place, layout=layout)
    assert nfs.open_dataset(place).source.n_blocks > 4
    return place


@each
def test_fit_is_that_of_the_library(store: Path, tmp_path: Path, name: str, n_classes: int) -> None:
    values = as_json("fit", store, tmp_path / "m", *options(name))
    dataset = nfs.open_dataset(store, reuse=False)
    model = HybridNB(**PARAMETERS[name]).fit(dataset)
    n_words = PARAMETERS[name].get("k", WORDS)
    assert (values["method"], values["rows"], values["features"]) == ("hybrid", N, 2 * WORDS)
    assert values["k"] == 2 * n_words
    assert values["classes"] == list(CLASSES[:n_classes])
    assert values["theta"] == pytest.approx(model.theta_.tolist(), rel=1e-9)
    assert list(values["slopes"]) == ["subject", "body"]
    assert list(values["slopes"].values()) == values["theta"][n_classes - 1 :]
    assert values["objective"] == pytest.approx(model.objective_, rel=1e-9)
    assert values["measure"] == ("multinomial log likelihood" if name == "few" else "log likelihood")
    assert values["upper_bound"] - values["objective"] == pytest.approx(values["gap"])
    assert (values["passes"], values["reads"], values["counts_reused"]) == (2, 2, False)
    loaded = nfs.load_model(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_allclose(loaded.theta_, model.theta_, rtol=1e-9)
    np.testing.assert_array_equal(loaded.get_support(), model.get_support())
    assert {label: [n for n, _ in top] for label, top in values["top_features"].items()} == {
        label: [n for n, _ in top] for label, top in model.top_features().items()
    }


def test_the_choice_of_words_is_that_of_a_multinomial_model(store: Path, tmp_path: Path) -> None:
    values = as_json("fit", store, tmp_path / "m", *options("few"))
    words = nfs.open_dataset(store).source
    X = np.vstack([to_dense(block) for block in words.blocks(0, words.n_blocks)])
    y = [letter["folder"] for letter in letters(n_classes=len(values["classes"]))]
    chosen = SparseMultinomialNB(k=8).fit(X[:, :WORDS] + X[:, WORDS:], y)
    support = nfs.load_model(tmp_path / "m").get_support(indices=True)
    np.testing.assert_array_equal(
        support, np.concatenate([chosen.get_support(indices=True) + r * WORDS for r in (0, 1)])
    )
    assert values["objective"] == pytest.approx(chosen.objective_)


def to_dense(block: Any) -> Any:
    rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
    dense = np.zeros((block.n_rows, block.n_features))
    dense[rows, block.indices] = block.data
    return dense


@pytest.mark.parametrize("n_classes", [2], indirect=True)
def test_counts_are_read_once_and_features_always(store: Path, tmp_path: Path) -> None:
    fit = ("fit", store, tmp_path / "m", "--method", "hybrid", "--overwrite")
    assert not as_json("plan", store, "--method", "hybrid")["kept"]
    first = run(*fit).stdout
    assert "hybrid: 80 of 80 features, 240 documents" in first
    assert "2 passes, 2 reads of the data" in first and "theta: subject " in first
    assert "no other choice" not in first
    assert as_json("plan", store, "--method", "hybrid")["kept"]
    assert "a fit reads the documents for features only" in run("plan", store, "--method", "hybrid").stdout
    again = as_json(*fit, "-k", 5, "--ridge", 1)
    assert (again["passes"], again["reads"], again["counts_reused"]) == (1, 1, False)
    assert "one pass over the data" in run(*fit, "-k", 5).stdout
    # The counts are those of a multinomial model.
    assert as_json("fit", store, tmp_path / "n", "--method", "multinomial")["counts_reused"]
    assert as_json(*fit, "--no-cache")["reads"] == 2


@pytest.mark.parametrize("n_classes", [2], indirect=True)
def test_a_plan_counts_the_features_that_a_fit_has(store: Path, tmp_path: Path) -> None:
    for k, kept in ((8, 16), (0.5, 40), ("all", 80)):
        values = as_json("plan", store, "--method", "hybrid", "-k", k)
        assert (values["method"], values["k"], values["kept"]) == ("hybrid", kept, False)
        assert {"class_counts", "collected_rows"} <= set(_statistics(values))
        assert f"k = {kept} of 80 features" in run("plan", store, "--method", "hybrid", "-k", k).stdout
    assert as_json("plan", store, "--method", "hybrid")["k"] is None
    assert not list((store / "nfs_dask").glob("statistics/*"))
    assert as_json("fit", store, tmp_path / "m", "--method", "hybrid", "-k", 0.5, "--overwrite")["k"] == 40


def _statistics(values: Any) -> list[str]:
    """The names of all statistics in a plan."""
    if isinstance(values, dict):
        own = [values["statistic"]] if isinstance(values.get("statistic"), str) else []
        return own + [name for value in values.values() for name in _statistics(value)]
    return [name for value in values for name in _statistics(value)] if isinstance(values, list) else []


@each
def test_raw_text_is_read_by_its_regions(store: Path, tmp_path: Path, name: str, n_classes: int) -> None:
    run("fit", store, tmp_path / "m", *options(name))
    some = letters(60, n_classes, seed=1)
    files = write(tmp_path / "more.jsonl", some), tmp_path / "more.csv"
    pd.DataFrame(some).to_csv(files[1], index=False)
    model = nfs.load_model(tmp_path / "m")
    texts = [{"subject": one["subject"], "body": one["body"]} for one in some]
    for file in files:
        values = as_json("predict", tmp_path / "m", file)
        assert values["labels"] == model.predict(texts).tolist()
        np.testing.assert_allclose(values["probabilities"], model.predict_proba(texts).max(axis=1), rtol=1e-9)
        assert "margins" not in values
    ((header, *lines),) = [list(csv.reader(io.StringIO(run("predict", tmp_path / "m", files[0]).stdout)))]
    assert header == ["row", "label", "probability"] and len(lines) == 60
    renamed = [{"head": one["subject"], "text": one["body"]} for one in some]
    other = as_json(
        "predict", tmp_path / "m", write(tmp_path / "r.jsonl", renamed), "--region", "head", "--region", "text"
    )
    assert other["labels"] == values["labels"]
    bodies = [{"body": one["body"]} for one in some]
    assert "subject" in run("predict", tmp_path / "m", write(tmp_path / "b.jsonl", bodies), code=3).stderr


@each
def test_a_store_and_its_texts_are_evaluated_alike(store: Path, tmp_path: Path, name: str) -> None:
    run("fit", store, tmp_path / "m", *options(name))
    of_store = as_json("evaluate", tmp_path / "m", store)
    of_texts = as_json("evaluate", tmp_path / "m", tmp_path / "letters.jsonl", "--label-column", "folder")
    assert of_store["confusion"] == of_texts["confusion"]
    for key in ("coverage", "reliability", "expected_calibration_error"):
        assert of_store[key] == of_texts[key]


@each
def test_evaluate_judges_probabilities(store: Path, tmp_path: Path, name: str, n_classes: int) -> None:
    run("fit", store, tmp_path / "m", *options(name))
    some = letters(90, n_classes, seed=2)
    more = write(tmp_path / "more.jsonl", some)
    values = as_json("evaluate", tmp_path / "m", more, "--label-column", "folder")
    model = nfs.load_model(tmp_path / "m")
    y = np.array([one.pop("folder") for one in some])
    right = model.predict(some) == y
    assert (values["n"], values["accuracy"]) == (90, pytest.approx(right.mean()))

    # By hand: documents in the order of the odds of their class, of which equal ones share what is right.
    posteriors = model.predict_proba(some)
    best = posteriors.max(axis=1)
    _, group = np.unique(best.round(9), return_inverse=True)
    shared = np.bincount(group, right)[group] / np.bincount(group)[group]
    accuracy = np.cumsum(shared[np.argsort(-best, kind="stable")]) / np.arange(1, 91)
    coverage = values["coverage"]
    assert (coverage["n"], len(coverage["coverage"])) == (90, 100)
    assert coverage["coverage"][-1] == 1 and coverage["accuracy"][-1] == pytest.approx(right.mean())
    for share in (10, 50, 90):  # of 100, where a document ends
        assert coverage["accuracy"][share - 1] == pytest.approx(accuracy[round(0.9 * share) - 1], abs=0.02)
    assert set(coverage["at_accuracy"]) == {"0.9", "0.95", "0.99"}
    for wanted, share in coverage["at_accuracy"].items():
        enough = np.flatnonzero(accuracy >= float(wanted) - 1e-12)
        assert share == pytest.approx((enough[-1] + 1) / 90 if len(enough) else 0, abs=0.03)

    bins = np.minimum((best * 10).astype(int), 9)
    off = sum(abs(right[bins == b].mean() - best[bins == b].mean()) * (bins == b).sum() for b in set(bins)) / 90
    assert values["expected_calibration_error"] == pytest.approx(off, abs=1e-6)
    assert [row["n"] for row in values["reliability"]] == np.bincount(bins)[np.bincount(bins) > 0].tolist()
    assert set(values["reliability"][0]) == {"from", "to", "n", "posterior", "accuracy"}
    assert values["reliability"] == Reliability.of(posteriors, y, classes=model.classes_).table()
    text = run("evaluate", tmp_path / "m", more, "--label-column", "folder").stdout
    assert "covered at an accuracy of 90%: " in text and "expected calibration error " in text
    assert "Probabilities" in text


@each
def test_info_tells_what_a_model_is(store: Path, tmp_path: Path, name: str, n_classes: int) -> None:
    fitted = as_json("fit", store, tmp_path / "m", *options(name))
    values = as_json("info", tmp_path / "m")
    assert (values["type"], values["method"], values["measure"]) == ("model", "hybrid", fitted["measure"])
    assert values["slopes"] == fitted["slopes"]
    assert values["parameters"] == {k: v for k, v in HybridNB(**PARAMETERS[name]).get_params().items() if k != "engine"}
    assert values["text"]["regions"] == ["subject", "body"]
    assert values["class_count"] == [N // n_classes] * n_classes
    assert [one["name"] for one in values["provenance"]["passes"]] == ["counts", "features"]
    text = run("info", tmp_path / "m").stdout
    assert "theta        subject " in text and "regions      subject, body" in text
    assert ("no other choice" in text) == (name == "few")


@pytest.mark.parametrize("n_classes", [2], indirect=True)
def test_a_matrix_takes_the_number_of_regions(store: Path, tmp_path: Path) -> None:
    matrix = blocks_of(store, tmp_path / "matrix.zarr")
    one, two = (as_json("fit", matrix, tmp_path / f"m{r}", "--method", "hybrid", "--regions", r) for r in (1, 2))
    assert (list(one["slopes"]), list(two["slopes"])) == (["region 0"], ["region 0", "region 1"])
    of_texts = as_json("fit", store, tmp_path / "m", "--method", "hybrid")
    assert two["theta"] == pytest.approx(of_texts["theta"], rel=1e-9)
    assert as_json("plan", matrix, "--method", "hybrid", "--regions", 2, "-k", 8)["k"] == 16
    assert as_json("plan", matrix, "--method", "hybrid", "-k", 8)["k"] == 8
    assert as_json("predict", tmp_path / "m2", matrix)["labels"] == as_json("predict", tmp_path / "m", store)["labels"]
    for place, regions, message in ((matrix, 3, "not 3 equal parts"), (store, 1, "subject, body")):
        wrong = run("fit", place, tmp_path / "no", "--method", "hybrid", "--regions", regions, code=3).stderr
        assert wrong.startswith(f"Error: --regions {regions}") and message in wrong
    run("fit", matrix, tmp_path / "no", "--method", "hybrid", "--regions", 0, code=2)
    assert not (tmp_path / "no").exists()


def test_separable_documents_need_a_ridge(tmp_path: Path) -> None:
    X = np.array([[3, 0, 1], [4, 1, 0], [5, 0, 0], [0, 3, 1], [1, 4, 0], [0, 5, 0]])
    nfs.ingest(X, tmp_path / "s.zarr", labels=["a", "a", "a", "b", "b", "b"])
    fit = ("fit", tmp_path / "s.zarr", tmp_path / "m", "--method", "hybrid", "--overwrite")
    message = run(*fit, "--ridge", 0, code=3).stderr
    assert "separable" in message and "ridge > 0" in message
    assert not (tmp_path / "m").exists()
    assert as_json(*fit)["theta"][1] > 0
    assert run(*fit, "--alpha", 0, code=3).stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("n_classes", [2], indirect=True)
def test_options_of_other_methods_are_wrong_usage(store: Path, tmp_path: Path) -> None:
    others: list[list[Any]] = [
        ["--binarize", 0],
        ["--covariance", "total"],
        ["--variance-floor", 1],
        ["--solver", "cuts"],
        ["--always", "subject:word1"],
        ["--no-fit-prior"],
        ["--class-prior", "0.5,0.5"],
    ]
    for arguments in others:
        message = run("fit", store, tmp_path / "m", "--method", "hybrid", *arguments, code=2).stderr
        assert f"{arguments[0]} is for --method" in message and "hybrid has no such parameter" in message
    own: list[list[Any]] = [
        ["--regions", 2],
        ["--ridge", 1],
        ["--no-normalize"],
        ["--prior", "fixed"],
        ["--tables", "separate"],
    ]
    for method in ("multinomial", "bernoulli", "l2", "l1", "mahalanobis"):
        for arguments in own:
            message = run("fit", store, tmp_path / "m", "--method", method, *arguments, code=2).stderr
            assert f"{arguments[0]} is for --method hybrid; {method} has no such parameter" in message
    for arguments in (["--prior", "flat"], ["--tables", "both"], ["--regions", "two"]):
        run("fit", store, tmp_path / "m", "--method", "hybrid", *arguments, code=2)
    run("path", store, "--method", "hybrid", code=2)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("n_classes", [2], indirect=True)
@pytest.mark.parametrize("held", [None, 0], ids=["collected", "stored"])
def test_a_run_is_resumed_or_refused(
    store: Path, tmp_path: Path, held: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if held is not None:  # so that features go into files, and each step is a pass over them
        monkeypatch.setattr("nfs_dask.methods.slopes.HELD", held)
    matrix = blocks_of(store, tmp_path / "matrix.zarr")
    fit = ("fit", matrix, tmp_path / "m", "--method", "hybrid", "--regions", 2, "--no-cache", "--overwrite")
    first = as_json(*fit, "--run", tmp_path / "run")
    passes = as_json("info", tmp_path / "run")["passes"]
    assert all(one["finished"] for one in passes)
    names = {one["statistic"] for one in passes}
    assert names == {"class_counts", "collected_rows" if held is None else "fit_sums"}
    assert "--resume" in run(*fit, "--run", tmp_path / "run", code=3).stderr
    again = as_json(*fit, "--resume", tmp_path / "run")
    assert again["theta"] == first["theta"]
    assert (again["top_features"], again["objective"]) == (first["top_features"], first["objective"])
    assert (first["counts_reused"], again["counts_reused"], again["passes"]) == (False, True, 0)
    assert first["passes"] == (2 if held is None else first["passes"]) and first["reads"] >= 2
    assert len(as_json("info", tmp_path / "run")["passes"]) == len(passes)
    run(*fit, "--resume", tmp_path / "nowhere", code=3)


@pytest.mark.parametrize("n_classes", [2], indirect=True)
def test_it_is_the_same_on_workers(store: Path, tmp_path: Path, shared_workers: TwoWorkers) -> None:
    here = as_json("fit", store, tmp_path / "here", "--method", "hybrid", "--no-cache")
    cluster = ("--scheduler", shared_workers.whole().scheduler_address)
    there = as_json("fit", store, tmp_path / "there", "--method", "hybrid", "--no-cache", *cluster)
    assert there["theta"] == pytest.approx(here["theta"], rel=1e-9)
    judged = as_json("evaluate", tmp_path / "there", store, *cluster)
    assert (
        judged["coverage"]["n"] == N
        and judged["confusion"] == as_json("evaluate", tmp_path / "here", store)["confusion"]
    )
