"""Real texts: stores equal to scikit-learn's matrices to the bit, and models of them that read the raw files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer

from nfs_dask import SerialEngine, SparseMultinomialNB, ingest, load_model
from tests.helpers.commands import as_json
from tests.helpers.places import data_file
from tests.helpers.stored import assert_same_matrix, labels, names

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SETS = {"imdb": 800, "newsgroups20": 800, "twitter100k": 8000}  # texts of a sample
TERMS = {
    "words": {"ngrams": (1, 2)},
    "characters": {"analyzer": "char", "ngrams": (2, 2)},
}


def theirs(settings: dict[str, Any]) -> dict[str, Any]:
    return {"ngram_range" if name == "ngrams" else name: value for name, value in settings.items()}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A file with some texts from all over a set, in several row groups."""
    folder = tmp_path_factory.mktemp("samples")

    def make(name: str) -> Path:
        file = folder / f"{name}.parquet"
        if not file.exists():
            frame = pd.read_parquet(data_file(f"{name}.parquet"), columns=["text", "label"])
            frame.sample(SETS[name], random_state=0).to_parquet(file, row_group_size=300)
        return file

    return make


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("name", SETS)
def test_a_sample(sample: Callable[[str], Path], tmp_path: Path, name: str, terms: str) -> None:
    file, settings = sample(name), TERMS[terms]
    frame = pd.read_parquet(file)
    counts = CountVectorizer(**theirs(settings))
    expected = counts.fit_transform(frame["text"])
    dataset = ingest(file, tmp_path / "counts.zarr", label_column="label", **settings)
    assert names(dataset) == counts.get_feature_names_out().tolist()
    assert_same_matrix(dataset, expected)
    assert labels(dataset).tolist() == frame["label"].tolist()
    # fit_transform would add the squares of a row in the order in which its terms were first met.
    weights = TfidfVectorizer(**theirs(settings)).fit(frame["text"])
    dataset = ingest(file, tmp_path / "weights.zarr", label_column="label", tfidf=True, **settings)
    assert_same_matrix(dataset, weights.transform(frame["text"]))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("name", SETS)
def test_a_whole_set(tmp_path: Path, name: str, terms: str) -> None:
    file, settings = data_file(f"{name}.parquet"), TERMS[terms]
    texts = pd.read_parquet(file, columns=["text"])["text"]
    counts = CountVectorizer(**theirs(settings))
    expected = counts.fit_transform(texts)
    expected.sort_indices()
    dataset = ingest(file, tmp_path / "counts.zarr", engine=SerialEngine(), **settings)
    assert names(dataset) == counts.get_feature_names_out().tolist()
    assert_same_matrix(dataset, expected)
    del dataset
    # What TfidfVectorizer does to sorted counts, without tokenizing all texts another time.
    weights = TfidfTransformer().fit_transform(expected)
    dataset = ingest(file, tmp_path / "weights.zarr", engine=SerialEngine(), tfidf=True, **settings)
    assert_same_matrix(dataset, weights)


def test_a_model_of_tweets_reads_the_raw_test_set(tmp_path: Path) -> None:
    """From a file of texts to a saved model, and from another file to predictions, as from features."""
    frame = pd.read_parquet(data_file("twitter100k.parquet"))
    training = frame[frame["split"] == "train"].sample(20_000, random_state=0)
    test = frame[frame["split"] == "test"]
    for name, rows in (("train", training), ("test", test)):
        rows.to_parquet(tmp_path / f"{name}.parquet")
    store = ingest(tmp_path / "train.parquet", tmp_path / "train.zarr", label_column="label", ngrams=(1, 2), min_df=2)
    SparseMultinomialNB(500).fit(store).save(tmp_path / "tweets.model")
    model = load_model(tmp_path / "tweets.model")

    features = ingest(
        tmp_path / "test.parquet", tmp_path / "test.zarr", label_column="label", ngrams=(1, 2), vocabulary=names(store)
    )
    texts = test["text"].tolist()
    np.testing.assert_array_equal(model.predict(texts), model.predict(features))
    np.testing.assert_array_equal(model.predict_proba(texts), model.predict_proba(features))

    right = float(np.mean(model.predict(texts) == test["label"].to_numpy()))
    assert right > 0.7
    for source in ("test.parquet", "test.zarr"):
        columns = ["--label-column", "label"] if source == "test.parquet" else []
        said = as_json("evaluate", tmp_path / "tweets.model", tmp_path / source, *columns)
        assert (said["n"], said["accuracy"]) == (len(test), pytest.approx(right, abs=1e-12))
