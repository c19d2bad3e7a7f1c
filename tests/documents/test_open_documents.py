from __future__ import annotations

import json
import os
import tarfile
from functools import partial
from pathlib import Path

import anndata
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from nfs_dask.documents.archives import ArchiveDocuments
from nfs_dask.documents.folders import FolderDocuments
from nfs_dask.documents.in_memory import MemoryDocuments, holds_texts
from nfs_dask.documents.open_documents import is_documents, is_opened, open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import DataWarning, InputError, StoreError
from tests.helpers.string_types import STRING_TYPES
from tests.helpers.taking import take

TEXTS = ["a fine film", "a dull film", "so so", "great"]
LABELS = ["pos", "neg", "neg", "pos"]
FRAME = pd.DataFrame({"text": TEXTS, "title": list("ABCD"), "class": LABELS, "weight": [1, 2, 3, 4]})
MATRIX = sparse.csr_matrix(np.eye(3))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with documents and matrices of every sort."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("table.parquet")
    FRAME.to_csv("table.csv", index=False)
    FRAME.to_json("table.jsonl.gz", orient="records", lines=True)
    Path("lines.txt").write_text("\n".join(TEXTS))
    for text, label, number in zip(TEXTS, LABELS, range(4), strict=True):
        Path("films", "train", label).mkdir(parents=True, exist_ok=True)
        Path("films", "train", label, f"{number}.txt").write_text(text)
    Path("films", "train", "urls.txt").write_text("http")
    with tarfile.open("films.tar.gz", "w:gz") as archive:
        archive.add("films")
    Path("parts").mkdir()
    for part in range(2):
        FRAME.iloc[2 * part : 2 * part + 2].to_parquet(f"parts/{part}.parquet")
    Path("whole.parquet").mkdir()
    for part in range(2):
        FRAME.iloc[2 * part : 2 * part + 2].to_parquet(f"whole.parquet/part.{part}.parquet")
    Path("whole.parquet", "_SUCCESS").touch()
    sparse.save_npz("matrix.npz", MATRIX)
    dump_svmlight_file(MATRIX, [0, 1, 0], "matrix.svmlight")
    anndata.AnnData(MATRIX, var=pd.DataFrame(index=list("abc"))).write_h5ad("matrix.h5ad")
    Path("store").mkdir()
    Path("store", "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
    return tmp_path


FILES = {
    "path": "table.parquet",
    "Path": Path("table.csv"),
    "compressed": "table.jsonl.gz",
    "pattern": "parts/*.parquet",
    "paths": [Path("parts/0.parquet"), Path("parts/1.parquet")],
    "folder of a table": "whole.parquet",
}


@pytest.mark.parametrize("form", FILES)
def test_files_of_tables(form, here):
    assert is_documents(FILES[form])
    source = open_documents(FILES[form], DocumentParameters(label_column="class", weight_column="weight"))
    taken = take(source)
    assert (taken.texts, taken.labels, taken.weights) == (TEXTS, LABELS, [1, 2, 3, 4])
    assert source.region_names == () and source.columns.text == ("text",)
    assert take(open_documents(FILES[form], DocumentParameters(text_column="title"))).texts == list("ABCD")


def test_lines(here):
    source = open_documents("lines.txt")
    assert take(source).texts == TEXTS and source.columns.text == ()
    with pytest.raises(InputError, match="lines of text have no columns"):
        open_documents("lines.txt", DocumentParameters(text_column="text"))


BY_CLASS = (["a dull film", "so so", "a fine film", "great"], ["neg", "neg", "pos", "pos"])


@pytest.mark.parametrize(
    "given",
    [
        "films/train/*/",
        [Path("films/train/neg"), Path("films/train/pos")],
        "films.tar.gz/films/train",
        Path("films.tar.gz/films/train/"),
        [Path("films.tar.gz/films/train/neg"), Path("films.tar.gz/films/train/pos")],
        "film?.tar.gz/films/train",
    ],
)
def test_folders_and_archives(given, here):
    assert is_documents(given)
    source = open_documents(given)
    taken = take(source)
    assert source.labelled
    assert sorted(zip(taken.texts, taken.labels, strict=True)) == sorted(zip(*BY_CLASS, strict=True))


def test_a_folder_of_folders(here):
    with pytest.warns(DataWarning, match="urls.txt"):
        source = open_documents("films/train")
    taken = take(source)
    assert isinstance(source, FolderDocuments) and (taken.texts, taken.labels) == BY_CLASS
    assert isinstance(open_documents("films.tar.gz"), ArchiveDocuments)


@pytest.mark.parametrize("option", ["text_column", "label_column", "weight_column"])
@pytest.mark.parametrize("given", ["films/train/*/", "films.tar.gz/films/train"])
def test_folders_and_archives_have_no_columns(given, option, here):
    with pytest.raises(InputError, match=f"{option} was given.*names of their folders"):
        open_documents(given, DocumentParameters(**{option: "text"}))


MATRICES = {
    "npz": "matrix.npz",
    "Path": Path("matrix.npz"),
    "pattern": "*.npz",
    "paths": [Path("matrix.npz"), Path("matrix.npz")],
    "svmlight": "matrix.svmlight",
    "svmlight.gz": "matrix.svmlight.gz",
    "h5ad": "matrix.h5ad",
    "zarr": "anything.zarr",
    "URL": "s3://nowhere/anything.zarr/",
    "store": "store",
    "pattern of stores": "stor?",
    "numpy": np.eye(3),
    "numbers": np.arange(3),
    "objects": np.array([1, 2, None], object),
    "lists": [[1, 0], [0, 1]],
    "scipy": MATRIX,
    "frame": pd.DataFrame(np.eye(3), columns=["a", "text", "b"]),
    "frame of texts elsewhere": FRAME[["title"]],
    "series": pd.Series([1, 2]),
    "dask array": da.ones((4, 2)),
    "dask frame": dd.from_pandas(FRAME[["weight"]], npartitions=1),
}


@pytest.mark.parametrize("form", MATRICES)
def test_matrices_are_no_documents(form, here):
    assert not is_documents(MATRICES[form])


def dask_series(make):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(make(TEXTS), npartitions=2)


IN_MEMORY = {
    "list": lambda: list(TEXTS),
    "tuple": lambda: tuple(TEXTS),
    "numpy": lambda: np.array(TEXTS),
    "objects": lambda: np.array(TEXTS, object),
    **{name: partial(make, TEXTS) for name, make in STRING_TYPES.items()},
    "bag": lambda: db.from_sequence(TEXTS, npartitions=2),
    **{f"dask, {name}": partial(dask_series, make) for name, make in STRING_TYPES.items() if name != "view arrow"},
}


@pytest.mark.parametrize("form", IN_MEMORY)
def test_documents_in_memory_and_in_dask(form):
    given = IN_MEMORY[form]()
    assert is_documents(given)
    source = open_documents(given)
    assert take(source).texts == TEXTS and source.region_names == () and not source.labelled
    with pytest.raises(InputError, match=r"encoding='latin-1' is that of files"):
        open_documents(given, DocumentParameters(encoding="latin-1"))
    if form != "bag":
        for option in ("text_column", "label_column", "weight_column"):
            with pytest.raises(InputError, match=f"{option}.* was given, but .* has no columns"):
                open_documents(given, DocumentParameters(**{option: "text"}))


def frame_of(make):
    return FRAME.assign(**{name: make(FRAME[name].tolist()).array for name in ("text", "title", "class")})


FRAMES = {
    **{name: partial(frame_of, make) for name, make in STRING_TYPES.items()},
    "dask": lambda: dd.from_pandas(FRAME, npartitions=2),
    "bag": lambda: db.from_sequence(FRAME.to_dict("records"), npartitions=2),
    "parquet": lambda: "table.parquet",
    "csv": lambda: "table.csv",
    "jsonl": lambda: "table.jsonl.gz",
}


@pytest.mark.parametrize("form", FRAMES)
def test_columns_and_regions(form, here):
    given = FRAMES[form]()
    assert is_documents(given) and is_documents(given, DocumentParameters(text_column="title"))
    taken = take(open_documents(given, DocumentParameters(label_column="class", weight_column="weight")))
    assert (taken.texts, taken.labels, taken.weights) == (TEXTS, LABELS, [1, 2, 3, 4])
    both = list(zip("ABCD", TEXTS, strict=True))
    source = open_documents(given, DocumentParameters(regions=["title", "text"]))
    assert source.region_names == ("title", "text") and take(source).texts == both
    source = open_documents(
        given, DocumentParameters(regions={"subject": "title", "body": "text"}, label_column="class")
    )
    assert source.region_names == ("subject", "body") and source.columns.n_regions == 2
    taken = take(source)
    assert taken.texts == both and taken.labels == LABELS


@pytest.mark.parametrize("numbers", [[1.5, None], pd.array([1, None], "Int64"), pd.array([1, 2], "int64[pyarrow]")])
@pytest.mark.parametrize("lazy", [False, True])
def test_numbers_and_their_categories_are_no_documents(numbers, lazy):
    for dtype in (None, "category"):
        series = pd.Series(numbers).astype(dtype or pd.Series(numbers).dtype)
        given = dd.from_pandas(series, npartitions=1) if lazy else series
        assert not is_documents(given) and not holds_texts(given)
        assert not is_documents(given.to_frame("text")) and not holds_texts(given.to_frame("text"), ["text"])


def test_missing_texts_do_not_make_a_matrix():
    for given in ([None, float("nan"), "a"], pd.Series([None, "a"]), np.array([None, "a"], object), [None], []):
        assert is_documents(given) == (not isinstance(given, np.ndarray) or "a" in given)
    assert not is_documents([None, 1.5])


def test_opened_documents_pass_through():
    source = open_documents(TEXTS)
    assert is_opened(source) and is_documents(source) and open_documents(source) is source
    for option in ({"text_column": "text"}, {"on_error": "skip"}):
        with pytest.raises(InputError, match="opened already"):
            open_documents(source, DocumentParameters(**option))
    assert not is_opened(TEXTS) and not is_opened(FRAME) and not is_opened(db.from_sequence(TEXTS))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text_column": "text", "regions": ["title"]}, "text_column and regions both"),
        ({"text_column": ["text"]}, r"text_column=\['text'\]; give the name of one column"),
        ({"text_column": ""}, "text_column=''; give the name"),
        ({"regions": "text"}, "regions='text'; give names of columns"),
        ({"regions": []}, r"regions=\[\]; give names"),
        ({"regions": {"subject": 3}}, "give names of columns"),
        ({"regions": ["text", "text"]}, "names the column 'text' twice"),
        ({"regions": {"a": "text", "b": "text"}}, "names the column 'text' twice"),
        ({"label_column": 3}, "label_column=3; give the name"),
        ({"on_error": "ignore"}, "on_error='ignore'; give one of 'fail', 'skip'"),
        ({"encoding": "klingon"}, "encoding='klingon' cannot be read"),
        ({"text_column": "body"}, "text_column='body' is not among them"),
        ({"regions": ["text", "body"]}, "text_column='body' is not among them"),
    ],
)
def test_arguments_that_mean_nothing(options, said):
    with pytest.raises(InputError, match=said):
        open_documents(FRAME, DocumentParameters(**options))


