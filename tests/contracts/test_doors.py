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
        ["sql", "films.model", "--out", "OUT.csv"],
        ["onnx", "films.model", "--out", "OUT.html"],
        ["sklearn", "films.model", "--out", "OUT.csv"],
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
    assert "give one that ends in ." in " ".join(said.split())
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
def test_many_classes_are_warned_of(tmp_path):
    many, said = np.arange(30), r"30 classes.*identifiers or measurements"
    with pytest.warns(UserWarning, match=said):
        nfs.SparseMultinomialNB(2).fit(COUNTS[:30], many)
    with pytest.warns(UserWarning, match=said):
        nfs.ingest(COUNTS[:30], tmp_path / "new.zarr", labels=many)
    assert run("fit", tmp_path / "new.zarr", tmp_path / "m", "-k", 2).stderr.count("30 classes") == 1


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
    (tmp_path / "x.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    assert "a, b, y as --label-column" in " ".join(
        run("ingest", tmp_path / "x.csv", tmp_path / "c.zarr").output.split()
    )


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


TABLE = pd.DataFrame(COUNTS, columns=[f"gene {i}" for i in range(5)]).assign(
    side=SIDES, batch=np.arange(40) % 2, weight=1
)
WRITERS = {
    "x.csv": lambda table, path: table.to_csv(path, index=False),
    "x.tsv.gz": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "x.parquet": lambda table, path: table.to_parquet(path, row_group_size=7),
    "ints.parquet": lambda table, path: table.astype({f"gene {i}": int for i in range(5)}).to_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_tables_of_numbers_are_matrices(tmp_path, name):
    """Every column but those of labels and weights is a feature."""
    WRITERS[name](TABLE.drop(columns="batch"), tmp_path / name)
    asked = ["--label-column", "side", "--weight-column", "weight"]
    said = as_json("ingest", tmp_path / name, tmp_path / "new.zarr", *asked)
    assert (said["rows"], said["features"], said["classes"]) == (40, 5, ["left", "right"])
    dataset = nfs.open_dataset(tmp_path / "new.zarr")
    assert chosen(dataset) == EXPECTED
    assert dataset.names(range(5)) == [f"gene {i}" for i in range(5)]


@pytest.mark.parametrize("name", WRITERS)
def test_tables_of_numbers_go_the_whole_way_in_the_shell(tmp_path, name):
    """From a table to a model, how good it is, and what it says of other rows, without a store between."""
    WRITERS[name](TABLE.drop(columns=["batch", "weight"]), tmp_path / name)
    model = tmp_path / "side.model"
    run("fit", tmp_path / name, model, "--label-column", "side", "-k", 2)
    direct = nfs.SparseMultinomialNB(2).fit(COUNTS, SIDES)
    assert as_json("evaluate", model, tmp_path / name, "--label-column", "side")["accuracy"] == direct.score(
        COUNTS, SIDES
    )
    WRITERS[name](TABLE.drop(columns=["batch", "weight", "side"]), tmp_path / f"new-{name}")
    run("predict", model, tmp_path / f"new-{name}", "--out", tmp_path / "said.csv")
    assert pd.read_csv(tmp_path / "said.csv")["label"].tolist() == direct.predict(COUNTS).tolist()


def test_rows_of_a_table_are_chosen_and_labels_given_apart(tmp_path):
    TABLE.drop(columns=["weight", "side"]).to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "y.txt").write_text("\n".join(SIDES))
    run("ingest", tmp_path / "x.csv", tmp_path / "all.zarr", "--labels", tmp_path / "y.txt")
    assert nfs.open_dataset(tmp_path / "all.zarr").n_features == 6
    TABLE.drop(columns="weight").to_csv(tmp_path / "x.csv", index=False)
    run("ingest", tmp_path / "x.csv", tmp_path / "some.zarr", "--label-column", "side", "--where", "batch=1")
    dataset = nfs.open_dataset(tmp_path / "some.zarr")
    assert (dataset.n_rows, dataset.n_features, dataset.classes.tolist()) == (20, 5, ["right"])


