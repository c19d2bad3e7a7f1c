"""Stemmed terms against scikit-learn's CountVectorizer with a tokenizer of Python that stems by Snowball."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from nfs_dask.errors import InputError
from nfs_dask.text import stemming
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings
from nfs_dask.text.stemming import other_version, stemmer_version
from nfs_dask.text.strings import Strings

TEXTS = [
    "Running runners ran; the RUNNER runs!",
    "Die Häuser der Nachbarn, ein Haus: häuslich, Häusern und Straßen.",
    "",
    "generously generous generation",
    "日本 Ⱥ 😀 x" + "y" * 300,
]
words = st.sampled_from(["running", "runs", "Häuser", "häusern", "Straßen", "x", "generously", "日本語", "İstanbul"])
documents = st.lists(st.lists(words, max_size=12).map(" ".join) | st.text(max_size=20), min_size=1, max_size=5)


def expected(texts, language, ngrams=(1, 1), stop_words=(), pattern=DEFAULT_PATTERN, strip_accents=None):
    """What scikit-learn counts: terms with their counts for each text."""
    stemmer = Stemmer.Stemmer(language)

    def stems(text):
        return [stemmer.stemWord(word) for word in re.findall(pattern, text) if word not in stop_words]

    vectorizer = CountVectorizer(
        tokenizer=stems, token_pattern=None, ngram_range=ngrams, strip_accents=strip_accents, lowercase=True
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no terms at all
        return [{} for _ in texts]
    names = vectorizer.get_feature_names_out()
    rows = [counts[[i]].tocoo() for i in range(len(texts))]
    return [{names[c]: n for c, n in zip(row.coords[1], row.data, strict=True)} for row in rows]


def counted(texts, settings, **options):
    counter = TermCounter(settings, **options)
    for text in texts:
        counter.add(Strings.of([text]))
    found = counter.finish()
    terms = found.terms.to_list()
    ends = zip(found.indptr, found.indptr[1:], strict=False)
    return [{terms[i]: int(n) for i, n in zip(found.ids[a:b], found.counts[a:b], strict=True)} for a, b in ends]


@pytest.mark.parametrize("language", ["english", "german"])
@pytest.mark.parametrize("ngrams", [(1, 1), (1, 3)])
@pytest.mark.parametrize("strip_accents", [None, "unicode"])
def test_terms_are_those_of_scikit_learn(language, ngrams, strip_accents):
    stops = ("die", "the", "der")
    settings = TextSettings(stem=language, ngrams=ngrams, stop_words=stops, strip_accents=strip_accents)
    assert counted(TEXTS, settings) == expected(TEXTS, language, ngrams, stops, strip_accents=strip_accents)


@given(documents, st.sampled_from(["english", "german", "turkish", "arabic"]), st.sampled_from([(1, 1), (2, 2)]))
def test_any_text(texts, language, ngrams):
    assert counted(texts, TextSettings(stem=language, ngrams=ngrams)) == expected(texts, language, ngrams)


def test_patterns_and_tokenizers_are_stemmed_too():
    pattern = r"[a-z]+"
    assert counted(TEXTS, TextSettings(stem="english", token_pattern=pattern)) == expected(
        TEXTS, "english", pattern=pattern
    )
    mine = TextSettings(stem="english", tokenizer="here")
    assert counted(["cats,dogs"], mine, tokenizer=lambda text: text.split(",")) == [{"cat": 1, "dog": 1}]


def test_known_terms_are_stems():
    found = counted(["runs and running"], TextSettings(stem="english"), known=Strings.of(["run", "cat"]))
    assert found == [{"run": 2}]


def test_words_that_were_forgotten_are_stemmed_anew(monkeypatch):
    texts = [" ".join(f"{a}{b}ings" for b in "abcdefgh") for a in "abcdefghijklmnop"] * 2
    wanted = expected(texts, "english")
    assert counted(texts, TextSettings(stem="english")) == wanted
    monkeypatch.setattr(stemming, "MOST_WORDS", 10)
    assert counted(texts, TextSettings(stem="english")) == wanted


def test_many_words_and_what_they_hold(monkeypatch):
    """More than the first tables have room for; memory is bounded by what is remembered."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefghijklmnop"), (30_000, 6))
    texts = [" ".join("".join(word) + "ing" for word in part) for part in np.split(letters, 30)]
    assert counted(texts, TextSettings(stem="english")) == expected(texts, "english")
    monkeypatch.setattr(stemming, "MOST_WORDS", 2000)
    table = stemming.Stems("english", np.ones(1, np.uint64))
    most = 0
    counter = TermCounter(TextSettings(stem="english"), known=Strings.of(["a"]))
    for text in texts:
        counter.add(Strings.of([text]))
        most = max(most, counter._analysis._stems._n)
    assert most <= 3001
    assert table.nbytes < 100_000


def test_stop_words_are_left_out_before_words_are_stemmed():
    settings = TextSettings(stem="english", stop_words=("running",))
    assert counted(["running runs"], settings) == [{"run": 1}]


def test_languages_and_versions():
    assert stemmer_version("german") == version("PyStemmer")
    with pytest.raises(InputError, match="stem='klingon'; give one of arabic, .*english"):
        stemmer_version("klingon")
    assert other_version(TextSettings()) is None
    assert other_version(TextSettings(stem="german", stem_version=version("PyStemmer"))) is None
    told = other_version(TextSettings(stem="german", stem_version="1.0.0"))
    assert told is not None and "pip install PyStemmer==1.0.0" in told
    with pytest.raises(InputError, match="about words, and analyzer='char'"):
        TextSettings(stem="german", analyzer="char").check()


def test_settings_of_files_without_stems_are_read():
    found = TextSettings(ngrams=(1, 2)).to_json()
    del found["stem"], found["stem_version"]
    assert TextSettings.from_json(found) == TextSettings(ngrams=(1, 2))
    kept = TextSettings(stem="german", stem_version="3.1.0")
    assert TextSettings.from_json(kept.to_json()) == kept


def test_without_the_library_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(InputError, match=r"pip install 'nfs-dask\[languages\]'"):
        TermCounter(TextSettings(stem="german"))
    with pytest.raises(InputError, match=r"pip install 'nfs-dask\[languages\]'"):
        other_version(TextSettings(stem="german", stem_version="3.1.0"))