def test_a_default_column_that_is_not_there_is_named(here):
    for given in (FRAME[["title"]], dd.from_pandas(FRAME[["title"]], npartitions=1)):
        with pytest.raises(InputError, match=r"columns 'title'; text_column='text' is not among them"):
            open_documents(given)
    FRAME[["title"]].to_parquet("other.parquet")
    with pytest.raises(InputError, match=r"other.parquet has the columns 'title'; text_column='text'"):
        open_documents("other.parquet")


def test_what_is_missing_is_named(here):
    with pytest.raises(StoreError, match=r"nowhere.csv is missing; check the path$"):
        open_documents("nowhere.csv")
    with pytest.raises(StoreError, match=r"no file matches .*\*\.tsv$"):
        open_documents("*.tsv")
    with pytest.raises(StoreError, match="no folder matches"):
        open_documents("*.csv/")
    with pytest.raises(StoreError, match=r"gone.tar is missing"):
        open_documents("gone.tar/inside")
    for text in ("a text given by mistake", "is this a text?", "a long text " * 1000, "nul\0 byte"):
        with pytest.raises(StoreError, match=r"put it into a list, \[text\]$") as caught:
            open_documents(text)
        assert len(str(caught.value)) < 300


def test_unknown_formats_are_told_what_is_known(here):
    Path("notes.docx").touch()
    with pytest.raises(InputError, match=r"notes.docx is of no known format.*\.parquet.*\.gz.*\.tar\.gz.*\.npz"):
        open_documents("notes.docx")
    assert is_documents("notes.docx")


