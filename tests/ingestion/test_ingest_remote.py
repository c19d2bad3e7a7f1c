"""Parquet files, the store and all that is in between behind a real S3 protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import numpy as np
import pytest
from distributed import Client
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from nfs_dask import DaskEngine, ResumeError, SerialEngine, ingest, open_dataset
from nfs_dask.documents.parquet import ParquetDocuments
from nfs_dask.engine.distributed import ClusterExecutor
from nfs_dask.store.publish import clean_up
from nfs_dask.store.receipts import verify
from tests.helpers.commands import as_json
from tests.helpers.stored import assert_same_matrix, labels, names

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

WORDS = ["alpha", "Beta", "gamma", "don't", "été", "日本語", "the", "of", "ﬁn", *(f"word{i}" for i in range(200))]


@pytest.fixture
def mail(s3: str) -> Any:
    """Four files of texts, and what is in them."""
    rng = np.random.default_rng(9)
    texts = [" ".join(rng.choice(WORDS, size=1 + rng.poisson(8))) for _ in range(400)]
    frame = pd.DataFrame({"text": texts, "label": rng.choice(["ham", "spam"], size=400)})
    for number in range(4):
        frame[number * 100 : number * 100 + 100].to_parquet(f"{s3}/mail/part-{number}.parquet", row_group_size=30)
    return frame


def objects(url: str) -> list[str]:
    """All objects of a bucket, seen with another client than the one that wrote them."""
    listing = boto3.client("s3").list_objects_v2(Bucket=url.split("/")[2])
    return [item["Key"] for item in listing.get("Contents", [])]


def uploads(url: str) -> Any:
    return boto3.client("s3").list_multipart_uploads(Bucket=url.split("/")[2]).get("Uploads", [])


def tops(url: str) -> set[str]:
    return {key.partition("/")[0] for key in objects(url)}


@pytest.mark.parametrize("tfidf", [False, True])
def test_from_files_on_s3_to_a_store_on_s3(s3_cluster: Client, s3: str, mail: Any, tfidf: bool) -> None:
    settings: dict[str, Any] = {"label_column": "label", "ngrams": (1, 2), "tfidf": tfidf}
    dataset = ingest(f"{s3}/mail/*.parquet", f"{s3}/mail.zarr", engine=DaskEngine(), **settings)
    vectorizer = (TfidfVectorizer if tfidf else CountVectorizer)(ngram_range=(1, 2)).fit(mail["text"])
    assert names(dataset) == vectorizer.get_feature_names_out().tolist()
    assert_same_matrix(dataset, vectorizer.transform(mail["text"]))
    assert labels(dataset).tolist() == mail["label"].tolist()
    verify(f"{s3}/mail.zarr")
    assert tops(s3) == {"mail", "mail.zarr"}

    more = mail[:150].iloc[::-1]
    more.to_parquet(f"{s3}/more.parquet")
    ingest(f"{s3}/more.parquet", f"{s3}/mail.zarr", engine=DaskEngine(), append=True, **settings)
    longer = open_dataset(f"{s3}/mail.zarr")
    assert_same_matrix(longer, vectorizer.transform(pd.concat([mail["text"], more["text"]])))
    assert labels(longer).tolist() == [*mail["label"], *more["label"]]
    verify(f"{s3}/mail.zarr")
    assert tops(s3) == {"mail", "mail.zarr", "more.parquet"}
    assert uploads(s3) == []


def test_the_store_does_not_depend_on_where_it_is(s3: str, mail: Any, tmp_path: Any) -> None:
    source = f"{s3}/mail/*.parquet"
    there = as_json("ingest", source, f"{s3}/mail.zarr", "--label-column", "label")
    here = ingest(source, tmp_path / "mail.zarr", label_column="label", engine=SerialEngine())
    assert there["fingerprint"] == here.fingerprint


@pytest.fixture
def interrupted(s3_cluster: Client, s3: str, mail: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """The ingest, which was stopped when all was counted, to be called again."""
    run = ClusterExecutor.map_items

    def again(**changed: Any) -> Any:
        settings = {"label_column": "label", "engine": DaskEngine(), **changed}
        return ingest(f"{s3}/mail/*.parquet", f"{s3}/mail.zarr", **settings)

    def stopping(self: Any, function: Any, items: Any, **how: Any) -> Any:
        if function.__name__ != "count_texts":
            raise KeyboardInterrupt
        return run(self, function, items, **how)

    with monkeypatch.context() as patch:
        patch.setattr(ClusterExecutor, "map_items", stopping)
        with pytest.raises(KeyboardInterrupt):
            again()
    assert tops(s3) == {"mail", ".mail.zarr.ingest"}
    return again


def test_an_interrupted_ingest_goes_on(
    interrupted: Callable[..., Any], s3: str, mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [key for key in objects(s3) if key.endswith(".terms")]
    with pytest.raises(ResumeError, match="other settings"):
        interrupted(ngrams=(2, 2))

    def unreadable(self: ParquetDocuments, piece: int) -> Any:
        raise AssertionError("all of them had been counted")

    monkeypatch.setattr(ParquetDocuments, "batches", unreadable)
    dataset = interrupted(engine=SerialEngine())
    assert_same_matrix(dataset, CountVectorizer().fit_transform(mail["text"]))
    assert tops(s3) == {"mail", "mail.zarr"}


def test_what_an_interrupted_ingest_left_is_cleaned_up(interrupted: Callable[..., Any], s3: str) -> None:
    clean_up(f"{s3}/mail.zarr")
    assert tops(s3) == {"mail"}
