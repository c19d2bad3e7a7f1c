"""Settings that contradict one another: warned of where scikit-learn warns, and of what it does not see."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import nfs_dask as nfs
from nfs_dask.errors import NfsDaskWarning
from tests.helpers.commands import run

TEXTS = ["Green tea and green cups", "don't drink the café's coffee", "new york tea house of C++"]


def by_commas(text: str) -> list[str]:
    return text.split(",")


def failing(text: str) -> list[str]:
    raise ValueError("no")


def warnings_of(function: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found]


AS_SKLEARN = [
    ({"analyzer": "char", "stop_words": ["a"]}, "stop_words= is about words, and analyzer='char' makes none"),
    ({"analyzer": "char_wb", "stop_words": "english"}, "analyzer='char_wb' makes none; leave stop_words out"),
    ({"analyzer": "char", "token_pattern": r"\w+"}, "token_pattern= is about words"),
    ({"tokenizer": by_commas, "token_pattern": r"\w+"}, "token_pattern= does nothing beside tokenizer="),
    ({"stop_words": ["don't", "of"]}, "stop_words= do not fit .* read as 'don', which"),
    ({"stop_words": ["The"]}, "read as 'the'"),
    ({"stop_words": ["café"], "strip_accents": "unicode"}, "read as 'cafe'"),
    ({"tokenizer": by_commas, "stop_words": ["a,b"]}, "read as 'a', 'b'"),
    ({"vocabulary": ["Tea", "green"]}, "no text can have 1 of the 2 terms of the vocabulary, such as 'Tea'"),
    ({"vocabulary": ["Tea"], "token_pattern": r"\w+"}, "1 of the 1 terms"),
]
FINE = [
    {},
    {"stop_words": "english"},
    {"stop_words": ["don", "the"], "ngrams": (1, 2)},
    {"analyzer": "char", "ngrams": (2, 3)},
    {"vocabulary": ["tea", "new york"], "ngrams": (1, 2)},
    {"vocabulary": ["Tea"], "lowercase": False},
    {"vocabulary": [" te", "tea", "ea "], "analyzer": "char_wb", "ngrams": (3, 3)},
    {"vocabulary": ["york"], "token_pattern": r"(?<=new )\w+"},
    {"tokenizer": by_commas},
    {"tfidf": True, "norm": "l1"},
    {"norm": None},
]
BEYOND = [
    ({"vocabulary": ["c++", "tea"]}, r"1 of the 2 terms of the vocabulary, such as 'c\+\+'"),
    ({"vocabulary": ["new york", "tea"]}, "'new york'"),
    ({"vocabulary": ["the", "tea"], "stop_words": "english"}, "'the'"),
    ({"vocabulary": ["café", "tea"], "strip_accents": "ascii"}, "'café'"),
    ({"vocabulary": ["tea", "te"], "analyzer": "char", "ngrams": (3, 3)}, "'te'"),
    ({"vocabulary": [f"T{i}" for i in range(9)]}, r"9 of the 9 .*'T4', \.\.\.: texts are lowered"),
    ({"norm": "l1"}, "norm='l1' is of tf-idf weights"),
]


def by_sklearn(settings: dict[str, Any]) -> Any:
    settings = dict(settings)
    kind = TfidfVectorizer if settings.pop("tfidf", False) else CountVectorizer
    return kind(ngram_range=settings.pop("ngrams", (1, 1)), **settings)


@pytest.mark.parametrize(("settings", "message"), AS_SKLEARN)
def test_warnings_where_scikit_learn_has_some(settings, message):
    assert warnings_of(lambda: by_sklearn(settings).fit(TEXTS))
    (said,) = warnings_of(lambda: nfs.TextVectorizer(**settings).fit_transform(TEXTS))
    assert re.search(message, said)


@pytest.mark.parametrize(("settings", "message"), BEYOND)
def test_warnings_of_terms_that_no_text_has(settings, message):
    (said,) = warnings_of(lambda: nfs.TextVectorizer(**settings).fit(TEXTS))
    assert re.search(message, said)
    if "vocabulary" in settings and len(settings["vocabulary"]) == 2:
        counts = by_sklearn(settings).transform([*TEXTS, *settings["vocabulary"]]).sum(axis=0)
        assert np.asarray(counts).ravel().min() == 0 < np.asarray(counts).max()


@pytest.mark.parametrize("settings", FINE, ids=str)
def test_no_warnings_of_settings_that_agree(settings):
    assert not warnings_of(lambda: nfs.TextVectorizer(**settings).fit(TEXTS))


def test_a_tokenizer_that_fails_is_told_where_it_reads_texts():
    with pytest.raises(ValueError, match="no"):
        nfs.TextVectorizer(tokenizer=failing, stop_words=["a"]).fit(TEXTS)


@pytest.mark.filterwarnings("default::nfs_dask.errors.NfsDaskWarning")
def test_an_ingest_and_the_command_line_warn_too(tmp_path):
    with pytest.warns(NfsDaskWarning, match="stop_words= is about words"):
        nfs.ingest(TEXTS, tmp_path / "s.zarr", analyzer="char", stop_words=["a"])
    (tmp_path / "mail.txt").write_text("\n".join(TEXTS))
    (tmp_path / "words.txt").write_text("Tea\ngreen\n")
    result = run("ingest", tmp_path / "mail.txt", "--vocabulary", tmp_path / "words.txt", tmp_path / "t.zarr")
    assert "such as 'Tea'" in result.stderr