def test_large_tables_are_read_in_parts(tmp_path, cluster):
    """On workers, too: the same to the bit."""
    X = np.random.default_rng(1).poisson(0.7, (60_000, 60))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(60)]).assign(y=np.arange(60_000) % 3)
    table.to_csv(tmp_path / "x.csv", index=False)
    table.to_parquet(tmp_path / "x.parquet", row_group_size=20_000)
    expected = chosen(nfs.open_dataset(X.astype(float), labels=table["y"]))
    for name in ("x.csv", "x.parquet"):
        dataset = nfs.ingest(tmp_path / name, tmp_path / f"{name}.zarr", label_column="y", engine=nfs.DaskEngine())
        assert [*map(str, chosen(dataset))][:2] == [*map(str, expected)][:2]
        assert nfs.open_dataset(tmp_path / name, labels="y").source.n_blocks > 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("a,b,y\n1,2,u\n3,,v\n", "nan"),
        ("a,b,y\n" + "1,2,u\n3,4,v\n" * 9000 + "3,four,v\n", "'four'"),
        ("a,b,y\n1,2,u\n3,4\n", "2 fields"),
        ("a,b,y\n1,2,u\n3,4,\n", "no label"),
        ("name,b,y\nAnna,2,u\nBert,4,v\n", "--text-column"),
    ],
)
def test_what_is_no_number_is_named(tmp_path, rows, told):
    (tmp_path / "x.csv").write_text(rows)
    said = run("ingest", tmp_path / "x.csv", tmp_path / "new.zarr", "--label-column", "y", code=3).output
    assert told in " ".join(said.split()).replace("NaN", "nan")
    assert not (tmp_path / "new.zarr").exists()


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    import anndata
    import scipy.sparse as sp

    folder = tmp_path_factory.mktemp("cells")
    ids = [f"cell {i}" for i in range(40)]
    obs, var = pd.DataFrame({"side": SIDES}, index=ids), pd.DataFrame(index=[f"gene {i}" for i in range(5)])
    by_rows = anndata.AnnData(sp.csr_matrix(COUNTS), obs, var)
    by_rows.write_h5ad(folder / "rows.h5ad")
    by_columns = anndata.AnnData(sp.csc_matrix(COUNTS), obs, var)
    with_layer = anndata.AnnData(sp.csr_matrix(COUNTS), obs, var, layers={"more": sp.csc_matrix(COUNTS)})
    for name, made in {"None": by_columns, "more": with_layer}.items():
        made.write_h5ad(folder / f"{name}.h5ad")
        made.write_zarr(folder / f"{name}.zarr")
    return folder


def test_an_anndata_that_is_backed_is_read_from_its_file(cells, tmp_path):
    import anndata

    backed = anndata.read_h5ad(cells / "rows.h5ad", backed="r")
    model = nfs.SparseMultinomialNB(2).fit(backed, backed.obs["side"])
    assert model.get_support(indices=True).tolist() == EXPECTED[0]
    direct = nfs.SparseMultinomialNB(2).fit(COUNTS, SIDES)
    assert np.asarray(model.predict(backed)).tolist() == direct.predict(COUNTS).tolist()
    assert chosen(nfs.open_dataset(backed, labels="side")) == EXPECTED
    made = nfs.ingest(backed, tmp_path / "new.zarr", labels="side")
    assert chosen(made) == EXPECTED
    assert made.names([4]) == ["gene 4"]
    with pytest.raises(ValueError, match=r"to_memory\(\)"):
        nfs.open_dataset(backed[:7], labels="side")
    with pytest.raises(ValueError, match=r"X\.to_memory\(\)"):
        nfs.SparseMultinomialNB(2).fit(backed.X, SIDES)


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.parametrize("layer", [None, "more"])
def test_columns_first_are_refused_with_lines_that_work(cells, ending, layer):
    with pytest.raises(ValueError, match="in Python") as refused:
        nfs.open_dataset(cells / f"{layer}.{ending}", labels="side", layer=layer)
    lines = str(refused.value).split("in Python: ")[1]
    exec(f"import anndata\n{lines}", {})
    assert chosen(nfs.open_dataset(cells / f"{layer}-by-rows.{ending}", labels="side", layer=layer)) == EXPECTED


def test_lazy_frames_are_refused_with_the_line_that_works():
    import polars as pl

    X = pl.DataFrame(COUNTS, schema=[f"x{i}" for i in range(5)]).lazy()
    with pytest.raises(ValueError, match=r"X\.collect\(\)"):
        nfs.SparseMultinomialNB(2).fit(X, SIDES)
    assert nfs.SparseMultinomialNB(2).fit(X.collect(), SIDES).get_support(indices=True).tolist() == EXPECTED[0]
