"""The results of cross-validation: measures of each number of features and each smoothing, by fold.

References: docs/mathematics.md 9; SC (Calafiore and Fracastoro 2019) Remark 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.methods.procedure import Pass
from nfs_dask.registry import MEASURES
from nfs_dask.selection.chosen import Chosen, Tabular
from nfs_dask.units import several

Rule = Literal["cv", "1se", "near"]
Measure = Literal["accuracy", "balanced", "log_loss"]

RULES = ("cv", "1se", "near")
WITHIN = 0.01  # of the best, that "near" allows to lose
SHOWN = 20  # rows of a printed table

_CALLED = {"accuracy": "accuracy", "balanced": "balanced accuracy", "log_loss": "log loss"}


@dataclass(frozen=True)
class CrossValidation(Tabular):
    """Measures of models of each k and alpha on documents they were not fitted to; made by `cross_validate`.

    Axes are folds (F), smoothings (A), numbers of features (K) and classes (C). Documents count once, whatever weights
    they had when models were fitted.
    """

    method: str
    parameters: Mapping[str, Any]  # of the method, as JSON values
    classes: Array  # (C,) sorted labels
    n_features: int
    ks: Array  # (K,) int64, ascending
    alphas: tuple[float | None, ...]  # (None,) of a method that does not smooth
    folds: Mapping[str, Any]  # how many, and what decides which fold a row is in
    documents: Array  # (F, C) int64, documents of each class in each fold
    right: Array  # (F, A, K, C) int64, those of them that were given their class
    losses: Array | None  # (F, A, K) sums of minus the log of the probability of the true class
    answers: Array | None  # (F, A, K, C, C) int64, documents of a class that were given a class, where they are few
    passes: tuple[Pass, ...]  # over the data, in turn
    seconds: float

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.documents)

    @property
    def reads(self) -> float:
        """The number of reads of the data: the shares of all passes together."""
        return sum(one.share for one in self.passes)

    @cached_property
    def accuracy(self) -> Array:
        """Share of the documents of each fold that were given their class, (F, A, K)."""
        n = self.documents.sum(axis=1)
        return np.asarray(self.right.sum(axis=-1) / n[:, None, None])

    @cached_property
    def balanced(self) -> Array:
        """Mean over the classes in a fold of the share of their documents that were given it, (F, A, K)."""
        n = self.documents[:, None, None, :]
        recall = np.divide(self.right, n, out=np.zeros(self.right.shape), where=n > 0)
        return np.asarray(recall.sum(axis=-1) / (n > 0).sum(axis=-1))

    @cached_property
    def log_loss(self) -> Array | None:
        """Mean of minus the log of the probability of the true class, (F, A, K); None without probabilities.

        Infinite where a model ruled the true class of a document out.
        """
        return None if self.losses is None else np.asarray(self.losses / self.documents.sum(axis=1)[:, None, None])

    def by_fold(self, by: Measure = "accuracy") -> Array:
        """One of the measures, (F, A, K)."""
        if by not in MEASURES:
            raise InputError(f"by={by!r}; give one of {', '.join(map(repr, MEASURES))}")
        values: Array | None = getattr(self, by)
        if values is None:
            raise InputError(f'method {self.method!r} has no probabilities; give by="accuracy" or "balanced"')
        return values

    def mean(self, by: Measure = "accuracy") -> Array:
        """Mean of a measure over the folds, (A, K)."""
        return np.asarray(self.by_fold(by).mean(axis=0))

    def standard_error(self, by: Measure = "accuracy") -> Array:
        """Standard error of that mean, (A, K): from the standard deviation over the folds."""
        with np.errstate(invalid="ignore"):  # of infinite losses
            return np.asarray(self.by_fold(by).std(axis=0, ddof=1) / np.sqrt(self.n_folds))

    def scores(self, *, k: int, alpha: float | None = None, by: Measure = "accuracy") -> Array:
        """A measure of one k and one alpha on each fold, (F,); alpha may be left out where there is one."""
        return self.by_fold(by)[:, *self._cell(k, alpha)]

    def confusion(self, *, k: int, alpha: float | None = None) -> Array:
        """Documents of each class (rows) that were given each class (columns), over all folds, (C, C)."""
        if self.answers is None:
            raise InputError(
                f"which of {len(self.classes)} classes documents were given was too much to count for so many models; "
                "validate fewer k or alphas"
            )
        return np.asarray(self.answers[:, *self._cell(k, alpha)].sum(axis=0))

    def choose(self, rule: Rule = "cv", by: Measure = "accuracy", within: float | None = None) -> Chosen:
        """Return the k that a rule chooses, which an estimator takes as it is; it knows its alpha, and says why.

        Parameters
        ----------
        rule : "cv", "1se" or "near"
            The best mean over the folds, of equal ones the smallest k, then the first alpha; the smallest k that is
            within one standard error of that, with the best alpha for it; or the smallest within a share of it.
        by : "accuracy", "balanced" or "log_loss"
            The measure.
        within : float in [0, 1), optional
            For "near": the share of the best that may be lost, 0.01 if not given.
        """
        if rule not in RULES:
            raise InputError(f"rule={rule!r}; give one of {', '.join(map(repr, RULES))}")
        share = _share_of_best(rule, within)
        sign = -1.0 if by == "log_loss" else 1.0
        mean = sign * self.mean(by)
        if not np.isfinite(mean).any():
            raise InputError(f"every model rules out the class of some document, so that none has a finite {by}")
        # Only the best alpha of each k can be chosen, so that the table is a curve over k.
        rows = mean.argmax(axis=0)
        curve = mean[rows, np.arange(len(self.ks))]
        best = int(curve.argmax())
        error = float(self.standard_error(by)[rows[best], best])
        room = error if share is None else share * abs(curve[best])
        near = np.flatnonzero(curve >= curve[best] - room)
        chosen = best if rule == "cv" else int(near[0])
        first, last = int(self.ks[near[0]]), int(self.ks[near[-1]])
        k, alpha = int(self.ks[chosen]), self.alphas[rows[chosen]]
        told = (
            f"{_CALLED[by]} of {sign * curve[best]:.4f} over {self.n_folds} folds, with a standard error of {error:.4f}"
        )
        why = f"{k:,} features{'' if alpha is None else f' and alpha {alpha:g}'} have "
        if rule == "cv":
            why += f"the best {told}"
        else:
            nearness = "one standard error" if share is None else f"{100 * share:.3g} %"
            why += (
                f"{_CALLED[by]} {sign * curve[chosen]:.4f}; no fewer come within {nearness} of the best, which "
                f"{int(self.ks[best]):,} features reach: {told}"
            )
        why += f"; {first:,} to {last:,} are within that"
        return Chosen(k, rule=rule, why=why, table=self.records(), interval=(first, last), alpha=alpha)

    def records(self) -> list[dict[str, Any]]:
        """A row for each alpha and k, as JSON values."""
        columns: dict[str, Array] = {}
        for by in MEASURES if self.losses is not None else MEASURES[:2]:
            columns |= {by: self.mean(by), f"{by}_error": self.standard_error(by)}  # type: ignore[arg-type]
        rows = []
        for a, alpha in enumerate(self.alphas):
            for j, k in enumerate(self.ks.tolist()):
                values = {name: _number(column[a, j]) for name, column in columns.items()}
                rows.append({"k": k, "alpha": alpha, **values, "scores": self.accuracy[:, a, j].tolist()})
        return rows

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "method": self.method,
            **self.parameters,
            "classes": self.classes.tolist(),
            "features": self.n_features,
            **self.folds,
            "documents": self.documents.tolist(),
            "reads": self.reads,
            "seconds": self.seconds,
            "passes": [one.to_json() for one in self.passes],
            "table": self.records(),
        }

    @property
    def headline(self) -> str:
        """The grid and the data, in one line."""
        grid = f"{several(len(self.ks), 'value', 'values')} of k"
        grid += f" and {len(self.alphas)} of alpha" if len(self.alphas) > 1 else ""
        return (
            f"{self.method}: {grid}, validated on {self.documents.sum():,} documents in {self.n_folds} folds, "
            f"{several(self.reads, 'read', 'reads')} of the data"
        )

    def cells(self) -> list[list[str]]:
        """The table that is printed: its head, and rows of texts; the best alpha of each k, and about 20 of the k."""
        mean, error, balanced = self.mean(), self.standard_error(), self.mean("balanced")
        rows, picked = mean.argmax(axis=0), np.unique(np.linspace(0, len(self.ks) - 1, SHOWN).round().astype(int))
        loss = self.mean("log_loss") if self.losses is not None else None
        head = ["k", "accuracy", "+-", "balanced"] + ["log loss"] * (loss is not None)
        head[1:1] = ["alpha"] if self.alphas[0] is not None else []
        table = [head]
        for j in picked.tolist():
            a = rows[j]
            cells = [f"{int(self.ks[j]):,}", *(f"{column[a, j]:.4f}" for column in (mean, error, balanced))]
            cells += [f"{loss[a, j]:.4f}"] if loss is not None else []
            cells[1:1] = [f"{self.alphas[a]:g}"] if self.alphas[a] is not None else []
            table.append(cells)
        return table

    def __repr__(self) -> str:
        return f"<CrossValidation of {self.headline}>"

    def _cell(self, k: int, alpha: float | None) -> tuple[int, int]:
        """Return the position of a k and an alpha in the table."""
        place = int(np.searchsorted(self.ks, k))
        if place == len(self.ks) or self.ks[place] != k:
            raise InputError(f"k={k} was not validated; those that were are {self.ks.tolist()}")
        if alpha is None and len(self.alphas) == 1:
            return 0, place
        if alpha not in self.alphas:
            raise InputError(f"alpha={alpha} was not validated; those that were are {list(self.alphas)}")
        return list(self.alphas).index(alpha), place


def _number(value: Any) -> float | None:
    """A number as JSON has it: none for one that is not finite."""
    return float(value) if np.isfinite(value) else None


def _share_of_best(rule: Rule, within: float | None) -> float | None:
    """The share of the best that may be lost; None of rules that go by something else."""
    if rule != "near":
        if within is not None:
            raise InputError(f'within={within!r} is for rule="near", and the rule is {rule!r}; leave it out')
        return None
    share = WITHIN if within is None else within
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise InputError(
            f"within={within!r}; give a share of the best that may be lost, from 0 to below 1, such as 0.01"
        )
    return float(share)
