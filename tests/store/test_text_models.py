"""Models of texts take the vocabulary along that they need."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.sealed import sealed
from nfs_dask.store.model_files import read_model, save_model
from nfs_dask.store.term_table import TermTable
from nfs_dask.store.writer import write_store
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from tests.helpers.toys import SMALL
from tests.helpers.toytexts import WORDS, TextSource
from tests.store.test_model_files import MODEL, TEXT, assert_equal

WANTED = Strings.of([*WORDS, "none"])


def fitted(store, source, **changes):
    """A model of two terms of a store."""
    support = np.array([3, 17])
    terms = tuple(source.terms[i] for i in support)
    settings = TextSettings(tfidf=True)
    text = TextFeatures(settings, len(source.terms), source.n_rows, terms, np.array([1.5, 2.0]), vocabulary=str(store))
    return replace(MODEL, support=support, n_features=len(source.terms), names=terms, text=replace(text, **changes))


@pytest.fixture(params=["sorted", "unsorted"])
def source(request):
    return TextSource(WORDS if request.param == "sorted" else WORDS[::-1], names_sorted=request.param == "sorted")


@pytest.fixture
def store(tmp_path, source):
    weighed = replace(source.text_facts(), settings=TextSettings(tfidf=True))
    write_store(source, tmp_path / "s", layout=SMALL, text=weighed)
    return tmp_path / "s"


def assert_looks_up(model, source):
    columns, frequencies = TermTable.open(model.text.vocabulary).look_up(WANTED)
    assert columns.tolist() == [source.terms.index(word) for word in WORDS] + [-1]
    assert frequencies.tolist() == [*source.df[columns[:-1]], 0]


def test_a_saved_model_needs_no_store(tmp_path, store, source):
    model = fitted(store, source)
    save_model(model, {}, tmp_path / "m")
    shutil.rmtree(store)
    shutil.move(tmp_path / "m", tmp_path / "elsewhere")
    read, _ = read_model(tmp_path / "elsewhere")
    assert_equal(read, model)
    assert_looks_up(read, source)
    save_model(read, {}, tmp_path / "again")
    shutil.rmtree(tmp_path / "elsewhere")
    assert_looks_up(read_model(tmp_path / "again")[0], source)


def test_saving_a_model_where_it_was_loaded_keeps_its_vocabulary(tmp_path, store, source):
    save_model(fitted(store, source), {}, tmp_path / "m")
    read, _ = read_model(tmp_path / "m")
    before = sorted(path.name for path in (tmp_path / "m").glob("vocabulary-*"))
    save_model(replace(read, alpha=2.0), {}, tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").glob("vocabulary-*")) == before
    assert len(list((tmp_path / "m").iterdir())) == 3
    assert_looks_up(read, source)
    save_model(fitted(store, source), {}, tmp_path / "m")  # another one, with a copy of its own
    assert len(list((tmp_path / "m").iterdir())) == 3
    save_model(MODEL, {}, tmp_path / "m")
    assert len(list((tmp_path / "m").iterdir())) == 2


def test_a_save_that_fails_leaves_the_old_vocabulary_and_no_new_one(tmp_path, store, source):
    save_model(fitted(store, source), {}, tmp_path / "m")
    before = sorted(path.name for path in (tmp_path / "m").iterdir())
    for model in (fitted(store, source), read_model(tmp_path / "m")[0]):
        with pytest.raises(TypeError):
            save_model(model, {"k": object()}, tmp_path / "m")
        assert sorted(path.name for path in (tmp_path / "m").iterdir()) == before
    assert_looks_up(read_model(tmp_path / "m")[0], source)
    (store / "nfs_dask/frequencies/c/0").unlink()
    with pytest.raises(StoreError, match="frequencies/c/0 is missing"):
        save_model(fitted(store, source), {}, tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": TextSettings(tfidf=True, norm=None)},
        {"settings": TextSettings(), "idf": None},
        {"vocabulary": None},
    ],
)
def test_models_take_no_more_along_than_they_need(tmp_path, store, source, changes):
    save_model(fitted(store, source, **changes), {}, tmp_path / "m")
    assert len(list((tmp_path / "m").iterdir())) == 2
    assert read_model(tmp_path / "m")[0].text.vocabulary is None


def test_lengths_of_regions_need_the_vocabulary(tmp_path, store, source):
    model = fitted(store, source, settings=TextSettings(), idf=None, lengths=True)
    save_model(model, {}, tmp_path / "m")
    assert_looks_up(read_model(tmp_path / "m")[0], source)


def test_the_vocabulary_must_be_that_of_the_fit(tmp_path, store, source):
    with pytest.raises(StoreError, match="made anew since; fit again"):
        save_model(fitted(store, source, n_documents=3), {}, tmp_path / "m")
    assert not (tmp_path / "m/model.json").exists()
    shutil.rmtree(store)
    with pytest.raises(StoreError, match="is not a store"):
        save_model(fitted(store, source), {}, tmp_path / "n")
    with pytest.raises(InputError, match="terms of a model are not those"):
        save_model(replace(TEXT, text=replace(TEXT.text, terms=("a", "b"))), {}, tmp_path / "o")
    assert not any((tmp_path / name).exists() and list((tmp_path / name).iterdir()) for name in "mno")


@pytest.mark.parametrize("change", [{"n_terms": 39}, {"n_documents": 3}, {"kind": "x"}])
def test_a_vocabulary_of_something_else_is_refused(tmp_path, store, source, change):
    save_model(fitted(store, source), {}, tmp_path / "m")
    manifest = next((tmp_path / "m").glob("vocabulary-*/terms.json"))
    manifest.write_bytes(sealed({**json.loads(manifest.read_text()), **change}))
    with pytest.raises(StoreError):
        read_model(tmp_path / "m")


def test_models_from_before_there_were_texts_are_read(tmp_path):
    save_model(MODEL, {}, tmp_path / "m")
    header = json.loads((tmp_path / "m/model.json").read_text())
    del header["text"]
    (tmp_path / "m/model.json").write_bytes(sealed(header))
    assert_equal(read_model(tmp_path / "m")[0], MODEL)
    save_model(TEXT, {}, tmp_path / "m")
    assert_equal(read_model(tmp_path / "m")[0], TEXT)


def test_a_model_of_texts_behind_a_url(s3, store, source):
    save_model(fitted(store, source), {}, f"{s3}/m")
    read, _ = read_model(f"{s3}/m")
    assert_looks_up(read, source)
    save_model(read, {}, f"{s3}/m")
    assert_looks_up(read, source)
