"""What is known of a dataset, or of a saved model, without a pass over any data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.dataset import Dataset
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import json_object
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.sources.row_tables import RowTable
from nfs_dask.store.header import ROOT, Header, find_header
from nfs_dask.store.model_files import read_model
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings

CODES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class StoreTexts:
    """How the rows of a dataset were made of texts."""

    settings: TextSettings
    regions: tuple[str, ...]  # their names; none where a document is one text
    terms: int  # of the vocabulary; with hashing, columns of a region
    documents: int  # of the ingest that made the vocabulary
    report: dict[str, Any]  # what that ingest, and appends after it, met

    @classmethod
    def of(cls, facts: TextFacts) -> StoreTexts:
        return cls(facts.settings, _named(facts.regions), facts.n_terms, facts.n_documents, facts.report)


@dataclass(frozen=True)
class ModelTexts:
    """How a model reads raw text."""

    settings: TextSettings
    regions: tuple[str, ...]  # the columns it takes; none where a document is one text
    terms: int
    documents: int
    tokenizer: str | None  # has to be given when the model is loaded; it is not in the file
    looks_up_terms: bool  # whether the model comes with the whole vocabulary, since values depend on all of a document

    @classmethod
    def of(cls, features: TextFeatures) -> ModelTexts:
        settings, regions = features.settings, _named(features.regions)
        looks_up = features.needs_vocabulary
        return cls(settings, regions, features.n_terms, features.n_documents, settings.tokenizer, looks_up)


def _named(regions: tuple[str, ...]) -> tuple[str, ...]:
    return regions if len(regions) > 1 else ()


@dataclass(frozen=True)
class Summary:
    """Facts about a dataset, as `summarize` finds them; None where a fact is not to be had cheaply."""

    location: str
    rows: int
    features: int
    entries: int | None
    kind: str | None
    classes: list[Any] | None
    class_rows: list[int] | None  # documents of each class
    unlabelled: int | None  # documents of none
    weighted: bool
    names: bool
    fingerprint: str | None
    generation: int | None  # None: not a store of ours
    nbytes: int
    columns: list[str]  # of the table of rows
    statistics: list[dict[str, Any]]  # kept beside the data, as descriptions
    text: StoreTexts | None  # None: the rows were not made of texts

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ModelSummary:
    """Facts about a saved model, as `summarize_model` finds them."""

    location: str
    method: str
    k: int
    features: int
    classes: list[Any]
    class_count: list[float]  # documents of each class, under their weights
    measure: str  # what the objective is
    objective: float
    gap: float  # no other choice of k features has an objective that is better by more than this
    certified: bool
    parameters: dict[str, Any]
    provenance: dict[str, Any]
    top_features: dict[str, list[tuple[str, float]]]  # of each class
    nbytes: int
    text: ModelTexts | None  # None: it reads matrices only
    slopes: dict[str, float] | None  # theta of each region of a hybrid naive Bayes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarize_model(location: str | os.PathLike[str], top: int = 10) -> ModelSummary:
    """Facts about a saved model, with at most ``top`` features of each class."""
    folder = Folder.of(location)
    model, parameters = read_model(location)
    return ModelSummary(
        location=folder.location,
        method=model.method,
        k=len(model.support),
        features=model.n_features,
        classes=model.classes.tolist(),
        class_count=model.class_count.tolist(),
        measure=model.measure,
        objective=model.evidence.objective,
        gap=model.evidence.gap,
        certified=model.evidence.certified,
        parameters=parameters,
        provenance=dict(model.provenance),
        top_features={str(label): best for label, best in model.top_features(top).items()},
        nbytes=folder.nbytes(),
        text=None if model.text is None else ModelTexts.of(model.text),
        slopes=slopes_of(model),
    )


def chosen_features(model: Model, names: Sequence[str]) -> list[dict[str, Any]]:
    """Every feature that was selected, with the class it speaks for most and how much; the strongest first.

    ``names`` are those of the selected features, in the order of their columns.
    """
    margins, labels = model.margins(), model.classes.tolist()
    best = margins.argmax(axis=0)
    order = np.argsort(-margins.max(axis=0), kind="stable")
    return [
        {"feature": names[i], "class": labels[best[i]], "weight": float(margins[best[i], i])} for i in order.tolist()
    ]


def slopes_of(model: Model) -> dict[str, float] | None:
    """Theta of each region of a hybrid naive Bayes, by the region's name or number; None of other models."""
    if not isinstance(model, HybridModel):
        return None
    named = () if model.text is None else _named(model.text.regions)
    names = named or [f"region {r}" for r in range(model.n_regions)]
    return dict(zip(names, model.slopes.tolist(), strict=True))


def summarize(dataset: Dataset) -> Summary:
    """Facts about a dataset that has a location; of the data themselves only the labels are read."""
    assert dataset.location is not None
    folder = Folder(dataset.location)
    header = find_header(json_object(folder, ROOT), folder.location) if folder.exists(ROOT) else None
    classes = None if dataset.classes is None else dataset.classes.tolist()
    counts = None if header is None or header.codes is None else _count_codes(folder, header)
    kept = dataset.statistics
    return Summary(
        location=dataset.location,
        rows=dataset.n_rows,
        features=dataset.n_features,
        entries=dataset.nnz,
        kind=dataset.kind,
        classes=classes,
        class_rows=None if counts is None or header is None else _in_order(counts[1:], header, classes or []),
        unlabelled=None if counts is None else int(counts[0]),
        weighted=dataset.source.weighted,
        names=dataset.names(np.arange(1)) is not None,
        fingerprint=dataset.fingerprint,
        generation=None if header is None else header.generation,
        nbytes=folder.nbytes(),
        columns=_columns_of(dataset),
        statistics=[] if kept is None else kept.descriptions(),
        text=None if dataset.text is None else StoreTexts.of(dataset.text),
    )


def _columns_of(dataset: Dataset) -> list[str]:
    """Columns of the table of rows, as `labels` and `where` name them."""
    table = dataset.source.annotations
    if not isinstance(table, RowTable):
        return []
    with table.opened() as place:
        return [str(name) for name in table.names(place)]


def _count_codes(folder: Folder, header: Header) -> Array:
    """How many rows have no label, then each class as the codes number them."""
    assert header.codes is not None
    reader = ShardReader(folder, header.codes)
    counts = np.zeros(1 + len(header.classes), np.int64)
    for start in range(0, header.n_rows, CODES_AT_A_TIME):
        codes = reader.read(start, min(start + CODES_AT_A_TIME, header.n_rows))
        if codes.min() < UNLABELLED or codes.max() >= len(header.classes):
            raise StoreError(
                f"{folder.path(header.codes.name)} is damaged: it has codes from {codes.min()} to {codes.max()}, and "
                f"there are {len(header.classes)} classes; restore it from a copy, or ingest again"
            )
        counts += np.bincount(codes.astype(np.int64) + 1, minlength=len(counts))
    return counts


def _in_order(counts: Array, header: Header, classes: list[Any]) -> list[int]:
    """The counts in the order of the dataset's classes: those of a store are in the order they were written."""
    by_class = dict(zip(header.classes, counts.tolist(), strict=True))
    return [by_class[label] for label in classes]
