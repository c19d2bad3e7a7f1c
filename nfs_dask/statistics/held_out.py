"""Answers of models about documents they have not seen: one pass judges many models by the rows of their own folds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind, row_range, some_rows
from nfs_dask.arrays.doubles import Pair
from nfs_dask.errors import InputError
from nfs_dask.statistics.statistic import State, Statistic, added

SCORING = 5  # models that score take so many times the bytes of their arrays: tables by feature, and their zeros apart
SCORES = 1 << 17  # of some rows that are worked on at a time, so that they stay in the cache
MOST_CONFUSIONS = 1 << 20  # counts of a label and a class that are told apart; of more, only right answers are


class JudgedTogether(Protocol):
    """Models of the same data and classes."""

    def scores(self, block: Block) -> Array:
        """Return scores (n, P, C) of each row for each class, by each model."""
        ...


class Judged(Protocol):
    """A model, as far as it is judged here. Frozen dataclasses whose arrays decide what they say."""

    @property
    def n_features(self) -> int: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def has_probabilities(self) -> bool: ...

    @classmethod
    def together(cls, models: Sequence[Any]) -> JudgedTogether:
        """Some of them, as they score rows at once."""
        ...

    def log_posterior(self, scores: Array) -> Array: ...


@runtime_checkable
class Nested(Protocol):
    """A sequence of models that are parts of the largest of them, which alone is held."""

    @property
    def whole(self) -> Any: ...

    @property
    def places(self) -> tuple[Array, ...]:
        """Of the features of each model among its own."""
        ...


@dataclass(frozen=True, eq=False)
class HeldOut(Statistic):
    """Counts of right answers of the models of each fold about the rows of that fold.

    Rows come under codes ``f * C + c``: row of class c in fold f, for the models ``models[f]``, which were fitted to
    other folds; there are as many of them for each fold. Rows count once, whatever their weights. Totals:

    - "rows" (F, C): documents of each class;
    - "answers" (F, P, C, C): documents of a label that a model gives a class, or, if there were more than 2^20 such
      numbers, "right" (F, P, C): documents that it gives their own;
    - of models with probabilities "log_loss" and "log_loss_low" (F, P), sums as pairs of doubles of minus the logarithm
      of the probability of the true class, and "impossible" (F, P), documents where that probability is 0.
    """

    n_classes: int  # F * C
    models: tuple[Sequence[Judged], ...]

    name: ClassVar[str] = "held_out"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        n_models = {len(models) for models in self.models}
        n_labels = {model.n_classes for models in self.models for model in _held(models)}
        if len(n_models) != 1 or n_labels != {self.n_labels}:
            raise InputError(
                f"{self.n_classes} classes in {len(self.models)} folds, with models of {sorted(n_labels)} classes, "
                f"{sorted(n_models)} for a fold; give as many models for each fold, of the same classes"
            )

    @property
    def n_labels(self) -> int:
        """C, the classes of a fold."""
        return self.n_classes // len(self.models)

    @property
    def counts_answers(self) -> bool:
        """True if counts are by the class that a document was given, and not only of right answers."""
        return len(self.models) * len(self.models[0]) * self.n_labels**2 <= MOST_CONFUSIONS

    @property
    def has_losses(self) -> bool:
        """True of models with probabilities."""
        return self.models[0][0].has_probabilities

    def describe(self) -> dict[str, Any]:
        return {**self.in_short(), "models": self._digest}

    def in_short(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes}

    @cached_property
    def _digest(self) -> str:
        """A digest of the models."""
        digest = hashlib.blake2b(digest_size=16)
        for model in (model for models in self.models for model in models):
            plain = {field.name: getattr(model, field.name) for field in fields(model)}  # type: ignore[arg-type]
            digest.update(json.dumps({n: v for n, v in plain.items() if isinstance(v, str | int | float)}).encode())
            for name, value in _arrays_of(model).items():
                digest.update(json.dumps([name, value.dtype.str, value.shape]).encode())
                digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()

    def zero(self) -> State:
        shape = (len(self.models), len(self.models[0]))
        labels = (self.n_labels, self.n_labels) if self.counts_answers else (self.n_labels,)
        totals = {
            "rows": np.zeros((shape[0], self.n_labels), np.int64),
            "answers" if self.counts_answers else "right": np.zeros((*shape, *labels), np.int64),
        }
        if self.has_losses:
            totals |= {
                "log_loss": np.zeros(shape),
                "log_loss_low": np.zeros(shape),
                "impossible": np.zeros(shape, np.int64),
            }
        return State({}, totals)

    def update(self, state: State, block: Block) -> None:
        found = block.codes // self.n_labels
        for fold in np.unique(found).tolist():
            rows = some_rows(block, found == fold)
            codes = (rows.codes - fold * self.n_labels).astype(np.intp)
            state.totals["rows"][fold] += np.bincount(codes, minlength=self.n_labels)
            height = max(1, SCORES // (len(self.models[fold]) * self.n_labels))
            for first in range(0, rows.n_rows, height):
                last = min(first + height, rows.n_rows)
                scores = self._together[fold].scores(row_range(rows, first, last))
                self._judge(state.totals, fold, scores, codes[first:last, None])

    def _judge(self, totals: dict[str, Array], fold: int, scores: Array, labels: Array) -> None:
        """Compare the scores of some rows, (n, P, C), with their labels, (n, 1)."""
        given = _first_of_largest(scores)
        places = np.arange(given.shape[1]) * self.n_labels + labels
        if self.counts_answers:
            np.add.at(totals["answers"][fold].reshape(-1), (places * self.n_labels + given).ravel(), 1)
        else:
            np.add.at(totals["right"][fold].reshape(-1), places[given == labels], 1)
        if self.has_losses:
            logs = self.models[fold][0].log_posterior(scores)
            _add_losses(totals, fold, -np.take_along_axis(logs, labels[:, :, None], axis=2)[:, :, 0])

    def merge(self, left: State, right: State) -> State:
        totals = added(left.totals, right.totals)
        if self.has_losses:
            pairs = (Pair(side.totals["log_loss"], side.totals["log_loss_low"]) for side in (left, right))
            both = next(pairs) + next(pairs)
            totals["log_loss"], totals["log_loss_low"] = both.hi, both.lo
        return State({}, totals)

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return 0

    @property
    def carried_nbytes(self) -> int:
        """Bytes that the models take in a worker."""
        arrays = [a for models in self.models for model in _held(models) for a in _arrays_of(model).values()]
        places = [a for models in self.models if isinstance(models, Nested) for a in models.places]
        return SCORING * sum(array.nbytes for array in (*arrays, *places))

    @cached_property
    def _together(self) -> tuple[JudgedTogether, ...]:
        return tuple(models[0].together(models) for models in self.models)

    def __getstate__(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes, "models": self.models}


def _held(models: Sequence[Any]) -> Sequence[Any]:
    """Those of some models that take memory."""
    return [models.whole] if isinstance(models, Nested) else models


def losses(totals: Mapping[str, Array]) -> Array | None:
    """Sums of minus the logarithm of the probability of the true class, (F, P); None of models without probabilities.

    Infinite where a document was given a class that its model ruled out.
    """
    if "log_loss" not in totals:
        return None
    return np.where(totals["impossible"] > 0, np.inf, totals["log_loss"] + totals["log_loss_low"])


def right_answers(totals: Mapping[str, Array]) -> Array:
    """Documents of each class that models gave it, (F, P, C)."""
    return totals["right"] if "right" in totals else np.diagonal(totals["answers"], axis1=2, axis2=3)


def beside(first: Mapping[str, Array], second: Mapping[str, Array]) -> Mapping[str, Array]:
    """The totals of some models and of others, judged by the same rows, as those of all of them."""
    totals: tuple[Mapping[str, Array], ...] = (first, second)
    if not all("answers" in one for one in totals):
        totals = tuple({**one, "right": right_answers(one)} for one in totals)
    shared = [name for name in totals[0] if name != "rows" and name in totals[1]]
    return {"rows": first["rows"]} | {name: np.concatenate([one[name] for one in totals], axis=1) for name in shared}


def _first_of_largest(scores: Array) -> Array:
    """As numpy's argmax along the classes, which are few; the scores, (n, P, C), are numbers."""
    best, given = scores[:, :, 0], np.zeros(scores.shape[:2], np.intp)
    for c in range(1, scores.shape[2]):
        given[scores[:, :, c] > best] = c
        best = np.maximum(best, scores[:, :, c])
    return given


def _add_losses(totals: dict[str, Array], fold: int, values: Array) -> None:
    """Add what rows cost each model, (n, P)."""
    possible = np.isfinite(values)
    totals["impossible"][fold] += np.count_nonzero(~possible, axis=0)
    total = Pair(totals["log_loss"][fold], totals["log_loss_low"][fold])
    total += Pair.of(np.where(possible, values, 0.0)).sum(axis=0)
    totals["log_loss"][fold], totals["log_loss_low"][fold] = total.hi, total.lo


def _arrays_of(model: Any) -> dict[str, Array]:
    """The arrays of a model that decide its answers."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    return {
        name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    }
