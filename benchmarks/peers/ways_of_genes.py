"""Ways to choose k genes of two classes of samples, each with the classifier that it is itself, if it is one.

Centers, and the tests of scanpy, see values as they were measured; all others, scanpy's logistic regression among them,
see genes standardized by the samples to choose by. scanpy ranks by absolute scores of the second class against the
first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler

from benchmarks.papers.choosers import largest, least_of_logistic, searched
from benchmarks.papers.sc_figure_1 import l1_logistic
from benchmarks.peers.ways_of_words import Chosen
from nfs_dask import SparseCentroid

KS = (9, 100, 1000)


@dataclass(frozen=True)
class Samples:
    """Measured expression to choose by and to judge by."""

    X: np.ndarray  # (n, m)
    y: np.ndarray  # 0 and 1
    X_test: np.ndarray
    y_test: np.ndarray

    @cached_property
    def scaler(self) -> StandardScaler:
        return StandardScaler().fit(self.X)

    @cached_property
    def standardized(self) -> np.ndarray:
        return self.scaler.transform(self.X)

    @cached_property
    def standardized_test(self) -> np.ndarray:
        return self.scaler.transform(self.X_test)


Chooser = Callable[[Samples, Sequence[int]], Iterator[Chosen]]  # one answer for each k


def centers(**options: Any) -> Chooser:
    def choose(samples: Samples, ks: Sequence[int]) -> Iterator[Chosen]:
        for k in ks:
            model = SparseCentroid(k, **options).fit(samples.X, samples.y)
            yield Chosen(model.get_support(indices=True), model.predict(samples.X_test))

    return choose


def scanpy(method: str) -> Chooser:
    """Its scores by name, as it tells them in the order of ranks."""

    def choose(samples: Samples, ks: Sequence[int]) -> Iterator[Chosen]:
        import anndata
        import pandas as pd
        import scanpy

        X = samples.standardized if method == "logreg" else samples.X
        labels = pd.Categorical.from_codes(samples.y, ["first", "second"])
        obs = pd.DataFrame({"label": labels}, index=np.arange(len(X)).astype(str))
        names = pd.DataFrame(index=np.arange(X.shape[1]).astype(str))
        table = anndata.AnnData(X, obs=obs, var=names)
        one = {"groups": ["second"]} if method != "logreg" else {}
        scanpy.tl.rank_genes_groups(table, "label", method=method, rankby_abs=True, **one)
        found = table.uns["rank_genes_groups"]["names"]
        order = np.array(found[found.dtype.names[-1]]).astype(np.int64)
        for k in ks:
            yield Chosen(np.sort(order[:k]))

    return choose


def variance_ratio(samples: Samples, ks: Sequence[int]) -> Iterator[Chosen]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of genes that are constant
        scores = np.nan_to_num(f_classif(samples.X, samples.y)[0], nan=0.0)
    for k in ks:
        yield Chosen(np.sort(largest(scores, k)))


def by_l1(samples: Samples, ks: Sequence[int]) -> Iterator[Chosen]:
    """About k genes; never more than there are samples."""
    choose = searched(l1_logistic, least_of_logistic)
    for k in ks:
        (choice,) = choose(samples.standardized, samples.y, [min(k, len(samples.y))], 1.0)
        yield Chosen(choice.support)


def abess(samples: Samples, ks: Sequence[int]) -> Iterator[Chosen]:
    """Of k less than a fourth of the samples, beyond which it is not asked."""
    from abess import LogisticRegression

    for k in ks:
        if 4 * k > len(samples.y):
            return
        model = LogisticRegression(support_size=k).fit(samples.standardized, samples.y)
        yield Chosen(np.flatnonzero(model.coef_), np.asarray(model.predict(samples.standardized_test)))


OURS = "Mahalanobis centers"
WAYS: dict[str, Chooser] = {
    "l2 centers": centers(),
    OURS: centers(metric="mahalanobis"),
    "l1 centers": centers(metric="manhattan"),
    "ANOVA F": variance_ratio,
    "scanpy, t-test": scanpy("t-test"),
    "scanpy, wilcoxon": scanpy("wilcoxon"),
    "scanpy, logreg": scanpy("logreg"),
    "l1 logistic": by_l1,
    "abess": abess,
}
LIBRARIES = ("scanpy", "abess")
OF_OTHERS = tuple(way for way in WAYS if way.startswith(LIBRARIES))  # which the quick form leaves out


def asked(quick: bool) -> list[str]:
    return [way for way in WAYS if not (quick and way in OF_OTHERS)]


def answers(way: str, samples: Samples, ks: Sequence[int]) -> tuple[list[Chosen], str | None]:
    """What a way chooses for each k, as far as it does, and why for no more."""
    try:
        found = list(WAYS[way](samples, ks))
    except ModuleNotFoundError as error:
        return [], f"{error.name} is not installed"
    return found, None if len(found) == len(ks) else "too few samples"
