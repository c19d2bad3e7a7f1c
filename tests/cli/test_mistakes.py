"""Mistakes that people make: each is answered by what was given, what is allowed and what to do next.

In the words of the door through which it came: a shell knows no `labels=`, and Python no `--labels`.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from tests.helpers.commands import run
from tests.helpers.places import ROOT

LABELS = np.array(["good", "bad"])[np.arange(60) % 2]
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(1.0, (60, 14)))
TEXTS = [f"a {'fine' if label == 'good' else 'dull'} film, take {i % 7}" for i, label in enumerate(LABELS)]
REVIEWS = pd.DataFrame({"text": TEXTS, "opinion": LABELS, "split": np.array(["train", "test"])[np.arange(60) // 40]})
ONLY_GOOD = REVIEWS[REVIEWS["opinion"] == "good"]


def with_one(value: float) -> sp.csr_array:
    """The counts, but one of them is something else."""
    changed = COUNTS.astype(float)
    changed.data[3] = value
    return changed


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a person may have in a folder."""
    folder = tmp_path_factory.mktemp("mistakes")
    REVIEWS.to_csv(folder / "reviews.csv", index=False)
    REVIEWS.rename(columns={"text": "review"}).to_csv(folder / "untitled.csv", index=False)
    ONLY_GOOD.to_csv(folder / "good.csv", index=False)
    REVIEWS[:0].to_csv(folder / "header.csv", index=False)
    (folder / "empty.csv").touch()
    for name, counts in {"counts": COUNTS, "nan": with_one(np.nan), "negative": with_one(-1)}.items():
        sp.save_npz(folder / f"{name}.npz", counts)
    np.save(folder / "labels.npy", LABELS)
    np.save(folder / "short.npy", LABELS[:50])
    dataset = nfs.ingest(folder / "reviews.csv", folder / "reviews.zarr", label_column="opinion")
    nfs.ingest(with_one(-1), folder / "negative.zarr", labels=LABELS)
    nfs.ingest(COUNTS, folder / "unlabeled.zarr")
    nfs.SparseMultinomialNB(2).fit(dataset).save(folder / "reviews.model")
    shutil.copytree(folder / "reviews.zarr", folder / "future.zarr")
    root = json.loads((folder / "future.zarr/zarr.json").read_text())
    root["attributes"]["nfs_dask"]["format"] += 1
    (folder / "future.zarr/zarr.json").write_text(json.dumps(root))
    return folder


