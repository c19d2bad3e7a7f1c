"""Explaining what a model says of rows and texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.models.contributions import Contributions, SelectedEntries
from nfs_dask.models.model import Model, Names
from nfs_dask.prediction.explained_rows import Choice, Explainable, Rows, chosen_rows
from nfs_dask.prediction.explanation import Explanation
from nfs_dask.prediction.reader import Reader
from nfs_dask.prediction.text_marks import TextMarks
from nfs_dask.sources.source import Source

MOST_NUMBERS = 1 << 26  # contributions that are held, 512 MiB of them


def explain(
    X: Explainable,
    model: Model,
    documents: Any = None,
    *,
    first: int | None = None,
    names: Names | None = None,
    engine: Engine | None = None,
) -> Explanation:
    """What each selected feature contributes to what a model says of some rows.

    Parameters
    ----------
    X
        Rows with the features of the model, or texts and who reads them.
    model
        That which decides.
    documents
        Numbers of the rows to look at, from 0 on, which come in this order; None: all, if they are not too many.
    first
        In place of numbers: so many documents, the first that are there.
    names
        What columns are called, of a model that does not know it.
    engine
        Where documents in files are read, as far as that takes tasks.
    """
    choice = Choice.of(documents, first)
    reader = None if isinstance(X, Source) else X.reader
    return explain_lots(chosen_rows(X, choice, engine), model, names, reader, choice.given)


def explain_lots(
    lots: Iterable[Rows], model: Model, names: Names | None = None, reader: Reader | None = None, order: Any = None
) -> Explanation:
    """The same of rows at hand, lot by lot.

    Parameters
    ----------
    lots
        Rows, with their texts or without.
    model, names
        As of `explain`.
    reader
        Who has read the texts; None: there are none.
    order
        Numbers of the rows in the order wanted; None: as they come.
    """
    numbers, scores = [np.zeros(0, np.int64)], [np.zeros((0, model.n_classes))]
    found, texts, held = [_nothing(model)], list[tuple[str, ...]](), 0
    for rows in lots:
        numbers.append(rows.numbers)
        if model.absence_counts:  # before as much is made
            wide = len(model.support) * (1 if model.n_classes == 2 else model.n_classes)
            _refuse_much(held + len(rows.numbers) * wide, sum(map(len, numbers)))
        scores.append(model.scores(rows.block, rows.trusted))
        found.append(model.contributions(rows.block, rows.trusted))
        texts += rows.texts or ()
        held += found[-1].parts.size
        _refuse_much(held, sum(map(len, numbers)))
    together = np.concatenate(numbers)
    order = np.arange(len(together)) if order is None else np.searchsorted(together, order)
    return _explanation(
        reader,
        model,
        names,
        together[order],
        np.concatenate(scores)[order],
        Contributions.joined(found).of_rows(order),
        [texts[i] for i in order.tolist()] if texts else None,
    )


def _explanation(
    reader: Reader | None,
    model: Model,
    names: Names | None,
    numbers: Array,
    scores: Array,
    contributions: Contributions,
    texts: list[tuple[str, ...]] | None,
) -> Explanation:
    columns, features, contributions = _named(model, contributions, names)
    return Explanation(
        classes=model.classes,
        documents=numbers,
        decision=scores[:, 1] - scores[:, 0] if model.n_classes == 2 else scores,
        probabilities=np.exp(model.log_posterior(scores)) if model.has_probabilities else None,
        contributions=contributions,
        features=features,
        columns=columns,
        compared=model.compared,
        at_base=model.at_base,
        texts=None if texts is None else tuple(texts),
        marking=None if reader is None else TextMarks(reader.for_tasks()),
    )


def _refuse_much(n: int, n_documents: int) -> None:
    if n > MOST_NUMBERS:
        raise InputError(
            f"the first {n_documents:,} documents have {n:,} contributions, and {MOST_NUMBERS:,} are held at most; "
            "choose fewer, such as documents=range(100)"
        )


def _nothing(model: Model) -> Contributions:
    """Of no rows."""
    wide = () if model.n_classes == 2 else (model.n_classes,)
    entries = SelectedEntries(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Contributions(np.zeros((0, *wide)), entries, np.zeros((0, *wide)))


def _named(
    model: Model, contributions: Contributions, names: Names | None
) -> tuple[Array, tuple[str, ...], Contributions]:
    """Columns and names of the features that are there, and the same contributions with positions among these."""
    entries = contributions.entries
    present, positions = np.unique(entries.positions, return_inverse=True)
    columns = model.support[present]
    known = names(columns) if names is not None and model.names is None and len(columns) else None
    if known is None:
        known = [f"x{column}" for column in columns.tolist()]
        if model.names is not None:
            known = [model.names[position] for position in present.tolist()]
    renumbered = SelectedEntries(entries.indptr, positions, entries.values)
    return columns, tuple(known), Contributions(contributions.base, renumbered, contributions.parts)
