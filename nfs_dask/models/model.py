"""What survives a fit, whatever the method. Models are values: they hold no data and open no files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.errors import InputError
from nfs_dask.models.contributions import Contributions
from nfs_dask.models.together import OneByOne, Together
from nfs_dask.text.features import TextFeatures

Names = Callable[[Array], Sequence[str] | None]  # of some columns

_FEW = 8  # columns that are faster to compare than their rows
_LEAST_SHARE = 1e-100  # of the documents of the largest class, so that no sum of weights is 0


@dataclass(frozen=True)
class Evidence:
    """How good a support is.

    Naive Bayes maximises a log likelihood, in nats, of the counts under smoothing; centers minimise a cost.
    """

    objective: float  # of this support
    gap: float  # no support of that size has an objective that is better by more than this
    certified: bool  # whether the gap is zero up to rounding
    point: Array | None  # (C,) the dual point: shares of the classes; None for methods without one
    n_evaluations: int  # how often all gains were evaluated
    bound: float | None = None  # no support of that size has a better objective, whatever was rounded; None: by the gap
    second_dual: tuple[Array, Array] | None = None  # features, ascending, and their weights in (0, 1]; if there is one

    @property
    def best(self) -> float:
        """What no objective of a support of that size is better than."""
        return self.objective + self.gap if self.bound is None else self.bound


NOT_JUDGED = Evidence(objective=np.nan, gap=np.inf, certified=False, point=None, n_evaluations=0)


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A classifier over a few features: it gives each document a score for each class."""

    method: str
    classes: Array  # (C,) sorted labels
    class_count: Array  # (C,) float64, documents of each class under their weights
    n_features: int
    support: Array  # (k,) int64, ascending
    evidence: Evidence
    names: tuple[str, ...] | None = None  # (k,) of the support
    text: TextFeatures | None = None  # how raw text is read; None for models of other data
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out where it is used: tables may be large, and models travel to workers."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def for_tasks(self) -> Self:
        """A copy without provenance: equal models have equal ones, whenever they were fitted."""
        return replace(self, provenance={})

    @property
    def measure(self) -> str:
        """What the objective is, for people."""
        return "cost"

    @abstractmethod
    def scores(self, block: Block, trusted: bool = False) -> Array:
        """How well each row suits each class, (n, C): larger is better, -inf rules a class out.

        Only differences within a row mean something. ``trusted`` values were checked when the data were written.
        """

    @classmethod
    def together(cls, models: Sequence[Self]) -> Together:
        """Some models of the same data and classes, as they score rows at once: each as by itself, to the bit."""
        return OneByOne([replace(model) for model in models])  # what they work out for themselves goes with them

    @abstractmethod
    def contributions(self, block: Block, trusted: bool = False) -> Contributions:
        """What each selected feature of each row adds to `decision_function`, and what that is without them.

        What is compared with, the base, is of naive Bayes and of the hybrid the score of a document without any of the
        selected features, of centers that of the mean of the centers of the classes. What a row has besides, where that
        counts, is in its base.
        """

    @property
    def compared(self) -> str:
        """What `decision_function` says of one class, {0}, over another one, {1}, for people."""
        return "log odds of {0} over {1}"

    @property
    def at_base(self) -> str:
        """Where the base of `contributions` is, for people."""
        return "without features"

    @property
    def absence_counts(self) -> bool:
        """Whether selected features contribute where their value is 0."""
        return False

    @property
    @abstractmethod
    def has_probabilities(self) -> bool:
        """Whether the scores say how probable the classes are."""

    @abstractmethod
    def log_odds(self, scores: Array) -> Array:
        """From scores to logarithms of the probabilities, up to a constant of the row; of models that have them."""

    @property
    @abstractmethod
    def is_linear(self) -> bool:
        """Whether the scores are linear functions of the features, those that `coefficients` gives."""

    @abstractmethod
    def coefficients(self) -> tuple[Array, Array]:
        """Weights (1 or C, inputs) and intercepts (1 or C,) of a linear rule, in the signs of scikit-learn.

        For two classes the differences of ``classes[1]`` to ``classes[0]``.
        """

    @abstractmethod
    def margins(self) -> Array:
        """(C, k) how much a large value of each feature speaks for a class, against the documents of other classes."""

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def seen(self) -> Array:
        """Positions of the classes that have documents."""
        return np.flatnonzero(self.class_count > 0)

    @property
    def inputs(self) -> Array:
        """Columns of the data that the scores depend on, ascending."""
        return self.support

    @property
    def needs_whole_rows(self) -> bool:
        """Whether scores depend on more than the selected columns."""
        return self.inputs is not self.support

    @property
    def needs_lengths(self) -> bool:
        """Whether they depend on whole rows in that all other columns count as one."""
        return False

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup.of(self.support, self.n_features)

    def predict(self, block: Block, trusted: bool = False) -> Array:
        """The class of largest score, (n,); the first of equal ones."""
        return self.classes[np.argmax(self.scores(block, trusted), axis=1)]

    def decision_function(self, block: Block, trusted: bool = False) -> Array:
        """Two classes: (n,), above 0 for ``classes[1]``. More: `scores`."""
        scores = self.scores(block, trusted)
        return scores[:, 1] - scores[:, 0] if self.n_classes == 2 else scores

    def predict_log_proba(self, block: Block, trusted: bool = False) -> Array:
        """Log of the posterior of each class, (n, C)."""
        return self.log_posterior(self.scores(block, trusted))

    def predict_proba(self, block: Block, trusted: bool = False) -> Array:
        """The posterior of each class, (n, C)."""
        return np.exp(self.predict_log_proba(block, trusted))

    def log_posterior(self, scores: Array) -> Array:
        """Log of the posterior of each class, (..., C), from the scores."""
        logs, log_sums = self._log_shares(scores)
        return np.asarray(logs - log_sums[..., None])

    def chance_of_best(self, scores: Array) -> Array:
        """The posterior of the most probable class, (...,): the largest number that `log_posterior` has, without it."""
        return np.asarray(np.exp(0.0 - self._log_shares(scores)[1]))

    def _log_shares(self, scores: Array) -> tuple[Array, Array]:
        """Logarithms of the probabilities beside the largest, (..., C), and of what these add up to, (...,)."""
        if not self.has_probabilities:
            raise InputError(
                f"a model of method {self.method!r} measures distances and has no probabilities; "
                "take predict or decision_function"
            )
        logs = self.log_odds(scores)
        logs = logs - row_maxima(logs)[..., None]
        return logs, np.log(row_sums(np.exp(logs)))

    @property
    def feature_names(self) -> list[str]:
        """Names of the support; ``x`` and the column where the data had none."""
        return [self._name(position) for position in range(len(self.support))]

    def top_features(self, n: int = 10, names: Names | None = None) -> dict[Any, list[tuple[str, float]]]:
        """For each class up to n features that speak for it most, with their margins; only those above 0.

        ``names`` says what columns are called, of a model that does not know it.
        """
        tops = {}
        for label, margin in zip(self.classes.tolist(), self.margins(), strict=True):
            order = np.argsort(-margin, kind="stable")[:n]
            best = order[margin[order] > 0]
            named = names(self.support[best]) if names is not None and self.names is None else None
            known = [self._name(i) for i in best] if named is None else named
            tops[label] = list(zip(known, margin[best].tolist(), strict=True))
        return tops

    def _name(self, position: int) -> str:
        return f"x{self.support[position]}" if self.names is None else self.names[position]