# What is typed, the exit code, and what the answer has to say: given, allowed, next.
IN_THE_SHELL = {
    "a column misspelled": (
        "ingest reviews.csv new.zarr --label-column opinon",
        3,
        ["--label-column 'opinon'", "'text', 'opinion', 'split'", "did you mean 'opinion'?"],
    ),
    "an option misspelled": (
        "ingest reviews.csv new.zarr --label-colum opinion",
        2,
        ["'--label-colum'", "'--label-column'"],
    ),
    "a command misspelled": ("ingst reviews.csv new.zarr", 2, ["'ingst'", "Did you mean 'ingest'?"]),
    "a method misspelled": (
        "fit reviews.zarr new.model --method multinominal",
        2,
        ["'multinominal'", "'multinomial', 'bernoulli', 'l2', 'mahalanobis', 'l1', 'hybrid', 'error'", "did you mean"],
    ),
    "a rule misspelled": (
        "path reviews.zarr --choose elbo",
        2,
        ["'elbo'", "'elbow', 'error', '1se', 'cv', 'near'", "did you mean 'elbow'?"],
    ),
    "a path misspelled": ("ingest review.csv new.zarr", 3, ["review.csv is missing", "check the path"]),
    "a folder that does not exist": ("fit nowhere.zarr new.model", 3, ["nowhere.zarr does not exist", "give the"]),
    "labels that do not exist": (
        "ingest counts.npz new.zarr --labels label.npy",
        3,
        ["label.npy: No such file", "check the path"],
    ),
    "no column called text": (
        "ingest untitled.csv new.zarr --label-column opinion",
        3,
        ["'review', 'opinion', 'split'", "say which column holds the texts with --text-column"],
    ),
    "an empty file": ("ingest empty.csv new.zarr", 3, ["empty.csv is empty", "its first row has to name the columns"]),
    "a file of no documents": (
        "ingest header.csv new.zarr --label-column opinion",
        3,
        ["no documents", "give at least one"],
    ),
    "a store that is there": (
        "ingest counts.npz reviews.zarr",
        3,
        ["reviews.zarr exists", "--append to add", "--overwrite to replace"],
    ),
    "a model that is there": (
        "fit reviews.zarr reviews.model",
        3,
        ["reviews.model holds a model", "replace it with --overwrite"],
    ),
    "a file of predictions that is there": (
        "predict reviews.model reviews.csv --out good.csv",
        3,
        ["good.csv exists", "name another file", "--overwrite"],
    ),
    "too few labels": (
        "ingest counts.npz new.zarr --labels short.npy",
        3,
        ["60 rows but 50 labels", "give one label for each row"],
    ),
    "NaN": (
        "ingest nan.npz new.zarr --labels labels.npy",
        3,
        ["NaN value nan in row", "finite values", "replaced or left out"],
    ),
    "negative counts": (
        "fit negative.zarr new.model",
        3,
        ["negative value -1", "zero or more", "SparseCentroid"],
    ),
    "counts for a method of presence": (
        "fit reviews.zarr new.model --method bernoulli --where label=good --binarize -1",
        2,
        ["--binarize", "-1", "x>=0"],
    ),
    "no labels": ("fit unlabeled.zarr new.model", 3, ["no labels", "name the column that holds them"]),
    "documents where a store should be": (
        "fit reviews.csv new.model",
        3,
        ["reviews.csv is of no known format", ".npz", "nfs-dask ingest"],
    ),
    "a model where data should be": (
        "fit reviews.model new.model",
        3,
        ["reviews.model holds a model, and no data", "nfs-dask ingest"],
    ),
    "a model to predict": (
        "predict reviews.model reviews.model",
        3,
        ["reviews.model holds a model, and no documents", "give"],
    ),
    "data where a model should be": (
        "predict reviews.zarr reviews.model",
        3,
        ["reviews.zarr holds no model but a dataset", "nfs-dask fit"],
    ),
    "data of other columns": (
        "evaluate reviews.model negative.zarr",
        3,
        ["14 features", "expecting 4", "features of the training data"],
    ),
    "data of other columns to predict": (
        "predict reviews.model unlabeled.zarr",
        3,
        ["the data have 14 features", "expecting 4", "features of the training data"],
    ),
    "k is a word": ("fit reviews.zarr new.model -k abc", 2, ["-k 'abc'", "such as 100", "such as 0.01", "all"]),
    "k is zero": ("fit reviews.zarr new.model -k 0", 2, ["-k '0'", "such as 100", "such as 0.01", "all"]),
    "alpha is a word": ("fit reviews.zarr new.model --alpha much", 2, ["'--alpha': 'much'", "not a number", "0.5"]),
    "workers are a word": ("fit reviews.zarr new.model --workers two", 2, ["'two'", "not a whole number", "such as 2"]),
    "n-grams the wrong way round": (
        "ingest reviews.csv new.zarr --ngrams 2,1",
        3,
        ["--ngrams 2,1", "the shortest is 1 or more", "at most 64"],
    ),
    "a store from the future": (
        "fit future.zarr new.model",
        3,
        ["format 3", "up to 2", "install the nfs-dask that wrote it"],
    ),
    "rows by an unknown column": (
        "ingest reviews.csv new.zarr --label-column opinion --where splt=train",
        3,
        ["--where 'splt'", "'text', 'opinion', 'split'", "did you mean 'split'?"],
    ),
    "rows by an unknown value": (
        "evaluate reviews.model reviews.csv --label-column opinion --where split=tset",
        3,
        ["'tset' in the column 'split'", "there are 'test', 'train'"],
    ),
    "labels of something else": (
        "evaluate reviews.model reviews.csv --label-column split",
        3,
        ["'test', 'train'", "'bad', 'good'", "name the column"],
    ),
    "a feature that is none": (
        "fit reviews.zarr new.model --always film99",
        3,
        ["--always 'film99' is not the name of a feature", "check its spelling"],
    ),
}

