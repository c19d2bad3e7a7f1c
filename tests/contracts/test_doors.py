"""Doors: what files are written and read, and what is said of those that are not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from tests.helpers.commands import as_json, run
from tests.helpers.places import ROOT

TEXTS = ["a fine film", "a dull film", "fine, very fine", "dull and long", "a fine evening", "long, dull, dull"] * 5
LABELS = ["good", "bad"] * 15


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table of documents, and a model of them."""
    folder = tmp_path_factory.mktemp("doors")
    pd.DataFrame({"text": TEXTS, "opinion": LABELS, "id": range(30)}).to_csv(folder / "films.csv", index=False)
    dataset = nfs.ingest(folder / "films.csv", folder / "films.zarr", label_column="opinion")
    nfs.SparseMultinomialNB(2).fit(dataset).save(folder / "films.model")
    return folder


@pytest.mark.parametrize("options", [[], ["--all-probabilities", "--id-column", "id"]])
def test_predictions_are_written_as_the_ending_says(place, tmp_path, options):
    for ending in ("csv", "parquet"):
        run("predict", place / "films.model", place / "films.csv", "--out", tmp_path / f"said.{ending}", *options)
    csv, parquet = pd.read_csv(tmp_path / "said.csv"), pd.read_parquet(tmp_path / "said.parquet")
    assert list(csv) == list(parquet)
    assert parquet["row"].tolist() == list(range(30))
    assert parquet["label"].tolist() == csv["label"].tolist() == LABELS
    np.testing.assert_allclose(parquet["probability"], csv["probability"], rtol=1e-5)
    if options:
        assert parquet["id"].tolist() == [str(i) for i in range(30)]
        assert np.allclose(parquet[["probability_bad", "probability_good"]].sum(axis=1), 1)


def test_predictions_of_a_dataset_are_written_as_parquet(place, tmp_path):
    """Labels that are numbers stay numbers."""
    rows, y = np.eye(4), [7, 7, 9, 9]
    dataset = nfs.ingest(rows, tmp_path / "rows.zarr", labels=y)
    nfs.SparseCentroid(2, metric="manhattan").fit(dataset).save(tmp_path / "rows.model")
    run("predict", tmp_path / "rows.model", tmp_path / "rows.zarr", "--out", tmp_path / "said.parquet")
    found = pd.read_parquet(tmp_path / "said.parquet")
    assert list(found) == ["row", "label", "margin"]
    assert found["label"].dtype.kind == "i"
    assert set(found["label"]) <= {7, 9}


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "films.model", "films.csv", "--out", "OUT.xlsx"],
        ["predict", "films.model", "films.csv", "--out", "OUT.json"],
        ["predict", "films.model", "films.csv", "--out", "OUT"],
        ["features", "films.model", "--out", "OUT.xlsx"],
        ["report", "films.model", "OUT.pdf"],
        ["report", "films.model", "--out", "OUT.md"],
        ["fit", "films.zarr", "OUT.model", "--report", "OUT.pdf"],
        ["explain", "films.model", "a fine film", "--html", "OUT.pdf"],
        ["path", "films.zarr", "--csv", "OUT.parquet"],
        ["ingest", "films.csv", "OUT.zarr", "--label-column", "opinion", "--rejects", "OUT.parquet"],
    ],
    ids=" ".join,
)
def test_an_ending_that_is_not_meant_is_refused(place, tmp_path, words):
    """Before any work, with what is allowed."""
    places = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    typed = [place / word if word.startswith("films.") else word for word in places]
    said = run(*typed, code=2).output
    assert re.search(r"out(\.\w+)?", said)
    assert re.search(r"\.(csv|html)", said)
    assert not list(tmp_path.iterdir())


def test_a_device_has_no_ending(place):
    run("predict", place / "films.model", place / "films.csv", "--out", "/dev/null")


def test_a_report_is_html_in_python(place, tmp_path):
    report = nfs.report(nfs.load_model(place / "films.model"))
    with pytest.raises(ValueError, match=r"\.html"):
        report.save(tmp_path / "films.pdf")
    report.save(tmp_path / "films.html")
    assert "<html" in (tmp_path / "films.html").read_text()


@pytest.mark.parametrize("name", ["new.parquet", "new.csv", "new.h5ad", "new.npz", "new.csv.gz", "new.svm"])
def test_a_store_has_no_ending_of_another_format(place, tmp_path, name):
    """It would be read as that format later."""
    said = run("ingest", place / "films.csv", tmp_path / name, "--label-column", "opinion", code=3).output
    assert ".zarr" in said
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"\.zarr"):
        nfs.ingest(TEXTS, tmp_path / name, labels=LABELS)


