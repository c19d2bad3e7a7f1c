"""What models say of documents they have not seen: one pass judges many models by the rows of their own folds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind, full_rows, some_rows
from nfs_dask.arrays.doubles import Pair
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.errors import InputError
from nfs_dask.statistics.statistic import State, Statistic, added

SCORING = 5  # a model that scores takes so many times the bytes of its arrays: tables by feature, and their zeros apart
ENOUGH = 0.75  # columns are left out when no more than this share of them is still looked at
MOST_CONFUSIONS = 1 << 20  # counts of a label and a class that are told apart; of more, only right answers are


class Judged(Protocol):
    """A model, as far as it is judged here. Frozen dataclasses whose arrays decide what they say."""

    @property
    def n_features(self) -> int: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def has_probabilities(self) -> bool: ...

    @property
    def inputs(self) -> Array:
        """Columns of the data that the scores depend on, ascending."""
        ...

    def scores(self, block: Block, trusted: bool = False) -> Array: ...

    def log_posterior(self, scores: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class HeldOut(Statistic):
    """How often the models of each fold are right about the rows of that fold.

    Rows come under codes ``f * C + c``: row of class c in fold f, for the models ``models[f]``, which were fitted to
    other folds; there are as many of them for each fold. Rows count once, whatever their weights. Totals:

    - "rows" (F, C): documents of each class;
    - "answers" (F, P, C, C): documents of a label that a model gives a class, or, if there were more than 2^20 such
      numbers, "right" (F, P, C): documents that it gives their own;
    - of models with probabilities "log_loss" and "log_loss_low" (F, P), sums as pairs of doubles of minus the logarithm
      of the probability of the true class, and "impossible" (F, P), documents where that probability is 0.
    """

    n_classes: int  # F * C
    models: tuple[tuple[Judged, ...], ...]

    name: ClassVar[str] = "held_out"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        n_models = {len(models) for models in self.models}
        n_labels = {model.n_classes for models in self.models for model in models}
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
        """Whether it is counted which class a document was given, and not only whether that was right."""
        return len(self.models) * len(self.models[0]) * self.n_labels**2 <= MOST_CONFUSIONS

    @property
    def has_losses(self) -> bool:
        """Whether models have probabilities."""
        return self.models[0][0].has_probabilities

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes, "models": self._digest}

    @cached_property
    def _digest(self) -> str:
        """What stands for the models."""
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
            labels = (rows.codes - fold * self.n_labels).astype(np.intp)
            state.totals["rows"][fold] += np.bincount(labels, minlength=self.n_labels)
            for step in self._steps[fold]:
                rows = step.narrowed(rows)
                for number, model in step.models:
                    self._judge(state.totals, (fold, number), model, rows, labels)

    def _judge(
        self, totals: dict[str, Array], place: tuple[int, int], model: Judged, rows: Block, labels: Array
    ) -> None:
        scores = model.scores(rows, trusted=True)
        given = np.argmax(scores, axis=1)
        if self.counts_answers:
            np.add.at(totals["answers"][place], (labels, given), 1)
        else:
            totals["right"][place] += np.bincount(labels[given == labels], minlength=self.n_labels)
        if self.has_losses:
            _add_losses(totals, place, -model.log_posterior(scores)[np.arange(len(labels)), labels])

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
        return SCORING * sum(
            array.nbytes for models in self.models for model in models for array in _arrays_of(model).values()
        )

    @cached_property
    def _steps(self) -> tuple[tuple[_Step, ...], ...]:
        return tuple(_steps(models) for models in self.models)

    def __getstate__(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes, "models": self.models}


@dataclass(frozen=True)
class _Step:
    """Models that look at the same columns, a choice of those of the step before."""

    columns: Lookup
    models: tuple[tuple[int, Any], ...]  # with the number of each

    def narrowed(self, block: Block) -> Block:
        """The block with these columns alone."""
        columns = self.columns.columns
        if len(columns) == block.n_features:
            return block
        if block.full:
            matrix = block.data.reshape(block.n_rows, block.n_features)
            indptr, indices, data, full = full_rows(np.take(matrix, columns, axis=1))
        else:
            indptr, indices, data = self.columns.take(block)
            full = False
        return replace(block, indptr=indptr, indices=indices, data=data, n_features=len(columns), full=full)


def _steps(models: Sequence[Any]) -> tuple[_Step, ...]:
    """The models of a fold, those of many features first, so that fewer and fewer columns need be looked at.

    They are copies: what they work out for themselves stays here, and does not travel with the statistic.
    """
    n_features = models[0].n_features
    if any(model.inputs is not model.support for model in models):
        everything = Lookup.of(np.arange(n_features), n_features)
        return (_Step(everything, tuple(enumerate(map(replace, models)))),)
    order = sorted(range(len(models)), key=lambda number: -len(models[number].support))
    columns = _union([model.support for model in models])
    places = [np.searchsorted(columns, models[number].support) for number in order]
    last = np.zeros(len(columns), np.int64)  # in that order, the last model that looks at a column
    for position, place in enumerate(places):
        last[place] = position
    steps = [_Step(Lookup.of(columns, n_features), ())]
    seen = np.arange(len(columns))  # by the latest step
    for position, (number, place) in enumerate(zip(order, places, strict=True)):
        rest = np.flatnonzero(last >= position)
        if len(rest) <= ENOUGH * len(seen):
            steps.append(_Step(Lookup.of(np.searchsorted(seen, rest), len(seen)), ()))
            seen = rest
        support = place if len(steps) == 1 else np.searchsorted(seen, place)
        narrow = replace(models[number], support=support, n_features=len(seen))
        steps[-1] = replace(steps[-1], models=(*steps[-1].models, (number, narrow)))
    return tuple(steps)


def _union(supports: Sequence[Array]) -> Array:
    """All columns of some supports, ascending; these ascend themselves, which a stable sort makes use of."""
    columns = np.sort(np.concatenate(supports), kind="stable")
    return columns[np.concatenate(([True], columns[1:] > columns[:-1]))]


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


def _add_losses(totals: dict[str, Array], place: tuple[int, int], values: Array) -> None:
    possible = np.isfinite(values)
    totals["impossible"][place] += np.count_nonzero(~possible)
    total = Pair(totals["log_loss"][place], totals["log_loss_low"][place]) + Pair.of(values[possible]).sum()
    totals["log_loss"][place], totals["log_loss_low"][place] = total.hi, total.lo


def _arrays_of(model: Any) -> dict[str, Array]:
    """The arrays of a model that decide its answers."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    return {
        name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    }