PYTHON_WORDS = r"\w=(?!train|tset|\d)|nfs_dask\.|\bX\b|\by\b|True|Traceback"


@pytest.mark.parametrize(("typed", "code", "says"), IN_THE_SHELL.values(), ids=IN_THE_SHELL)
def test_the_shell_says_what_to_do(
    place: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, says: list[str]
) -> None:
    monkeypatch.chdir(place)
    there = set(place.iterdir())
    result = run(*typed.split(), code=code)
    assert result.stdout == ""
    message = result.stderr.partition("Error: ")[2]
    assert [part for part in says if part not in message] == [], message
    assert not re.search(PYTHON_WORDS, message.replace("x>=0", "")), message
    assert set(place.iterdir()) == there, "nothing is left that is in the way of the next try"


def new(estimator: Any = None, **parameters: Any) -> Any:
    return (estimator or nfs.SparseMultinomialNB)(**parameters)


IN_PYTHON: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "a column misspelled": (
        lambda place: nfs.ingest(REVIEWS, place / "new.zarr", label_column="opinon"),
        ["label_column='opinon'", "'text', 'opinion', 'split'", "did you mean 'opinion'?"],
    ),
    "a column given as labels": (
        lambda place: nfs.ingest(place / "reviews.csv", place / "new.zarr", labels="opinion"),
        ["labels= is a str", "a list or an array", "label_column="],
    ),
    "no column called text": (
        lambda place: nfs.ingest(place / "untitled.csv", place / "new.zarr", label_column="opinion"),
        ["'review', 'opinion', 'split'", "text_column="],
    ),
    "a path misspelled": (
        lambda place: nfs.ingest(place / "review.csv", place / "new.zarr"),
        ["review.csv is missing", "check the path"],
    ),
    "no documents": (
        lambda place: nfs.ingest([], place / "new.zarr"),
        ["no documents were given", "the list is empty"],
    ),
    "a store that is there": (
        lambda place: nfs.ingest(REVIEWS, place / "reviews.zarr"),
        ["reviews.zarr exists", "append=True", "overwrite=True"],
    ),
    "a folder that does not exist": (
        lambda place: nfs.open_dataset(place / "nowhere.zarr"),
        ["nowhere.zarr does not exist", "nfs_dask.ingest"],
    ),
    "a store from the future": (
        lambda place: nfs.open_dataset(place / "future.zarr"),
        ["format 3", "up to 2", "install the nfs-dask that wrote it"],
    ),
    "a model where data should be": (
        lambda place: nfs.open_dataset(place / "reviews.model"),
        ["reviews.model holds a model, and no data", "nfs_dask.ingest"],
    ),
    "data where a model should be": (
        lambda place: nfs.load_model(place / "reviews.zarr"),
        ["reviews.zarr holds no model but a dataset", "save()"],
    ),
    "rows by an unknown column": (
        lambda place: nfs.ingest(REVIEWS, place / "new.zarr", label_column="opinion", where={"splt": "train"}),
        ["'splt'", "'text', 'opinion', 'split'", "did you mean 'split'?"],
    ),
    "too few labels": (lambda _: new().fit(COUNTS, LABELS[:50]), ["60 rows but 50 labels", "give one label for each"]),
    "no labels": (lambda _: new().fit(COUNTS), ["y is None", "give one label for each row of X"]),
    "texts to a fit": (lambda _: new().fit(TEXTS, LABELS), ["X holds texts", "TextVectorizer()", "nfs_dask.ingest"]),
    "a path to a fit": (lambda place: new().fit(str(place / "reviews.zarr")), ["is a path", "nfs_dask.open_dataset"]),
    "a string to predict": (
        lambda place: nfs.load_model(place / "reviews.model").predict("a fine film"),
        ["one string", "put it into a list"],
    ),
    "NaN": (lambda _: new().fit(with_one(np.nan), LABELS), ["NaN value nan", "finite values", "replaced or left out"]),
    "negative counts": (
        lambda place: new().fit(nfs.open_dataset(place / "negative.zarr")),
        ["negative value -1", "zero or more", "SparseCentroid"],
    ),
    "counts for a method of presence": (
        lambda _: nfs.SparseBernoulliNB(2, binarize=None).fit(COUNTS, LABELS),
        ["takes 0 and 1", "binarize=0.0"],
    ),
    "k is a word": (lambda _: new(k="abc").fit(COUNTS, LABELS), ["k='abc'", "0.01", '"all"']),
    "k is zero": (lambda _: new(k=0).fit(COUNTS, LABELS), ["k=0 keeps no feature", "give 1 or more"]),
    "alpha is text": (lambda _: new(alpha="1").fit(COUNTS, LABELS), ["alpha='1'", "give one finite number"]),
    "a metric by its other name": (
        lambda _: new(nfs.SparseCentroid, metric="l1").fit(COUNTS, LABELS),
        ["metric='l1'", "'euclidean', 'mahalanobis', 'manhattan'"],
    ),
    "a method misspelled": (
        lambda place: nfs.path(nfs.open_dataset(place / "reviews.zarr"), "multinominal"),
        ["method='multinominal'", "'l1'", "did you mean 'multinomial'?"],
    ),
    "a rule misspelled": (
        lambda place: nfs.path(nfs.open_dataset(place / "reviews.zarr"), "multinomial").choose("elbo"),
        ["rule='elbo'", "'1se'", "did you mean 'elbow'?"],
    ),
    "a path to a model": (
        lambda place: nfs.evaluate(place / "reviews.model", REVIEWS, label_column="opinion"),
        ["the model is", "a fitted estimator", "load_model(path)"],
    ),
    "an engine by its name": (
        lambda _: new(engine="dask").fit(COUNTS, LABELS),
        ["engine='dask'", "nfs_dask.SerialEngine()", "nfs_dask.DaskEngine(...)"],
    ),
}


