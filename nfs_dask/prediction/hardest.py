"""The documents that a model got most wrong, and those it was least sure of, found block by block.

Only so many are kept, with their entries, and with the beginning of their texts: nothing grows with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, some_rows
from nfs_dask.documents.document_source import Batch
from nfs_dask.prediction.explained_rows import Rows, texts_of

MOST_LETTERS = 100_000  # of a text that is kept


@dataclass(frozen=True)
class HardDocument:
    """A document whose label is known, and how the model did on it."""

    number: int  # from 0 on, in the order they are read; those left out count
    label: Any
    off: float  # score of the predicted class less that of the true one: 0 if it is right
    lead: float  # score of the predicted class less that of the next one
    rows: Rows | None  # its entries and texts; None where these are elsewhere

    def later(self, by: int) -> HardDocument:
        """The same after so many others."""
        return replace(self, number=self.number + by)


@dataclass(frozen=True)
class Hardest:
    """Documents that are hardest for a model."""

    keep: int  # at most so many of each
    seen: int = 0  # documents, also those left out
    wrong: tuple[HardDocument, ...] = ()  # the most wrong first
    unsure: tuple[HardDocument, ...] = ()  # the least sure first

    def __add__(self, other: Hardest) -> Hardest:
        """Of these and those that follow."""
        later = [[one.later(self.seen) for one in found] for found in (other.wrong, other.unsure)]
        return Hardest(
            self.keep,
            self.seen + other.seen,
            _first(chain(self.wrong, later[0]), self.keep, lambda one: -one.off),
            _first(chain(self.unsure, later[1]), self.keep, lambda one: one.lead),
        )

    @property
    def numbers(self) -> Array:
        """Of all of them, each once."""
        return np.unique(np.array([one.number for one in (*self.wrong, *self.unsure)], np.int64))

    def beside(self, lots: Iterable[Rows]) -> Hardest:
        """The same with their rows, which were found elsewhere."""
        rows = {
            int(number): lot._replace(
                numbers=lot.numbers[i : i + 1],
                block=some_rows(lot.block, np.arange(lot.block.n_rows) == i),
                texts=None if lot.texts is None else [tuple(text[:MOST_LETTERS] for text in lot.texts[i])],
            )
            for lot in lots
            for i, number in enumerate(lot.numbers)
        }
        wrong, unsure = (
            tuple(replace(one, rows=rows.get(one.number)) for one in found) for found in (self.wrong, self.unsure)
        )
        return replace(self, wrong=wrong, unsure=unsure)

    def numbered(self, choice: Any) -> Hardest:
        """The same, numbered as what rows were chosen from."""
        wrong, unsure = (
            tuple(replace(one, number=int(choice.rows(one.number, one.number + 1)[0])) for one in found)
            for found in (self.wrong, self.unsure)
        )
        return replace(self, wrong=wrong, unsure=unsure)

    def rows(self) -> list[Rows]:
        """All of them, each once, ascending, as far as they are at hand."""
        found = {one.number: one.rows for one in (*self.wrong, *self.unsure) if one.rows is not None}
        return [rows._replace(numbers=np.array([number])) for number, rows in sorted(found.items())]


def hardest_of(
    scores: Array,
    codes: Array,
    true: Array,
    labels: Array,
    keep: int,
    block: Block | None = None,
    batch: Batch | None = None,
    trusted: bool = True,
) -> Hardest:
    """The hardest of some documents.

    Parameters
    ----------
    scores : (n, C)
        What a model says of them; larger is better.
    codes : (n,)
        Which of the labels they have, -1 for none; such documents are not among the hardest.
    true : (L,)
        Which class each label is, -1 for labels that are none; such documents cannot be compared.
    labels : (L,)
    keep
        At most so many of each.
    block, batch
        Where they come from, if their entries and their texts are to be kept.
    trusted
        Of the values of the block.
    """
    n = len(scores)
    numbers, seen = (np.arange(n), n) if batch is None else (batch.rows, batch.seen)
    if scores.shape[1] < 2 or not n or not keep:
        return Hardest(keep, seen)
    place = np.where(codes >= 0, true[np.maximum(codes, 0)] if len(true) else -1, -1)
    rows = np.arange(n)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    best, following = scores[rows, order[:, 0]], scores[rows, order[:, 1]]
    with np.errstate(invalid="ignore"):
        lead = np.nan_to_num(best - following, nan=0.0, posinf=np.inf)
        off = np.nan_to_num(best - scores[rows, np.maximum(place, 0)], nan=0.0, posinf=np.inf)
    known = place >= 0
    wrong = np.flatnonzero(known & (order[:, 0] != place))
    unsure = np.flatnonzero(known)
    wrong = wrong[np.argsort(-off[wrong], kind="stable")[:keep]]
    unsure = unsure[np.argsort(lead[unsure], kind="stable")[:keep]]
    made = {
        i: HardDocument(
            int(numbers[i]),
            labels[codes[i]].item(),
            float(off[i]) if order[i, 0] != place[i] else 0.0,
            float(lead[i]),
            _kept(block, batch, trusted, i),
        )
        for i in {*wrong.tolist(), *unsure.tolist()}
    }
    return Hardest(keep, seen, tuple(made[i] for i in wrong.tolist()), tuple(made[i] for i in unsure.tolist()))


def _kept(block: Block | None, batch: Batch | None, trusted: bool, row: int) -> Rows | None:
    """One document, in arrays of its own."""
    if block is None:
        return None
    mask = np.zeros(block.n_rows, bool)
    mask[row] = True
    texts = None
    if batch is not None:
        whole = texts_of(batch.document_by_document(), np.array([row]), len(batch.texts))[0]
        texts = [tuple(text[:MOST_LETTERS] for text in whole)]
    return Rows(np.zeros(1, np.int64), some_rows(block, mask), trusted, texts)


def _first(documents: Iterable[HardDocument], n: int, key: Any) -> tuple[HardDocument, ...]:
    """The first n in some order; of equal ones those that were read first."""
    found: Sequence[HardDocument] = sorted(documents, key=lambda one: (key(one), one.number))
    return tuple(found[:n])
