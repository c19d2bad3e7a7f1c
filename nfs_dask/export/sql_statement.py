"""Models as one statement of SQL: from tables of counted words, or of texts, to the class of each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.export.additive import AdditiveScores, additive_scores, refuse_exact_features, refuse_unselected
from nfs_dask.export.sql_dialects import Dialect
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model

MOST_CLASSES = 800  # PostgreSQL has at most 1,664 columns in a query, and a class may have two

OURS = "nfs_dask_"  # what the names of our own tables begin with


@dataclass(frozen=True)
class FeatureSums:
    """What a statement sums up over the selected features of a document, and what it makes of the sums."""

    columns: list[str]  # of the table of features
    values: Array  # (columns, k)
    scores: list[str]  # an expression for each class that can be predicted
    zeros: list[str]  # of these, how many features rule it out; empty where none does


def statement(
    model: Model, names: Sequence[str], dialect: Dialect, counted: str, tables: Sequence[tuple[str, str]] = ()
) -> str:
    """The whole statement.

    Parameters
    ----------
    model
    names : (k,) terms of the selected features
    dialect
    counted
        A table, or a query in brackets, of ``document``, ``term`` and ``n``.
    tables
        Names and queries of tables before it, that ``counted`` reads.
    """
    refuse_unselected(model, "SQL")
    refuse_exact_features(model)
    classes = model.classes[model.seen].tolist()
    if len(classes) > MOST_CLASSES:
        raise InputError(f"{len(classes):,} classes are more than the {MOST_CLASSES} that a query has columns for")
    sums = _feature_sums(model, dialect)
    queries = [
        *tables,
        ("weights", dialect.weights(sums.columns, _rows(names, sums.values, dialect))),
        ("counts", _counts(counted, dialect)),
        ("sums", _sums(sums)),
        ("scores", _scores(sums, dialect)),
    ]
    said = ",\n".join(f"{OURS}{name} AS (\n  {query}\n)" for name, query in queries)
    return f"WITH {said}\n{_choice(model, classes, sums, dialect)}"


def _rows(names: Sequence[str], values: Array, dialect: Dialect) -> list[str]:
    """Number, term and values of each feature that this database can hold the term of."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"two selected features are named {twice!r}, which SQL could not tell apart; rename one")
    rows = [
        ", ".join([str(number), dialect.text(name), *map(dialect.literal, column)])
        for number, (name, column) in enumerate(zip(names, values.T.tolist(), strict=True), 1)
        if dialect.holds(name)
    ]
    if not rows:
        raise InputError(f"no selected feature has a name that {dialect.name} can hold; rename them")
    return rows


def _counts(counted: str, dialect: Dialect) -> str:
    """A row for each document and selected feature, and one for all other terms together.

    A document may have a term in several rows, and a database joins what has no partner to NULL or to zero.
    """
    return (
        f"SELECT rows_of.document AS document, weights.feature AS feature, "
        f"CAST(sum(rows_of.n) AS {dialect.double}) AS amount\n"
        f"  FROM {counted} AS rows_of\n"
        f"    LEFT JOIN {OURS}weights AS weights ON weights.term = rows_of.term\n"
        f"  GROUP BY rows_of.document, weights.feature"
    )


def _sums(sums: FeatureSums) -> str:
    columns = [f"{score} AS score_{i}" for i, score in enumerate(sums.scores)]
    columns += [f"{zero} AS zeros_{i}" for i, zero in enumerate(sums.zeros)]
    return (
        "SELECT counts.document AS document,\n    " + ",\n    ".join(columns) + f"\n  FROM {OURS}counts AS counts "
        f"LEFT JOIN {OURS}weights AS weights ON weights.feature = counts.feature\n  GROUP BY counts.document"
    )


def _scores(sums: FeatureSums, dialect: Dialect) -> str:
    """The scores with classes ruled out, and the best one."""
    scores = [f"score_{i}" for i in range(len(sums.scores))]
    if sums.zeros:
        out = [
            f"CASE WHEN zeros_{i} > 0 THEN {dialect.minus_infinity} ELSE {score} END AS left_{i}"
            for i, score in enumerate(scores)
        ]
        source = f"(SELECT document, {', '.join(out)} FROM {OURS}sums) AS ruled"
        scores = [f"left_{i}" for i in range(len(scores))]
    else:
        source = f"{OURS}sums"
    named = ", ".join(f"{score} AS final_{i}" for i, score in enumerate(scores))
    best = scores[0] if len(scores) == 1 else dialect.greatest(scores)
    return f"SELECT document, {named}, {best} AS best\n  FROM {source}"


