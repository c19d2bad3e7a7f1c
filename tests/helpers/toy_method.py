"""A method of five parts, as CONTRIBUTING.md says that one is added: the k features that occur most.

Its entry is made by tests, as this module is imported whenever doctests are looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.estimators.ranked_naive_bayes import RankedNaiveBayes
from nfs_dask.estimators.scikit_learn import ScikitLearnClassifier
from nfs_dask.methods.naive_bayes import Counts, Settings, log_prior
from nfs_dask.methods.predicted_error import predict_error
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.registry import ALPHA, Method, Option
from nfs_dask.statistics.counts import ClassCounts, sums

Array = np.ndarray[Any, Any]


def most_frequent(totals: Array, k: int, rarest: bool = False) -> Array:
    """The solver: features of the largest totals, or the smallest; ties to the lower index, ascending."""
    sums = totals.sum(axis=0)
    return np.sort(np.argsort(sums if rarest else -sums, kind="stable")[:k])


def fit_frequent(counts: Counts, settings: Settings, rarest: bool) -> NaiveBayesModel:
    """The method: from counts to a model."""
    totals = counts.totals.array
    support = most_frequent(totals, settings.k, rarest)
    smoothed = totals[:, support] + settings.alpha
    value = float(totals[:, support].sum())
    return NaiveBayesModel(
        method="frequent",
        classes=counts.classes,
        class_count=counts.documents,
        class_log_prior=log_prior(counts, settings),
        n_features=totals.shape[1],
        alpha=settings.alpha,
        support=support,
        evidence=Evidence(value, 0.0, True, None, 1),
        present=np.log(smoothed / smoothed.sum(axis=1, keepdims=True)),
    )


@dataclass(frozen=True)
class FrequentSupports:
    """For every k."""

    totals: Array
    ks: Array
    null = 0.0
    noise = 0.0

    @property
    def value(self) -> Array:
        return np.cumsum(np.sort(self.totals.sum(axis=0))[::-1])[self.ks - 1].astype(np.float64)

    bound = objective = value

    @property
    def gap(self) -> Array:
        return np.zeros(len(self.ks))

    def support(self, k: int) -> Array:
        return most_frequent(self.totals, k)


class FrequentNB(RankedNaiveBayes, ScikitLearnClassifier):
    """Naive Bayes over the features that occur most."""

    always = None

    def __init__(
        self,
        k: Any = 10,
        *,
        alpha: Any = 1.0,
        rarest: Any = False,
        fit_prior: Any = True,
        class_prior: Any = None,
        engine: Any = None,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.rarest = rarest
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.engine = engine

    def _statistic(self, n_classes: int, source: Any) -> ClassCounts:
        return ClassCounts(n_classes)

    def _counted(self, arrays: dict[str, Array]) -> Array:
        return sums(arrays)

    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        return fit_frequent(counts, settings, self.rarest)

    def _scores(self, counts: Counts) -> Array:
        return counts.totals.array.sum(axis=0)

    def _supports(self, totals: Any, class_count: Array, ks: Array) -> FrequentSupports:
        return FrequentSupports(totals.array, ks)

    def _predicted_error(self, model: NaiveBayesModel, panels: Any) -> float:
        return float(predict_error(model, n_tokens=10).error)


RAREST = Option("rarest", "Frequent: take the rarest features.", True, flag="--rarest")
FREQUENT = Method(
    "frequent",
    "tests.helpers.toy_method:FrequentNB",
    "tests.helpers.toy_method:FrequentNB",
    "nfs_dask.models.families:NaiveBayesFamily",
    "counts",
    "no other k features occur more often",
    (ALPHA, RAREST),
)