def test_pyarrow_comes_with_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(re.match(r"pyarrow\b", one) for one in project["dependencies"])
    assert "text" in project["optional-dependencies"], "old install lines keep working"


def test_hints_name_extras_that_exist_in_quotes():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    files = [*Path(nfs.__file__).parent.rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = 0
    for file in files:
        for before, names in re.findall(r"pip install (.?)nfs-dask\[([\w,]+)\]", file.read_text()):
            found += 1
            assert before in ("'", '"'), f"{file}: a shell may take brackets for a pattern"
            assert set(names.split(",")) <= extras.keys(), file
            assert "text" not in names.split(","), f"{file}: pyarrow comes with the package"
    assert found > 5


COUNTS = np.random.default_rng(0).poisson([[3, 1, 1, 0, 2], [1, 3, 1, 2, 0]] * 20).astype(float)
SIDES = np.array(["left", "right"] * 20)


def chosen(dataset):
    """What a fit finds, to compare containers by."""
    model = nfs.SparseMultinomialNB(2).fit(dataset)
    return model.get_support(indices=True).tolist(), model.objective_, model.classes_.tolist()


EXPECTED = chosen(nfs.open_dataset(COUNTS, labels=SIDES))
SAVED = {
    "x.npz": lambda path: np.savez(path, X=COUNTS, y=SIDES),
    "packed.npz": lambda path: np.savez_compressed(path, X=COUNTS, labels=SIDES),
    "fortran.npz": lambda path: np.savez(path, X=np.asfortranarray(COUNTS), y=SIDES),
    "packed-fortran.npz": lambda path: np.savez_compressed(path, X=np.asfortranarray(COUNTS), y=SIDES),
    "any.npz": lambda path: np.savez(path, pixels=COUNTS.astype(np.uint8), y=SIDES),
    "x.npy": lambda path: np.save(path, COUNTS),
    "big-endian.npy": lambda path: np.save(path, COUNTS.astype(">f4")),
    "fortran.npy": lambda path: np.save(path, pd.DataFrame(COUNTS).to_numpy(copy=True, dtype=float).copy(order="F")),
}


@pytest.mark.parametrize("name", SAVED)
def test_the_shell_takes_arrays_of_numpy(tmp_path, name):
    SAVED[name](tmp_path / name)
    labels = []
    if name.endswith(".npy"):
        np.save(tmp_path / "y.npy", SIDES)
        labels = ["--labels", tmp_path / "y.npy"]
    said = as_json("ingest", tmp_path / name, tmp_path / "new.zarr", *labels)
    assert (said["rows"], said["features"], said["classes"]) == (40, 5, ["left", "right"])
    assert chosen(nfs.open_dataset(tmp_path / "new.zarr")) == EXPECTED
    direct = nfs.open_dataset(tmp_path / name, labels=SIDES if labels else None)
    assert chosen(direct) == EXPECTED


def test_labels_of_an_archive_give_way_to_those_that_are_given(tmp_path):
    np.savez(tmp_path / "x.npz", X=COUNTS, y=SIDES[::-1])
    np.save(tmp_path / "y.npy", SIDES)
    run("ingest", tmp_path / "x.npz", tmp_path / "new.zarr", "--labels", tmp_path / "y.npy")
    assert chosen(nfs.open_dataset(tmp_path / "new.zarr")) == EXPECTED


def test_large_arrays_in_either_order_are_read_block_by_block(tmp_path):
    """Of several blocks, and of files one below the other."""
    X = np.random.default_rng(1).poisson(0.7, (30_000, 150)).astype(float)
    y = np.arange(30_000) % 3
    np.savez(tmp_path / "a.npz", X=np.asfortranarray(X[:20_000]), y=y[:20_000])
    np.savez_compressed(tmp_path / "b.npz", X=X[20_000:], y=y[20_000:])
    dataset = nfs.open_dataset([tmp_path / "a.npz", tmp_path / "b.npz"])
    assert dataset.source.n_blocks >= 3
    assert chosen(dataset) == chosen(nfs.open_dataset(X, labels=y))


@pytest.mark.parametrize(
    ("save", "told"),
    [
        (lambda path: np.savez(path, a=COUNTS, b=COUNTS), "a, b"),
        (lambda path: np.savez(path, X=COUNTS, y=SIDES[:7]), "40 rows"),
        (lambda path: np.savez(path, X=COUNTS[0], y=SIDES), "1 dimension"),
        (lambda path: np.savez(path, X=COUNTS.astype(object)), "Python objects"),
        (lambda path: np.savez(path, X=SIDES.reshape(-1, 2)), "not a number"),
    ],
)
def test_archives_that_say_too_little_are_refused(tmp_path, save, told):
    save(tmp_path / "x.npz")
    said = run("ingest", tmp_path / "x.npz", tmp_path / "new.zarr", code=3).output
    assert told in " ".join(said.split())


def test_a_cut_npy_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", COUNTS)
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-9])
    assert "damaged" in run("ingest", tmp_path / "x.npy", tmp_path / "new.zarr", code=3).output


