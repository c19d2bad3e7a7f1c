"""Parameters about terms: what is refused, and what a tokenizer is called."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json

import numpy as np
import pytest

from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import InputError
from nfs_dask.estimators.vectorizer import TextVectorizer
from nfs_dask.ingestion.ingest import ingest
from nfs_dask.ingestion.text_options import TermParameters, importable_name, make_terms, qualified_name, read_vocabulary
from nfs_dask.text.settings import Filters, TextSettings


def split_on_commas(text):
    return text.split(",")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"analyzer": "sentence"}, "'word', 'char', 'char_wb'"),
        ({"ngrams": (2, 1)}, "the longest no shorter"),
        ({"ngrams": 2}, "such as \\(1, 2\\)"),
        ({"ngrams": (0, 1)}, "shortest is 1 or more"),
        ({"strip_accents": "yes"}, "'ascii', 'unicode'"),
        ({"token_pattern": "("}, "no regular expression"),
        ({"token_pattern": "(a)(b)"}, "at most one"),
        ({"tokenizer": "split"}, "a function"),
        ({"tokenizer": str.split, "analyzer": "char"}, "takes none"),
        ({"stop_words": "klingon"}, "give one of .*german.*, a list"),
        ({"stem": "klingon"}, "stem='klingon'; give one of .*german"),
        ({"stem": 1}, "a language such as"),
        ({"stem": "german", "analyzer": "char"}, "leave one of them out"),
        ({"stop_words": [1]}, "a list of words"),
        ({"min_df": 1.5}, "a share from 0.0 to 1.0"),
        ({"max_df": -1}, "a number of documents"),
        ({"min_df": True}, "a number of documents"),
        ({"max_features": 0}, "1 or more"),
        ({"vocabulary": []}, "is empty"),
        ({"vocabulary": "words"}, "a list of terms"),
        ({"vocabulary": ["a", "b", "a"]}, "'a' more than once"),
        ({"vocabulary": ["a", 1]}, "holds strings"),
        ({"vocabulary": {"a": 0, "b": 2}}, "0 to 1, each once"),
        ({"vocabulary": ["a"], "min_df": 2}, "one or the other"),
        ({"vocabulary": ["a"], "hashed": 4}, "give one of them"),
        ({"hashed": 3, "max_features": 2}, "one or the other"),
        ({"hashed": 0}, "1 to 28"),
        ({"hashed": 29}, "1 to 28, or None: terms that are found get columns of their own"),
        ({"hashed": 4.0}, "1 to 28"),
        ({"analyzer": str.split}, "a function that makes words is a tokenizer="),
        ({"norm": "max"}, "'l2', 'l1' or None"),
        ({"sublinear_tf": True}, "add tfidf=True"),
    ],
)
def test_what_means_nothing_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        make_terms(TermParameters(**given))


@pytest.mark.parametrize(
    ("public", "inside"), [(ingest, TermParameters), (TextVectorizer, TermParameters), (ingest, DocumentParameters)]
)
def test_defaults_are_the_same_at_every_door(public, inside):
    shown = inspect.signature(public).parameters
    said = {field.name: field.default for field in dataclasses.fields(inside)}
    assert said == {name: shown[name].default for name in said}


def test_settings_come_back_from_json():
    settings = make_terms(TermParameters(stop_words=["the", "a", "the"], ngrams=[1, 3])).settings
    assert settings.stop_words == ("a", "the")
    assert TextSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize("damage", [{"ngrams": [3, 1]}, {"analyzer": "lines"}, {"hashed": "9"}])
def test_damaged_settings_are_refused(damage):
    with pytest.raises(InputError):
        TextSettings.from_json(TextSettings().to_json() | damage)


def test_a_vocabulary_is_sorted_by_bytes_and_keeps_its_columns():
    words = ["zebra", "Äpfel", "apple", "Zebra", "", "日本", "é"]
    terms, columns = read_vocabulary(words)
    assert terms.to_list() == sorted(words)
    assert [words[c] for c in columns] == sorted(words)
    again, same = read_vocabulary({word: i for i, word in enumerate(words)})
    assert again.to_list() == terms.to_list()
    np.testing.assert_array_equal(same, columns)


def test_functions_of_a_module_are_found_by_name_and_others_are_not():
    assert importable_name(split_on_commas) == f"{__name__}:split_on_commas"
    assert importable_name(lambda text: [text]) is None
    assert importable_name(functools.partial(str.split, sep=",")) is None
    assert qualified_name(functools.partial(str.split)) == "functools:partial"


@pytest.mark.parametrize(
    ("filters", "n", "expected"),
    [(Filters(), 10, (1, 10.0)), (Filters(2, 5), 10, (2, 5)), (Filters(0.3, 0.5), 10, (3.0, 5.0))],
)
def test_shares_are_of_the_documents(filters, n, expected):
    assert filters.document_range(n) == expected


def test_a_range_without_documents_is_refused():
    with pytest.raises(InputError, match="no term would be left"):
        Filters(5, 0.1).document_range(10)