def _choice(model: Model, classes: Sequence[str | int | float | bool], sums: FeatureSums, dialect: Dialect) -> str:
    """The first class that has the best score."""
    labels = [dialect.label(label) for label in classes]
    cases = [f"WHEN final_{i} = best THEN {label}" for i, label in enumerate(labels)]
    if sums.zeros:
        otherwise = classes[int(np.argmax(_prior(model)[model.seen]))]
        cases.insert(0, f"WHEN best = {dialect.minus_infinity} THEN {dialect.label(otherwise)}")
    return (
        f"SELECT document AS {dialect.identifier('document')},\n  CASE\n    "
        + "\n    ".join(cases)
        + f"\n  END AS {dialect.identifier('class')}\nFROM {OURS}scores"
    )


def _prior(model: Model) -> Array:
    scores = additive_scores(model)
    return np.zeros(model.n_classes) if scores is None or scores.otherwise is None else scores.otherwise


def _feature_sums(model: Model, dialect: Dialect) -> FeatureSums:
    additive = additive_scores(model)
    if additive is not None:
        return _of_additive(model, additive, dialect)
    if isinstance(model, HybridModel):
        return _of_shares(model, dialect)
    assert isinstance(model, CentersModel), "all other models are additive"
    return _of_medians(model, dialect)


def _of_additive(model: Model, scores: AdditiveScores, dialect: Dialect) -> FeatureSums:
    seen = model.seen
    columns = [f"w_{i}" for i in range(len(seen))]
    if scores.threshold is None:
        worth = [f"counts.amount * weights.{column}" for column in columns]
        met = "counts.amount <> 0"
    else:
        met = f"counts.amount > {dialect.number(scores.threshold)}"
        worth = [f"CASE WHEN {met} THEN weights.{column} ELSE 0 END" for column in columns]
    starts = [dialect.number(start) for start in scores.start.finite[seen].tolist()]
    sums = [f"{start} + coalesce(sum({term}), 0)" for start, term in zip(starts, worth, strict=True)]
    values, zeros = scores.steps.finite[seen], scores.steps.zeros[seen]
    if not zeros.any() and not scores.start.zeros[seen].any():
        return FeatureSums(columns, values, sums, [])
    counted = [f"z_{i}" for i in range(len(seen))]
    ruled = [
        f"{start} + coalesce(sum(CASE WHEN {met} THEN weights.{column} ELSE 0 END), 0)"
        for start, column in zip(scores.start.zeros[seen].tolist(), counted, strict=True)
    ]
    return FeatureSums([*columns, *counted], np.concatenate([values, zeros]), sums, ruled)


def _of_medians(model: CentersModel, dialect: Dialect) -> FeatureSums:
    """How much nearer than the common center: what a feature adds at its value less what it adds at zero."""
    centers, pooled = model.centers[model.seen], model.pooled
    at_zero = np.abs(pooled) - np.abs(centers)
    columns = [f"c_{i}" for i in range(len(centers))]
    zeros = [f"a_{i}" for i in range(len(centers))]
    sums = [
        f"{dialect.number(start)} + coalesce(sum((abs(counts.amount - weights.pooled) "
        f"- abs(counts.amount - weights.{column})) - weights.{zero}), 0)"
        for start, column, zero in zip(at_zero.sum(axis=1).tolist(), columns, zeros, strict=True)
    ]
    return FeatureSums(["pooled", *columns, *zeros], np.concatenate([pooled[None], centers, at_zero]), sums, [])


def _of_shares(model: HybridModel, dialect: Dialect) -> FeatureSums:
    """Regions whose sums are divided by their numbers of words."""
    seen, k, n_regions = model.seen, len(model.support), model.n_regions
    logs = model.log_probabilities
    by_region = logs[:, None, :] if logs.ndim == 2 else logs
    values = np.broadcast_to(by_region, (model.n_classes, n_regions, k // n_regions)).reshape(model.n_classes, k)
    intercepts = model.intercepts
    if model.n_classes == 2:
        values = np.stack([np.zeros(k), values[1] - values[0]])
    regions = np.repeat(np.arange(n_regions), k // n_regions)
    columns = [f"w_{i}" for i in range(len(seen))]
    sums = []
    for intercept, column in zip(intercepts[seen].tolist(), columns, strict=True):
        parts = [dialect.number(intercept)]
        for region, slope in enumerate(model.slopes.tolist()):
            inside = f"weights.feature > 0 AND weights.region = {region}"
            words = f"sum(CASE WHEN {inside} THEN counts.amount * weights.{column} ELSE 0 END)"
            size = f"nullif(sum(CASE WHEN {inside} THEN counts.amount ELSE 0 END), 0)"
            parts.append(f"{dialect.number(slope)} * coalesce({words} / {size}, 0)")
        sums.append("\n      + ".join(parts))
    return FeatureSums([*columns, "region"], np.concatenate([values[seen], regions[None]]), sums, [])
