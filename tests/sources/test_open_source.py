from __future__ import annotations

from pathlib import Path

import anndata
import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from nfs_dask.errors import InputError
from nfs_dask.sources.open_source import open_source
from tests.helpers.truth import assert_counts

RNG = np.random.default_rng(3)
X = RNG.integers(0, 4, (30, 6)) * (RNG.random((30, 6)) < 0.5)
X[0, 0] = 1
Y = RNG.integers(0, 3, 30)
FRAME = pd.DataFrame(X, columns=list("abcdef"))


@pytest.fixture
def files(tmp_path):
    sparse.save_npz(tmp_path / "all.npz", sparse.csr_matrix(X))
    for part in range(3):
        rows = slice(10 * part, 10 * part + 10)
        sparse.save_npz(tmp_path / f"part-{part}.npz", sparse.csr_matrix(X[rows]))
        dump_svmlight_file(X[rows], Y[rows], str(tmp_path / f"part-{part}.svm"), zero_based=True)
    obs = pd.DataFrame({"class": Y}, index=[str(i) for i in range(30)])
    data = anndata.AnnData(sparse.csr_matrix(X), obs, pd.DataFrame(index=list("abcdef")))
    data.layers["double"] = 2 * X
    data.write_h5ad(tmp_path / "data.h5ad")
    return tmp_path


IN_MEMORY = {
    "numpy": lambda: X,
    "list": lambda: X.tolist(),
    "scipy": lambda: sparse.csc_array(X),
    "frame": lambda: FRAME,
    "dask": lambda: da.from_array(X, chunks=(7, 3)),
    "dask-frame": lambda: dd.from_pandas(FRAME, npartitions=2),
    "source": lambda: open_source(X),
}


@pytest.mark.parametrize("y", [Y, da.from_array(Y, chunks=15)], ids=["numpy", "dask"])
@pytest.mark.parametrize("form", IN_MEMORY)
def test_what_is_in_memory(form, y):
    weights = np.arange(30)
    assert_counts(open_source(IN_MEMORY[form](), y, weights), X, Y, weights)
    assert_counts(open_source(IN_MEMORY[form](), labels=y), X, Y)
    assert open_source(IN_MEMORY[form](), y, names=list("uvwxyz")).names(np.array([1])) == ["v"]


def test_files(files):
    assert_counts(open_source(files / "all.npz", Y), X, Y)
    assert_counts(open_source(str(files / "part-*.npz"), Y), X, Y)
    assert_counts(open_source([files / f"part-{i}.npz" for i in range(3)], labels=Y), X, Y)
    assert_counts(open_source([str(files / f"part-{i}.svm") for i in range(3)]), X, Y)
    assert_counts(open_source(f"file://{files}/part-*.svm"), X, Y)
    assert_counts(open_source(files / "data.h5ad", labels="class"), X, Y)
    assert_counts(open_source(files / "data.h5ad", labels="class", layer="double"), 2 * X, Y)
    weights = RNG.random(30)
    weighted = open_source(files / "data.h5ad", None, weights, labels="class")
    assert_counts(weighted, X, Y, weights)
    assert weighted.names(np.array([2])) == ["c"]


def test_a_folder_or_url_is_a_zarr_store(files, monkeypatch):
    from nfs_dask.sources import zarr

    asked = []
    monkeypatch.setattr(zarr, "ZarrSource", lambda *arguments: asked.append(arguments) or open_source(X))
    (files / "store").mkdir()
    for location in (str(files / "store"), f"{files}/absent.zarr", "s3://bucket/store"):
        assert_counts(open_source(location, Y, labels=None, layer="double"), X, Y)
        assert asked.pop() == (location, None, "double")


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (5, {}, "X is an int, which cannot be opened; accepted are: .*dask array.*Zarr store.*numpy array"),
        (None, {}, "NoneType"),
        ({"a": 1}, {}, "dict"),
        (dask.bag.from_sequence(["a"]), {}, "Bag"),
        ([], {}, "1 dimension"),
        (X, {"y": Y, "labels": Y}, "twice"),
        (X, {"labels": "class"}, "labels='class' names a column, and X is a ndarray"),
        (FRAME, {"layer": "raw"}, "layer='raw' names a matrix of an AnnData"),
        (da.ones((3, 3)), {"labels": "class"}, "X is an Array"),
        ("FILES/nothing", {}, "is missing"),
        ("FILES/*.tsv", {}, "no file matches"),
        ("FILES/notes.doc", {}, "no known format; files end in .npz, .npy, .svm"),
        (["FILES/all.npz", "FILES/part-1.svm"], {}, "different formats"),
        (["FILES/data.h5ad", "FILES/data.h5ad"], {}, "2 stores were given"),
        ("FILES/all.npz", {"layer": "raw"}, "file of numpy has no layers"),
        ("FILES/part-1.svm", {"layer": "raw"}, "svmlight file has no layers"),
        ("FILES/part-1.svm", {"labels": "class"}, "no columns besides its labels"),
        ("FILES/all.npz", {"y": Y[:4]}, "there are 30 rows but 4 labels"),
        ("FILES/all.npz", {"sample_weight": [1]}, "X has 30 rows but sample_weight has 1"),
        ("FILES/all.npz", {"names": ["a"]}, "6 columns but 1 names"),
    ],
)
def test_what_cannot_be_opened_is_explained(files, X, options, message):
    (files / "notes.doc").write_text("hello")
    place = lambda x: Path(x.replace("FILES", str(files)))  # noqa: E731
    if isinstance(X, str):
        X = place(X)
    elif isinstance(X, list):
        X = [place(x) for x in X]
    with pytest.raises(InputError, match=message):
        open_source(X, **options)
