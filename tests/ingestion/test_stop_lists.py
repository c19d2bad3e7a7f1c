"""Stop words and stems of a language, from texts to a store, a model and what that says of raw texts."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import Stemmer
from click.testing import CliRunner
from sklearn.feature_extraction.text import CountVectorizer
from stop_words import get_stop_words

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.errors import DataWarning, InputError
from nfs_dask.ingestion.stop_lists import languages, stop_words_of
from nfs_dask.ingestion.text_options import TermParameters, make_terms
from nfs_dask.text import stemming
from nfs_dask.text.settings import TextSettings

TEXTS = [
    "Die Häuser der Nachbarn sind nicht aus Holz",
    "Ein Haus ist häuslich, und die Nachbarin auch",
    "Das Wetter wird morgen nicht besser",
    "Wettern und Gewitter: morgens regnet es",
]
LABELS = ["haus", "haus", "wetter", "wetter"]


def by_scikit_learn(texts):
    stops = set(get_stop_words("german"))
    stem = Stemmer.Stemmer("german").stemWord
    words = CountVectorizer(stop_words=None).build_tokenizer()
    vectorizer = CountVectorizer(
        tokenizer=lambda text: [stem(word) for word in words(text) if word not in stops], token_pattern=None
    )
    return vectorizer.fit_transform(texts).toarray(), vectorizer.get_feature_names_out().tolist()


def test_a_list_is_that_of_the_library_and_read_as_texts_are():
    german = stop_words_of("german", TextSettings())
    assert set(german) == set(get_stop_words("german"))
    french = set(stop_words_of("french", TextSettings(strip_accents="unicode")))
    assert set(get_stop_words("french")) | {"etre", "meme"} <= french
    assert {"english", "german", "french", "russian"} <= set(languages())


@pytest.mark.parametrize("language", ["german", "french", "italian", "russian"])
@pytest.mark.parametrize("strip_accents", [None, "unicode"])
def test_lists_fit_how_texts_are_cut(language, strip_accents):
    with warnings.catch_warnings(action="error"):
        made = make_terms(TermParameters(stop_words=language, strip_accents=strip_accents, stem=language))
    assert made.settings.stop_words == stop_words_of(language, made.settings)
    assert made.settings.stem_version == stemming.installed_version()


def test_without_the_lists_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stop_words", None)
    with pytest.raises(InputError, match=r"pip install 'nfs-dask\[languages\]', or give 'english'"):
        stop_words_of("german", TextSettings())
    assert languages() == ["english"]
    assert "the" in stop_words_of("english", TextSettings())


def test_vectorizer_and_store_have_the_terms_of_scikit_learn(tmp_path):
    counts, terms = by_scikit_learn(TEXTS)
    vectorizer = nfs.TextVectorizer(stop_words="german", stem="german")
    np.testing.assert_array_equal(vectorizer.fit_transform(TEXTS).toarray(), counts)
    assert vectorizer.get_feature_names_out().tolist() == terms
    data = nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stop_words="german", stem="german")
    assert data.names(np.arange(data.n_features)) == terms


def test_models_stem_raw_text_and_say_what_they_need(tmp_path, monkeypatch):
    data = nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stop_words="german", stem="german")
    nfs.SparseMultinomialNB(k=4).fit(data).save(tmp_path / "model")
    model = nfs.load_model(tmp_path / "model")
    assert model.predict(["Häusern", "ein Wetter!"]).tolist() == ["haus", "wetter"]
    assert "HÄUSERN" in model.explain(["Das sind HÄUSERN"]).to_html()
    shown = CliRunner().invoke(cli, ["info", str(tmp_path / "model")]).output
    assert "german stems" in shown and "nfs-dask[languages]" in shown
    with monkeypatch.context() as here:
        here.setattr(stemming, "installed_version", lambda: "9.9")
        with pytest.warns(DataWarning, match="PyStemmer 9.9 is here"):
            model.predict(["Häusern"])
        with pytest.raises(InputError, match="or ingest everything into a new store"):
            nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stop_words="german", stem="german", append=True)
    nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stop_words="german", stem="german", append=True)
    with pytest.raises(InputError, match="read with stem='german'"):
        nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stop_words="german", append=True)
    with monkeypatch.context() as here:
        here.setitem(sys.modules, "Stemmer", None)
        with pytest.raises(InputError, match=r"pip install 'nfs-dask\[languages\]'"):
            model.predict(["Häusern"])


def test_other_programs_are_refused_what_they_cannot_stem(tmp_path):
    data = nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS, stem="german")
    model = nfs.SparseMultinomialNB(k=2).fit(data)
    with pytest.raises(InputError, match="stemmed"):
        model.to_sklearn()
    with pytest.raises(InputError, match="stemmed"):
        model.to_sql(texts="mail")


def test_the_command_line_knows_languages(tmp_path):
    table = tmp_path / "t.csv"
    rows = [f'"{text}",{label}' for text, label in zip(TEXTS, LABELS, strict=True)]
    table.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    options = ["--label-column", "label", "--stem", "german", "--stop-words"]

    def run(words, name):
        return CliRunner().invoke(cli, ["ingest", str(table), *options, words, str(tmp_path / name)])

    done = run("german", "s.zarr")
    assert done.exit_code == 0, done.output
    data = nfs.open_dataset(tmp_path / "s.zarr")
    assert data.names(np.arange(data.n_features)) == by_scikit_learn(TEXTS)[1]
    wrong = run("klingon", "t.zarr")
    assert wrong.exit_code != 0 and "give one of" in wrong.output


def test_workers_stem_as_the_client_does(tmp_path, cluster):
    counts, terms = by_scikit_learn(TEXTS)
    table = tmp_path / "t.csv"
    rows = [f'"{text}",{label}' for text, label in zip(TEXTS, LABELS, strict=True)]
    table.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    data = nfs.ingest(table, tmp_path / "s.zarr", label_column="label", stop_words="german", stem="german")
    assert data.names(np.arange(data.n_features)) == terms
    found = data.reduce(data.class_counts()).state.arrays
    assert sum(int(array.sum()) for array in found.values()) == counts.sum()