@pytest.mark.parametrize(("call", "says"), IN_PYTHON.values(), ids=IN_PYTHON)
def test_python_says_what_to_do(place: Path, call: Callable[[Path], Any], says: list[str]) -> None:
    there = set(place.iterdir())
    with pytest.raises(nfs.InputError) as refused:
        call(place)
    assert [part for part in says if part not in str(refused.value)] == [], str(refused.value)
    assert not re.search(r"(?<!\w)--?[a-z]", str(refused.value)), "no option of the shell"
    assert set(place.iterdir()) == there


def test_a_mistake_is_not_in_the_way_of_its_correction(tmp_path: Path) -> None:
    REVIEWS[:0].to_csv(tmp_path / "reviews.csv", index=False)
    command = ("ingest", tmp_path / "reviews.csv", tmp_path / "new.zarr", "--label-column", "opinion")
    run(*command, code=3)
    REVIEWS.to_csv(tmp_path / "reviews.csv", index=False)
    run(*command)
    assert nfs.open_dataset(tmp_path / "new.zarr").n_rows == len(REVIEWS)


# On large data


@pytest.fixture(scope="module")
def large(place: Path) -> Path:
    """The same folder with a file of 2 GB."""
    part = REVIEWS.to_csv(index=False, header=False).encode() * 1000
    with (place / "large.csv").open("wb") as file:
        file.write(b"text,opinion,split\n")
        while file.tell() < 2e9:
            file.write(part)
    return place


OF_A_FILE = {
    name: typed
    for name, (typed, _, _) in IN_THE_SHELL.items()
    if "reviews.csv" in typed or name == "a folder that does not exist"
}


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mistakes_with_a_large_file_are_answered_at_once(large: Path) -> None:
    """But for a value that no row has, which takes a look at all of them."""
    (large / "reviews.csv").rename(large / "small.csv")
    (large / "large.csv").rename(large / "reviews.csv")
    (large / "nfs.py").write_text((ROOT / "tests/helpers/nfs.py").read_text())
    slow = {}
    for name, typed in OF_A_FILE.items():
        if name in ("rows by an unknown value", "labels of something else"):
            continue
        before = processor_seconds()
        ended = subprocess.run([sys.executable, "nfs.py", *typed.split()], cwd=large, capture_output=True, text=True)
        seconds = processor_seconds() - before
        print(f"{seconds:.2f} s  nfs-dask {typed}\n        {ended.stderr.strip().splitlines()[-1]}")
        assert ended.returncode in (2, 3) and "Traceback" not in ended.stderr, ended.stderr
        if seconds >= 2:
            slow[name] = seconds
    assert slow == {}