def test_strings_that_are_paths_are_refused_in_lists(here):
    assert is_documents(["table.csv"])
    for given in (["table.csv"], ("parts/0.parquet", "parts/1.parquet"), np.array(["films"]), pd.Series(["lines.txt"])):
        with pytest.raises(InputError, match=r"the list holds paths.*pathlib\.Path"):
            open_documents(given)
    with pytest.raises(InputError, match="the list holds paths"):
        open_documents(["s3://bucket/a.parquet", "s3://bucket/b.parquet"])
    assert isinstance(open_documents(["table.csv", "is a file"]), MemoryDocuments)
    assert isinstance(open_documents(["https://example.org/news"]), MemoryDocuments)


def test_mixtures_are_refused(here):
    with pytest.raises(InputError, match=r"item 1 of the list is a str, and others are paths"):
        open_documents([Path("table.csv"), "table.csv"])
    with pytest.raises(InputError, match=r"one of the files and .*films is one of the folders"):
        open_documents([Path("table.csv"), Path("films")])
    with pytest.raises(InputError, match="different formats"):
        open_documents([Path("table.csv"), Path("table.parquet")])
    with pytest.raises(InputError, match="is a store, which holds no texts"):
        open_documents("store")
    Path("odd.parquet").mkdir()
    with pytest.raises(InputError, match=r"odd.parquet is a folder without .parquet files"):
        open_documents("odd.parquet")


