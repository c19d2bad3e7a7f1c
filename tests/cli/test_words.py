"""Messages in the words of the shell, close matches, all chosen words, and columns that a model remembers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.cli.reporting import in_shell_words
from tests.helpers.commands import as_json, run

ROWS = ["tea cup,yes", "tea tea milk,yes", "coffee cup,no", "coffee black,no", "green tea,yes", "coffee cup cup,no"] * 4


def write(folder: Path) -> Path:
    path = folder / "drinks.csv"
    path.write_text("\n".join(["body,folder", *ROWS]) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a store and a model."""
    folder = tmp_path_factory.mktemp("made")
    run("ingest", write(folder), "--text-column", "body", "--label-column", "folder", folder / "store")
    run("fit", folder / "store", folder / "m", "-k", 3)
    return folder


@pytest.fixture
def drinks(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def store(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made / "store", tmp_path / "store"))


@pytest.fixture
def model(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made / "m", tmp_path / "m"))


# Close matches


def test_a_file_without_the_column_of_texts_says_which_it_has_and_what_to_do(tmp_path: Path, drinks: Path) -> None:
    refused = run("ingest", drinks, tmp_path / "x", code=3).stderr
    assert "has the columns 'body', 'folder'" in refused
    assert "say which column holds the texts with --text-column" in refused
    assert "text_column" not in refused


@pytest.mark.parametrize(
    ("arguments", "code", "near"),
    [
        (["ingest", "DRINKS", "x", "--text-column", "bodi"], 3, "'body'"),
        (["ingest", "DRINKS", "x", "--text-column", "body", "--label-column", "foldr"], 3, "'folder'"),
        (["ingest", "DRINKS", "x", "--text-column", "body", "--where", "folder=yess"], 3, "'yes'"),
        (["fit", "STORE", "x", "--label-column", "lable"], 3, "'label'"),
        (["fit", "STORE", "x", "--method", "multinomal"], 2, "'multinomial'"),
        (["plan", "STORE", "--method", "bernouli"], 2, "'bernoulli'"),
        (["path", "STORE", "--choose", "elbo"], 2, "'elbow'"),
        (["fit", "STORE", "x", "--method", "error", "--search", "foward"], 2, "'forward'"),
    ],
    ids=lambda given: " ".join(given[2:]) if isinstance(given, list) else "",
)
def test_what_was_meant_is_guessed(drinks: Path, store: Path, arguments: list[str], code: int, near: str) -> None:
    places = {"DRINKS": str(drinks), "STORE": str(store), "x": str(drinks.parent / "x")}
    refused = run(*(places.get(one, one) for one in arguments), code=code).stderr
    assert f"did you mean {near}?" in refused


def test_what_was_meant_is_guessed_in_python(store: Path) -> None:
    with pytest.raises(nfs.InputError, match="did you mean 'multinomial'"):
        nfs.path(nfs.open_dataset(store), "multinomal")


# The shell's words


def test_parameters_become_the_options_of_the_command() -> None:
    fit, ingest = cli.commands["fit"], cli.commands["ingest"]
    assert in_shell_words("label_column='x' is not there", fit) == "--label-column 'x' is not there"
    assert in_shell_words("give labels= or weights=", ingest) == "give --labels or --weights"
    assert in_shell_words("give labels= or weights=", fit) == "give labels= or weights="  # it has no such option
    assert in_shell_words('leave them out with on_error="skip" (--on-error skip)', ingest) == (
        "leave them out with --on-error skip"
    )
    assert in_shell_words("k=5 and overwrite=True", fit) == "-k 5 and --overwrite"
    assert in_shell_words("/tmp/my_text_column/a.csv", ingest) == "/tmp/my_text_column/a.csv"
    assert in_shell_words("ngrams=(2, 1); the", ingest) == "--ngrams 2,1; the"
    assert in_shell_words("nfs_dask.store.publish.clean_up removes it", fit) == "nfs-dask ingest --clean-up removes it"
    assert in_shell_words("anything", None) == "anything"


