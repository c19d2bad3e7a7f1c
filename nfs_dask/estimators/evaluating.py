"""`evaluate`: how good a fitted classifier is on documents whose labels are known, wherever they lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.containers import a_type, is_collection, is_column, is_frame, listed, split_off, unwrapped
from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.documents.in_memory import TEXT, holds_texts
from nfs_dask.documents.open_documents import is_documents, open_documents
from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.inputs import check_features, check_fitted, numeric, one_column, reader_of, rows_of
from nfs_dask.graphs import added, computed, reduced
from nfs_dask.prediction import evaluation
from nfs_dask.prediction.evaluation import Evaluation, judged
from nfs_dask.prediction.explained_rows import Choice, chosen_rows
from nfs_dask.prediction.explaining import explain_lots
from nfs_dask.prediction.explanation import Explanation
from nfs_dask.prediction.lazy_chunks import partitions
from nfs_dask.prediction.model_rows import ReadDocuments
from nfs_dask.prediction.reader import Reader, TextSource, partition_source
from nfs_dask.prediction.scoring import score
from nfs_dask.sources.labels import encode
from nfs_dask.sources.open_source import open_source


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    label_column: str | None = None,
    text_column: str | None = None,
    regions: Sequence[str] | Mapping[str, str] | None = None,
    encoding: str = DocumentParameters.encoding,
    on_error: OnError = DocumentParameters.on_error,
    engine: Engine | None = None,
) -> Evaluation:
    """How good a fitted classifier is: the numbers of ``nfs-dask evaluate``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    X : Dataset, matrix, path or texts
        A Dataset with labels; a matrix, also of Dask or in files, as `fit` and `open_dataset` take them; or for a model
        of texts, documents as `ingest` takes them, in files of any kind, in tables, or in memory.
    y : (n,) labels, optional
        Of rows and texts that bring none. Texts match the numbers that they write, as CSV has texts where Parquet has
        numbers: "1", "01" and "1.0" are 1, "true" is True. A number that two classes write is refused.
    label_column : str, optional
        The column of X that holds the labels.
    text_column, regions, encoding, on_error : as of `ingest`
        How documents are read, as of `ingest`.
    engine : SerialEngine or DaskEngine, optional
        Where they are read; None: that of the estimator, else as for a pass.

    Returns
    -------
    Evaluation
        With ``accuracy`` and its 95 % ``interval``, ``majority_accuracy``, ``balanced_accuracy``, ``f1_macro``,
        ``precision`` and ``recall`` of each of ``labels``, and ``confusion``; `to_json` has all of them, ``roc_auc`` of
        two classes, and ``log_loss``, ``brier_score``, calibration and coverage of models that have probabilities.
        Documents count once, whatever weights they have; those without a label do not.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]
    >>> model = nfs.SparseMultinomialNB(k=2).fit(X, ["tea", "tea", "coffee", "coffee"])
    >>> nfs.evaluate(model, X, ["tea", "coffee", "coffee", "coffee"]).accuracy
    0.75
    """
    reading = DocumentParameters(text_column, regions, label_column, encoding=encoding, on_error=on_error)
    return evaluate_closely(model, X, y, reading, engine, keep=0)


def evaluate_closely(
    model: Any, X: Any, y: Any, reading: DocumentParameters, engine: Engine | None, keep: int
) -> Evaluation:
    """The same, with so many documents that were hardest."""
    check_model(model)
    engine = model.engine if engine is None else engine
    if y is not None and reading.label_column is not None:
        raise InputError("y= and label_column= both say what the labels are; give one of them")
    if isinstance(X, Dataset):
        _refuse_reading(reading, X)
        return _of_rows(model, X, y, reading.label_column, engine, keep)
    X = listed(unwrapped(X))
    regions = model.model_.text.regions if model.model_.text is not None else ()
    if is_documents(X, reading) or (is_frame(X) and holds_texts(X, regions)):
        return _of_documents(model, X, y, reading, engine, keep)
    _refuse_reading(reading, X)
    return _of_rows(model, numeric(X), y, reading.label_column, engine, keep)


def explain_hardest(model: Any, found: Evaluation) -> Explanation | None:
    """Why the documents that were hardest were taken for what they were; None where none were kept."""
    lots = [] if found.hardest is None else found.hardest.rows()
    if not lots:
        return None
    names = getattr(model, "_names", None)
    reader = reader_of(model) if lots[0].texts is not None else None
    return explain_lots(lots, model.model_, None if names is None else names.names, reader)


def check_model(model: Any) -> None:
    """Refuse what is no fitted classifier of ours."""
    if not isinstance(model, SparseClassifier):
        raise InputError(
            f"the model is {a_type(model)}; give a fitted estimator of this package: the last step of a Pipeline, with "
            "the rows that the steps before it make; or what load_model(path) gives"
        )
    check_fitted(model)


def _of_rows(model: Any, X: Any, y: Any, label_column: str | None, engine: Engine | None, keep: int) -> Evaluation:
    """Of a dataset, or a matrix wherever it lies."""
    if not isinstance(X, Dataset):
        asked = open_dataset(X, labels=label_column if y is None else one_column(y))
    elif label_column is not None:
        raise InputError(f"label_column={label_column!r} was given with a Dataset; name it where that is opened")
    else:
        asked = X if y is None else Dataset(open_source(X.source, one_column(y)), X.location)
    check_features(model, asked)
    return evaluation.evaluate(model.model_, asked, engine, keep)


def _of_documents(
    model: Any, X: Any, y: Any, reading: DocumentParameters, engine: Engine | None, keep: int
) -> Evaluation:
    """Of texts: read piece by piece where they bring their labels."""
    reader = reader_of(model)
    if y is not None:
        return _of_given_labels(model, X, y, reading, keep)
    if is_collection(X):
        return _of_given_labels(model, *_lazy_columns(model, X, reading), keep)
    if len(reader.features.regions) > 1 and reading.text_column is None and reading.regions is None:
        reading = replace(reading, regions=list(reader.features.regions))
    documents = open_documents(X, reading)
    return evaluation.evaluate(model.model_, ReadDocuments(documents, reader), engine, keep)


def _of_given_labels(model: Any, X: Any, y: Any, reading: DocumentParameters, keep: int) -> Evaluation:
    """Of texts at hand, with labels beside them; of Dask on both sides, partition by partition where these are."""
    if isinstance(X, (str, os.PathLike)) or any(isinstance(one, os.PathLike) for one in _members(X)):
        raise InputError("y= was given, and X is files, whose labels are in them; name their column as label_column=")
    texts = X if reading.text_column is None else split_off(X, reading.text_column)[0]
    _refuse_reading(replace(reading, text_column=None), X)
    rows, y = rows_of(model, texts), unwrapped(y, "y")
    if is_collection(texts) and is_collection(y):
        parts = partitions(texts)
        judge = partial(_judge_texts, rows.reader.for_tasks(), keep)
        found: Evaluation = reduced("evaluation", judge, added, [texts, y, list(range(len(parts)))])
    else:
        found = _judge_rows(rows, y, keep)
    evaluation.check_known(found)
    return found


def _judge_texts(reader: Reader, keep: int, texts: Any, y: Any, number: int) -> Evaluation:
    return _judge_rows(partition_source(reader, texts, number), y, keep)


def _judge_rows(rows: TextSource, y: Any, keep: int) -> Evaluation:
    """Of texts, also of Dask, of which none are kept then."""
    scores, y = computed(score(rows, rows.reader.model, "scores")), computed(y)
    found = judged(rows.reader.model, np.asarray(scores), *encode(one_column(y), len(scores)), keep)
    if found.hardest is None or is_collection(rows.given):
        return found
    return replace(found, hardest=found.hardest.beside(chosen_rows(rows, Choice.of(found.hardest.numbers), None)))


def _lazy_columns(model: Any, X: Any, reading: DocumentParameters) -> tuple[Any, Any, DocumentParameters]:
    """The texts and the labels of a Dask data frame; which columns hold the texts is then said."""
    if reading.label_column is None or not is_frame(X):
        raise InputError(
            f"{a_type(X)} of Dask brings no labels here; give them as y=, or a data frame with label_column="
        )
    y, rest = split_off(X, reading.label_column)
    regions = model.model_.text.regions
    texts = rest if len(regions) > 1 else rest[reading.text_column or TEXT]
    return texts, y, replace(reading, text_column=None, label_column=None)


def _members(X: Any) -> Sequence[Any]:
    return X if isinstance(X, (list, tuple)) else ()


def _refuse_reading(reading: DocumentParameters, X: Any) -> None:
    """Refuse what would mean nothing."""
    told = [one.name for one in fields(reading) if getattr(reading, one.name) != one.default]
    useless = [name for name in told if name != "label_column"]
    if useless:
        what = "has been read already" if is_column(X) or is_collection(X) else "is a matrix"
        raise InputError(f"{useless[0]}= says how documents are read, and {a_type(X)} {what}; leave it out")