def of_others(values: Array, weights: Array) -> tuple[Array, Array]:
    """For each class the sum of what the others have, (C, k), and of their weights, (C, 1), up to a common factor.

    A class weighs as many as its documents are: one of three documents beside two of millions says next to nothing.
    Nothing is taken from a total, which could lose the digits of a small class beside a large one.

    Parameters
    ----------
    values : (C, k) of each class
    weights : (C,) documents of each class, above 0
    """
    if len(weights) == 2:
        return values[::-1], np.ones((2, 1))
    shares = np.maximum(weights / weights.max(), _LEAST_SHARE)[:, None]
    return _sums_of_others(values * shares), _sums_of_others(shares)


def _sums_of_others(values: Array) -> Array:
    """For each row the sum of the rows above it and of those below."""
    above, below = np.zeros(values.shape), np.zeros(values.shape)
    np.cumsum(values[:-1], axis=0, out=above[1:])
    np.cumsum(values[:0:-1], axis=0, out=below[-2::-1])
    return above + below


def row_sums(values: Array) -> Array:
    """The sum of each row of (..., m), (...,). Rows of two take numpy six times as long as two columns do."""
    sums: Array = values[..., 0] + values[..., 1] if values.shape[-1] == 2 else values.sum(axis=-1)
    return sums


def row_maxima(values: Array) -> Array:
    """The largest of each row of (..., m), (...,). Numpy takes as long for a row of two as for one of ten."""
    largest: Array = values.max(axis=-1) if values.shape[-1] > _FEW else reduce(np.maximum, np.moveaxis(values, -1, 0))
    return largest