@pytest.mark.parametrize(("delimiter", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
@pytest.mark.parametrize(
    "options", [[], ["--text-column", "review"], ["--text-column", "review", "--label-column", "stars"]]
)
def test_another_delimiter_is_seen(tmp_path, delimiter, name, options):
    lines = ["review;stars", "a fine film, truly;5", "dull;1"]
    (tmp_path / "films.csv").write_text("\n".join(lines).replace(";", delimiter))
    said = " ".join(run("ingest", tmp_path / "films.csv", tmp_path / "new.zarr", *options, code=3).output.split())
    typed = {"\t": "\\t"}.get(delimiter, delimiter)
    assert f"looks {name}-separated" in said
    assert f'--delimiter "{typed}"' in said
    asked = ["--text-column", "review", "--label-column", "stars"]
    made = as_json("ingest", tmp_path / "films.csv", tmp_path / "new.zarr", *asked, "--delimiter", typed)
    assert made["rows"] == 2


def test_a_comma_inside_a_file_of_tabs_is_seen(tmp_path):
    (tmp_path / "films.tsv").write_text("text,opinion\nfine,good\ndull,bad\n")
    said = run("ingest", tmp_path / "films.tsv", tmp_path / "new.zarr", "--label-column", "opinion", code=3).output
    assert "comma-separated" in " ".join(said.split())


FRACTIONS = [f"{value:.6f}" for value in np.random.default_rng(3).random(30)]


def as_categories(values, path):
    import anndata

    obs = pd.DataFrame({"y": pd.Categorical(values)}, index=[str(i) for i in range(30)])
    anndata.AnnData(COUNTS[:30], obs=obs).write_h5ad(path)


@pytest.mark.parametrize("door", ["csv", "tsv", "jsonl", "parquet", "xlsx", "labels", "h5ad", "npz", "list", "fit"])
def test_measurements_are_no_labels_at_any_door(tmp_path, door):
    """Also where they come as text, as in CSV."""
    table, path = pd.DataFrame({"text": TEXTS, "y": FRACTIONS}), tmp_path / f"x.{door}"
    with pytest.raises(ValueError, match="continuous"):
        if door == "list":
            nfs.ingest(TEXTS, tmp_path / "new.zarr", labels=FRACTIONS)
        if door == "fit":
            nfs.SparseMultinomialNB(2).fit(COUNTS[:30], FRACTIONS)
        if door == "h5ad":
            as_categories(FRACTIONS, path)
            nfs.open_dataset(path, labels="y")
        if door == "npz":
            np.savez(path, X=COUNTS[:30], y=np.array(FRACTIONS))
            nfs.open_dataset(path)
        if door == "labels":
            nfs.open_dataset(COUNTS[:30], labels=pd.Series(FRACTIONS))
        save = {
            "csv": lambda: table.to_csv(path, index=False),
            "tsv": lambda: table.to_csv(path, index=False, sep="\t"),
            "jsonl": lambda: table.to_json(path, orient="records", lines=True),
            "parquet": lambda: table.to_parquet(path),
            "xlsx": lambda: table.to_excel(path, index=False),
        }
        save[door]()
        nfs.ingest(path, tmp_path / "new.zarr", label_column="y")


def test_stars_and_versions_are_labels(tmp_path):
    """A few that are not whole are how people rate, and others are no numbers at all."""
    for labels in (["3.5", "4", "4.5"], ["1.10.3", "1.9", "2.0"], ["1", "2", "10"]):
        dataset = nfs.open_dataset(COUNTS[:30], labels=labels * 10)
        assert dataset.classes.tolist() == sorted(labels)


@pytest.mark.filterwarnings("default::nfs_dask.errors.NfsDaskWarning")
@pytest.mark.parametrize("door", ["fit", "store", "command"])
def test_many_classes_are_warned_of(tmp_path, door):
    many = np.arange(30)
    with pytest.warns(UserWarning, match=r"30 classes.*identifiers or measurements"):
        if door == "fit":
            nfs.SparseMultinomialNB(2).fit(COUNTS[:30], many)
        nfs.ingest(COUNTS[:30], tmp_path / "new.zarr", labels=many)
    if door == "command":
        said = run("fit", tmp_path / "new.zarr", tmp_path / "m", "-k", 2).stderr
        assert said.count("30 classes") == 1


@pytest.mark.filterwarnings("default::nfs_dask.errors.NfsDaskWarning")
def test_one_class_is_taken_at_every_door_and_warned_of(tmp_path):
    """As scikit-learn's naive Bayes takes it."""
    one = ["good"] * 40
    dataset = nfs.ingest(COUNTS, tmp_path / "new.zarr", labels=one)
    said = "all labels are"
    for given, y in ((COUNTS, one), (dataset, None)):
        for estimator in (nfs.SparseMultinomialNB(2), nfs.SparseCentroid(2), nfs.SparseCentroid(2, metric="manhattan")):
            with pytest.warns(UserWarning, match=said):
                assert set(estimator.fit(given, y).predict(COUNTS)) == {"good"}
        with pytest.warns(UserWarning, match=said):
            assert nfs.path(given, "multinomial", y=y).ks.tolist() == [1, 2, 3, 4, 5]
        with pytest.warns(UserWarning, match=said):
            nfs.cross_validate(given, y, method="multinomial", ks=[1])
    assert said in run("fit", tmp_path / "new.zarr", tmp_path / "m", "-k", 2).stderr
    assert said in run("path", tmp_path / "new.zarr").stderr


def test_a_part_of_the_documents_may_have_one_class(recwarn):
    model = nfs.SparseMultinomialNB(2).partial_fit(COUNTS[::2], ["left"] * 20, classes=["left", "right"])
    model.partial_fit(COUNTS[1::2], ["right"] * 20)
    assert model.get_support(indices=True).tolist() == EXPECTED[0]
    assert not [one for one in recwarn if "all labels" in str(one.message)]


def test_a_store_without_labels_says_how_to_get_them(place, tmp_path):
    made = run("ingest", place / "films.csv", tmp_path / "new.zarr")
    said = " ".join(made.output.split())
    assert "no labels" in said
    assert "--label-column" in said
    assert "opinion" in said
    assert f"nfs-dask label {tmp_path}" in " ".join(
        run("fit", tmp_path / "new.zarr", tmp_path / "m", code=3).output.split()
    )
    assert as_json("ingest", place / "films.csv", tmp_path / "b.zarr")["columns"] == ["text", "opinion", "id"]


@pytest.mark.parametrize("kind", ["lines", "npy"])
def test_labels_are_added_to_a_store(place, tmp_path, kind):
    """The same as if they had been there from the start; statistics that are kept stay those of their data."""
    nfs.ingest(place / "films.csv", tmp_path / "new.zarr", keep=["id"])
    before = nfs.open_dataset(tmp_path / "new.zarr")
    file = tmp_path / ("y.npy" if kind == "npy" else "y.txt")
    np.save(file, np.array(LABELS)) if kind == "npy" else file.write_text("\n".join(LABELS))
    assert as_json("label", tmp_path / "new.zarr", file)["classes"] == ["bad", "good"]
    dataset = nfs.open_dataset(tmp_path / "new.zarr")
    assert dataset.fingerprint != before.fingerprint
    assert chosen(dataset) == chosen(nfs.open_dataset(place / "films.zarr"))
    run("info", tmp_path / "new.zarr", "--verify")
    run("fit", tmp_path / "new.zarr", tmp_path / "m", "-k", 2)
    import anndata

    assert anndata.read_zarr(tmp_path / "new.zarr").obs["label"].tolist() == LABELS
    nfs.ingest(place / "films.csv", tmp_path / "new.zarr", label_column="opinion", keep=["id"], append=True)
    assert nfs.open_dataset(tmp_path / "new.zarr").n_rows == 60
    assert "labels already" in " ".join(run("label", tmp_path / "new.zarr", file, code=3).output.split())


def test_labels_that_do_not_fit_a_store_are_refused(place, tmp_path):
    nfs.ingest(place / "films.csv", tmp_path / "new.zarr")
    (tmp_path / "y.txt").write_text("good\nbad\n")
    said = " ".join(run("label", tmp_path / "new.zarr", tmp_path / "y.txt", code=3).output.split())
    assert "30 rows but 2 labels" in said
    assert nfs.open_dataset(tmp_path / "new.zarr").classes is None
    run("label", tmp_path / "nowhere.zarr", tmp_path / "y.txt", code=3)
    run("label", tmp_path / "new.zarr", tmp_path / "nothing.txt", code=2)