@pytest.mark.parametrize("given", [3, iter(TEXTS), {"a", "b"}, da.from_array(np.array([TEXTS])), pd.MultiIndex])
def test_what_cannot_be_opened_is_told_what_can(given):
    with pytest.raises(InputError, match=r"documents were given as an? \w+; accepted are: a path, URL or pattern"):
        open_documents(given)


class Location(os.PathLike):
    """A URL among paths: pathlib would take a slash from it."""

    def __init__(self, text):
        self.text = text

    def __fspath__(self):
        return self.text


def test_urls(here, s3):
    fs = fsspec.filesystem("s3")
    for name in ("0.parquet", "1.parquet"):
        fs.put_file(f"parts/{name}", f"{s3}/parts/{name}")
        fs.put_file(f"whole.parquet/part.{name}", f"{s3}/whole.parquet/part.{name}")
    for label, number in zip(LABELS, range(4), strict=True):
        fs.put_file(f"films/train/{label}/{number}.txt", f"{s3}/films/{label}/{number}.txt")
    fs.pipe_file(f"{s3}/store/zarr.json", b"{}")
    fs.pipe_file(f"{s3}/notes.docx", b"x")
    for given in (
        f"{s3}/parts/*.parquet",
        [Location(f"{s3}/parts/0.parquet"), Location(f"{s3}/parts/1.parquet")],
        f"{s3}/whole.parquet",
    ):
        assert is_documents(given) and take(open_documents(given)).texts == TEXTS
    taken = take(open_documents(f"{s3}/films"))
    assert is_documents(f"{s3}/films") and (taken.texts, taken.labels) == BY_CLASS
    assert take(open_documents(f"{s3}/films/*/")).labels == BY_CLASS[1]
    assert not is_documents(f"{s3}/store")
    with pytest.raises(StoreError, match=r"no file matches s3://.*\*\.csv"):
        open_documents(f"{s3}/*.csv")
    with pytest.raises(StoreError, match="nothing.parquet is missing"):
        open_documents(f"{s3}/nothing.parquet")
    with pytest.raises(InputError, match="notes.docx is of no known format"):
        open_documents(f"{s3}/notes.docx")
    with pytest.raises(InputError, match="cannot be used"):
        open_documents("klingon://bucket/films")