def test_errors_speak_the_words_of_the_shell(tmp_path: Path, drinks: Path, store: Path) -> None:
    refused = run("ingest", drinks, "--text-column", "body", store, code=3).stderr
    assert "--append to add rows" in refused and "--overwrite to replace" in refused and "=True" not in refused
    (tmp_path / "bad.csv").write_text("text\ntea,coffee\n")
    refused = run("ingest", tmp_path / "bad.csv", tmp_path / "x", code=3).stderr
    assert refused.endswith("leave such documents out with --on-error skip\n") and "on_error" not in refused


# All chosen words


def test_every_chosen_feature_is_listed(tmp_path: Path, store: Path) -> None:
    fitted = as_json("fit", store, tmp_path / "all", "-k", "all", "--all-features")
    model = nfs.load_model(tmp_path / "all")
    assert {one["feature"] for one in fitted["chosen"]} == set(model.get_feature_names_out())
    margins = dict(zip(model.get_feature_names_out(), model.model_.margins().T, strict=True))
    for one in fitted["chosen"]:
        assert one["weight"] == pytest.approx(margins[one["feature"]].max())
        assert one["class"] == model.classes_[margins[one["feature"]].argmax()]
    weights = [one["weight"] for one in fitted["chosen"]]
    assert weights == sorted(weights, reverse=True)
    told = as_json("info", tmp_path / "all", "--all-features")["chosen"]
    assert [one["feature"] for one in told] == [one["feature"] for one in fitted["chosen"]]
    shown = run("info", tmp_path / "all", "--all-features").stdout
    assert "All 6 chosen features" in shown
    assert "All 2 chosen features" in run("fit", store, tmp_path / "m", "-k", 2, "--all-features").stdout
    assert "chosen" not in as_json("info", tmp_path / "all")
    assert "for models" in run("info", store, "--all-features", code=2).stderr


# What a model remembers


def test_a_model_remembers_the_columns_of_its_documents(tmp_path: Path, drinks: Path, model: Path) -> None:
    named = ("--text-column", "body", "--label-column", "folder")
    assert as_json("evaluate", model, drinks) == as_json("evaluate", model, drinks, *named)
    assert as_json("predict", model, drinks) == as_json("predict", model, drinks, *named[:2])
    other = tmp_path / "other.csv"
    other.write_text("text,label\ntea,yes\n")
    assert as_json("evaluate", model, other, "--text-column", "text", "--label-column", "label")["n"] == 1
    assert "'folder' is not among them" in run("evaluate", model, other, code=3).stderr
    lines = tmp_path / "lines.txt"
    lines.write_text("tea\ncoffee\n")
    assert as_json("predict", model, lines)["n"] == 2


def test_columns_are_remembered_after_appending(tmp_path: Path, drinks: Path, store: Path) -> None:
    run("ingest", drinks, "--text-column", "body", "--label-column", "folder", store, "--append")
    run("fit", store, tmp_path / "m", "-k", 3)
    assert as_json("evaluate", tmp_path / "m", drinks)["n"] == len(ROWS)


def test_labels_the_model_knows_nothing_of_are_an_error(tmp_path: Path, model: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("body,folder\ntea,good\ncoffee,bad\n")
    refused = run("evaluate", model, other, code=3).stderr
    assert "none of the labels" in refused and "'bad', 'good'" in refused and "'no', 'yes'" in refused


@pytest.mark.filterwarnings("always::nfs_dask.DataWarning")
def test_some_unknown_labels_are_a_warning(tmp_path: Path, model: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("body,folder\ntea,yes\ncoffee,maybe\ntea,perhaps\n")
    result = run("evaluate", model, other)
    assert "Warning: 2 of 3 documents have labels the model was not fitted to, 'maybe', 'perhaps'" in result.stderr
    assert "accuracy 0.3333" in result.stdout
