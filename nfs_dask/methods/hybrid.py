"""The hybrid naive Bayes: word tables from counts, and a few parameters fitted to leave-one-out features.

Documents have R regions over one vocabulary of V words, side by side in R * V columns. Three steps:

counts     of each column in each class, those a multinomial model needs; kept beside the data, and shared with it
features   each document becomes a few numbers, one for each region, by the table as it would be without the document
fit        of a logistic model of these numbers

Features of many documents do not fit into memory, nor does the table of a wide vocabulary: see
`nfs_dask.methods.word_tables` for the table, and `nfs_dask.methods.slopes` for what becomes of the features.

References: HYB (Raina et al. 2003) (3), (7) to (11).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError
from nfs_dask.methods.procedure import Measure, Pass, Passes, Procedure, Supplier, run
from nfs_dask.methods.slopes import Slopes
from nfs_dask.methods.word_tables import check_held, make_table
from nfs_dask.models.model import Evidence
from nfs_dask.solvers.logistic.newton import LogisticFit, nothing_to_fit
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_classes
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.leave_one_out import RegionTable

Prior = Literal["fitted", "fixed"]
Tables = Literal["shared", "separate"]

MANY = 1 << 62  # documents, where nobody knows how many


@dataclass(frozen=True)
class HybridSettings:
    """What a hybrid naive Bayes is to be. Checked when it is made."""

    n_regions: int  # the columns of the data are so many regions of equal width
    normalize: bool = True  # whether features are divided by the number of words of their region
    alpha: float = 1.0  # smoothing of the table, above 0
    ridge: float = 1e-3  # penalty ridge / 2 * sum of squared slopes, against the sum over documents
    prior: Prior = "fitted"  # intercepts are fitted, or fixed at the log priors
    k: int | None = None  # words that a sparse multinomial model chooses, the same in all regions; None: all
    tables: Tables = "shared"  # all regions share one table, or each has its own

    def __post_init__(self) -> None:
        if self.n_regions < 1:
            raise InputError(f"{self.n_regions} regions; there is at least one")
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise InputError(
                f"alpha={self.alpha} is not possible here: a word that only one document has would be impossible "
                "without that document; give a number above 0, such as 1.0"
            )
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError(f"ridge={self.ridge}; give a number of 0 or more, such as 1e-3")
        if self.prior not in ("fitted", "fixed"):
            raise InputError(f'prior={self.prior!r}; give "fitted" or "fixed"')
        if self.tables not in ("shared", "separate"):
            raise InputError(f'tables={self.tables!r}; give "shared" or "separate"')
        if self.k is not None and self.k < 1:
            raise InputError(f"k={self.k}; give 1 or more words, or None for all")


@dataclass(frozen=True)
class HybridFit:
    """The parameters of a hybrid naive Bayes, and how they came about.

    A document's features are those of `RegionSums`, by ``table`` and ``counts`` and without leaving it out, and its
    scores `class_scores(features, fit.theta)`, whatever the prior: a fixed one is in the intercepts of theta.
    """

    settings: HybridSettings
    classes: Array  # (C,) sorted labels
    class_weight: Array  # (C,) float64, documents of each class under their weights
    rows: int  # documents
    n_words: int  # V, of the vocabulary
    words: Array  # (n,) int64 ascending, those the features are made of: all, or the support of k
    counts: Array  # (C, n), of separate tables (C, R, n): of these words; int64 for whole numbers, else float64
    totals: Array  # (C,), of separate tables (C, R): of all words
    theta: Array  # (C - 1 + R,) intercepts of the classes but the first, then the slopes of the regions
    logistic: LogisticFit  # of theta; where the prior is fixed, its own intercepts are 0
    evidence: Evidence | None  # of the choice of k words; None: all were taken
    passes: tuple[Pass, ...]  # over the data, in turn
    seconds: float

    @cached_property
    def table(self) -> RegionTable:
        """All there is to know of the table besides the counts."""
        support = None if len(self.words) == self.n_words else self.words
        return RegionTable(self.settings.n_regions, self.n_words, self.totals, self.settings.alpha, support)

    @property
    def log_probabilities(self) -> Array:
        """Log P(w|c) of the words, shaped as the counts: log(count + alpha) - log(total + alpha V)."""
        alpha = self.settings.alpha
        mass = np.log(self.totals + alpha * self.n_words)
        return np.asarray(np.log(self.counts + alpha) - mass[..., None])

    @property
    def intercepts(self) -> Array:
        """(C,) of all classes, the first of them 0."""
        return np.concatenate(([0.0], self.theta[: len(self.theta) - self.settings.n_regions]))

    @property
    def slopes(self) -> Array:
        """(R,)."""
        return self.theta[len(self.theta) - self.settings.n_regions :]

    @property
    def reads(self) -> float:
        """How often the data were read: the shares of all passes together."""
        return sum(one.share for one in self.passes)

    def to_json(self) -> dict[str, Any]:
        """How the fit came about, as JSON values: the passes in turn, their seconds by name, and how well it ended."""
        fit = self.logistic
        return {
            "passes": [one.to_json() for one in self.passes],
            "reads": self.reads,
            "reused": self.reads == 0,
            "seconds": {one.name: one.seconds for one in self.passes},
            "fit": {
                "log_likelihood": fit.log_likelihood,
                "objective": fit.objective,
                "gradient": fit.gradient,
                "rank": fit.rank,
                "evaluations": fit.n_evaluations,
            },
        }


def fit_hybrid(dataset: Dataset, settings: HybridSettings, engine: Engine | None = None) -> HybridFit:
    """Fit a hybrid naive Bayes, out of core.

    Parameters
    ----------
    dataset
        With labels, and values of zero or more. Its columns are those of all regions, side by side.
    settings
        What to fit.
    engine
        Where passes run; with a run folder, what they finished outlives this process.

    Returns
    -------
    HybridFit
        The same up to rounding for every engine and partition, and its counts to the last bit where they are whole
        numbers. The counts of columns are kept beside the data, if the dataset reuses.
    """
    return run(hybrid_procedure(dataset, settings), dataset, engine)


def hybrid_procedure(dataset: Dataset, settings: HybridSettings) -> Procedure[HybridFit]:
    """The passes that `fit_hybrid` takes."""
    started = time.perf_counter()
    classes, n_words = _checked(dataset, settings)
    passes, source = Passes(dataset), dataset.source
    panels = (yield from passes.sum("counts", ClassCounts(len(classes)))).panels
    class_weight, rows = panels.totals["weight"], int(panels.totals["rows"].sum())
    seen = np.flatnonzero(class_weight > 0)
    if not len(seen):
        raise InputError("all documents have weight zero; give at least one of them more")
    if len(seen) < len(classes):  # others have no say in the fit
        source = some_classes(source, seen)
        counting = passes.sum("counts of the classes with documents", ClassCounts(len(seen)), source)
        panels = (yield from counting).panels
    separate = settings.tables == "separate"
    words = make_table(classes[seen], panels, settings.n_regions, alpha=settings.alpha, k=settings.k, separate=separate)
    del panels
    if len(seen) > 1:
        resources = yield Measure(ClassCounts(len(seen)), source)
        slopes = _slopes(source, resources, settings, words.table, class_weight[seen])
        fit = yield from slopes.fit(words.counts, rows, passes)
    else:
        fit = nothing_to_fit(settings.n_regions, settings.ridge)
    return HybridFit(
        settings=settings,
        classes=classes,
        class_weight=class_weight,
        rows=rows,
        n_words=n_words,
        words=words.words,
        counts=_spread(words.counts, seen, len(classes)),
        totals=_spread(words.table.totals, seen, len(classes)),
        theta=_theta(fit, settings, class_weight, seen),
        logistic=fit,
        evidence=_of_all(words.evidence, seen, len(classes)),
        passes=tuple(passes.done),
        seconds=time.perf_counter() - started,
    )


def _theta(fit: LogisticFit, settings: HybridSettings, class_weight: Array, seen: Array) -> Array:
    """The parameters of all classes, (C - 1 + R,); 0 for those without documents."""
    intercepts = np.zeros(len(class_weight))
    intercepts[seen] = fit.intercepts
    if settings.prior == "fixed":
        intercepts[seen] = np.log(class_weight[seen]) - np.log(class_weight[seen[0]])
    return np.concatenate([intercepts[1:], fit.slopes])


def _of_all(evidence: Evidence | None, seen: Array, n_classes: int) -> Evidence | None:
    """Evidence with a dual point of all classes."""
    if evidence is None or evidence.point is None:
        return evidence
    return replace(evidence, point=_spread(evidence.point, seen, n_classes))


def _spread(values: Array, seen: Array, n_classes: int) -> Array:
    """Rows for all classes; those that were not seen have zeros."""
    if len(seen) == n_classes:
        return values
    out = np.zeros((n_classes, *values.shape[1:]), values.dtype)
    out[seen] = values
    return out


def hybrid_plans(dataset: Dataset, settings: HybridSettings, engine: Engine | None = None) -> list[Plan]:
    """The passes that can be foreseen: that of the counts, and the first that makes features. Nothing is read.

    Where features are too many to be held, each step of the fit is a pass over them; how many it takes is not known.
    """
    classes, n_words = _checked(dataset, settings)
    shape = (len(classes), settings.n_regions) if settings.tables == "separate" else (len(classes),)
    words = None if settings.k is None else np.arange(settings.k)
    table = RegionTable(settings.n_regions, n_words, np.zeros(shape), settings.alpha, words)
    with choose_engine(engine, dataset.source).session() as session:
        supplier = Supplier(dataset, session)
        counts = supplier.plan(ClassCounts(len(classes)))
        slopes = _slopes(dataset.source, counts.resources, settings, table, np.ones(len(classes)))
        return [counts, supplier.plan(*slopes.first(dataset.n_rows if dataset.n_rows >= 0 else MANY))]


def _slopes(
    source: Source, resources: Resources, settings: HybridSettings, table: RegionTable, class_weight: Array
) -> Slopes:
    return Slopes(
        source,
        resources,
        table,
        settings.normalize,
        settings.ridge,
        class_weight,
        settings.prior == "fixed",
    )


def _checked(dataset: Dataset, settings: HybridSettings) -> tuple[Array, int]:
    """The classes, and the number of words of the vocabulary; refuses what cannot be fitted before it is read."""
    classes, n_regions = dataset.known_classes(), settings.n_regions
    if dataset.n_features % n_regions:
        raise InputError(
            f"{dataset.n_features} columns are not {n_regions} regions over one vocabulary; give all regions the same "
            "columns, side by side, or another number of regions"
        )
    if dataset.kind == "signed":
        raise InputError("the data have negative values, and a hybrid naive Bayes counts; give values of zero or more")
    n_words = dataset.n_features // n_regions
    if settings.k is not None and settings.k > n_words:
        raise InputError(f"k={settings.k} of {n_words} words; give a number up to {n_words}, or None for all")
    if settings.k is None:
        tables = n_regions if settings.tables == "separate" else 1
        check_held(len(classes) * tables * n_words * 8, n_words)
    return classes, n_words
