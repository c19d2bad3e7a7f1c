"""Many k at once: what each number of features gains, and how sure that is. One pass over the data serves them all."""

from __future__ import annotations

import html
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.block import Array
from nfs_dask.engine.base import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.base import SparseNaiveBayes, refuse_empty_classes, too_wide
from nfs_dask.estimators.files import ESTIMATORS
from nfs_dask.estimators.inputs import numeric, open_labelled
from nfs_dask.naive_bayes import null_multinomial
from nfs_dask.selection import number_to_keep
from nfs_dask.solvers import bernoulli, multinomial
from nfs_dask.solvers import path as solvers
from nfs_dask.solvers.path import TOLERANCE
from nfs_dask.solvers.solution import ABSOLUTE
from nfs_dask.sources.base import Source, is_shipped
from nfs_dask.statistics.counts import documents, sums
from nfs_dask.statistics.panels import Panels
from nfs_dask.totals import ArrayTotals, PanelTotals, Pick, Totals

logger = logging.getLogger("nfs_dask")

POINTS = 200  # values of k over wide data, unless some are named
POINTS_ALONE = 50  # the same where each k is solved by itself: multinomial models of more than two classes
MOST_ALL = 3_000  # up to so many features, every k is solved for
MOST_ALL_ALONE = 100
SHOWN = 20  # rows of a printed path


class Named(Protocol):
    """Whoever knows what features are called."""

    def names(self, columns: Array) -> list[str] | None: ...


class Solved(Protocol):
    """What a solver knows of all the k."""

    @property
    def value(self) -> Array:
        """Gain of the support that was found, (K,)."""
        ...

    @property
    def bound(self) -> Array:
        """No support of k features gains more, (K,)."""
        ...

    @property
    def null(self) -> float:
        """Log likelihood at k = 0."""
        ...

    @property
    def noise(self) -> float:
        """Gains closer than this are the same number."""
        ...

    def support(self, k: int) -> Array:
        """Features of one of the k, ascending."""
        ...


@dataclass(frozen=True)
class Path:
    """Supports of many sizes; made by `path`. Gains are log likelihoods less the one without features, in nats."""

    method: str
    alpha: float
    classes: Array  # (C,) sorted labels
    n_rows: int
    n_features: int
    reused: bool  # whether the counts had been kept, so that no document was read
    ks: Array  # (K,) int64, ascending
    solved: Solved
    named: Named

    @property
    def value(self) -> Array:
        """Gain of the support that was found for each k, (K,)."""
        return self.solved.value

    @property
    def bound(self) -> Array:
        """No support of k features gains more, (K,)."""
        return self.solved.bound

    @property
    def gap(self) -> Array:
        """What a support loses at most, (K,); never negative."""
        return self.bound - self.value

    @property
    def relative_gap(self) -> Array:
        """The gap as a share of the bound, (K,)."""
        return np.divide(self.gap, self.bound, out=np.zeros(len(self.ks)), where=self.bound > 0)

    @property
    def certified(self) -> Array:
        """Whether a support is the best there is, up to a millionth of its bound, (K,).

        An estimator that is fitted to one k goes down to rounding, and tries more.
        """
        return self.gap <= TOLERANCE * self.bound + self.solved.noise

    @property
    def guaranteed(self) -> Array:
        """What the best k features are sure to gain, known before any is found, (K,).

        A multinomial model reaches with k features the bound of C - 1 features fewer. Where that k is not on the path,
        a chord takes its place: bounds are concave in k.
        """
        if self.method == "bernoulli":
            return self.value
        fewer = np.maximum(self.ks - (len(self.classes) - 1), 0)
        return np.interp(fewer, [0, *self.ks], [0, *self.bound * (1 - TOLERANCE)])

    @property
    def null_objective(self) -> float:
        """Log likelihood without any feature; with a gain added, the ``objective_`` of an estimator."""
        return self.solved.null

    def support(self, k: int) -> Array:
        """The features that were found for one of the k, ascending.

        Those absent from all documents are never among them, unless k is all features.
        """
        place = int(np.searchsorted(self.ks, k))
        if place == len(self.ks) or self.ks[place] != k:
            near = self.ks[max(0, place - 1) : place + 1].tolist()
            raise InputError(
                f"k={k} is not on this path; near it are {' and '.join(map(str, near))}. "
                f"Take one of them, or make the path with ks=[..., {k}]"
            )
        return self.solved.support(int(k))

    def names(self, k: int) -> list[str]:
        """Names of the features that were found for one of the k, in the order of the support."""
        support = self.support(k)
        return self.named.names(support) or [f"x{i}" for i in support]

    def sample(self, n: int = SHOWN) -> Array:
        """At most n positions on the path, with the first and the last, in equal ratios of k."""
        if len(self.ks) <= n:
            return np.arange(len(self.ks))
        wanted = np.geomspace(self.ks[0], self.ks[-1], n)
        after = np.clip(np.searchsorted(self.ks, wanted), 1, len(self.ks) - 1)
        nearer = wanted - self.ks[after - 1] < self.ks[after] - wanted
        return np.unique(after - nearer)

    def records(self, positions: Array | None = None) -> list[dict[str, Any]]:
        """Rows of the path, or some of them, as JSON values."""
        at = slice(None) if positions is None else positions
        columns = {
            "k": self.ks,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
            "certified": self.certified,
            "guaranteed": self.guaranteed,
        }
        values = zip(*(column[at].tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]

    def to_json(self) -> dict[str, Any]:
        """All but the supports, as JSON values."""
        return {
            "method": self.method,
            "alpha": self.alpha,
            "classes": self.classes.tolist(),
            "rows": self.n_rows,
            "features": self.n_features,
            "counts_reused": self.reused,
            "null_objective": self.null_objective,
            "tolerance": TOLERANCE,
            "path": self.records(),
        }

    @property
    def headline(self) -> str:
        """What this is a path of, in one line."""
        return (
            f"{self.method}, alpha {self.alpha:g}: {len(self.ks):,} values of k over {self.n_features:,} features, "
            f"{self.n_rows:,} documents in {len(self.classes)} classes"
        )

    def cells(self) -> list[list[str]]:
        """The table that is printed: its head, and rows of texts."""
        positions = self.sample()
        columns = (self.ks, self.value, self.bound, self.gap, self.relative_gap, self.certified)
        rows = zip(*(column[positions].tolist() for column in columns), strict=True)
        return [
            ["k", "value", "bound", "gap", "relative gap", "certified"],
            *(
                [f"{k:,}", f"{value:,.3f}", f"{bound:,.3f}", f"{gap:.3g}", f"{share:.2g}", "yes" if sure else "no"]
                for k, value, bound, gap, share, sure in rows
            ),
        ]

    def __repr__(self) -> str:
        return f"<Path of {self.headline}>"

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([self.headline, *lines])

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for tag, row in self._tagged())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        caption = html.escape(self.headline)
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _tagged(self) -> list[tuple[str, list[str]]]:
        head, *rows = self.cells()
        return [("th", head), *(("td", row) for row in rows)]


def path(
    X: Any,
    method: str,
    ks: Iterable[Any] | None = None,
    *,
    y: Any = None,
    sample_weight: Any = None,
    alpha: float = 1.0,
    binarize: float | None = None,
    engine: Engine | None = None,
) -> Path:
    """The best features for many k, with what each number of them gains and how sure that is.

    The documents are counted in one pass, or in none where the counts were kept. An estimator takes a k that suits.

    Parameters
    ----------
    X : (n, m) matrix, dask array or DataFrame, or Dataset
    method : "bernoulli" or "multinomial"
    ks : list of int, float in (0, 1) or "all", optional
        None: every k of up to 3,000 features, else up to 200 values from 1 to all, in equal ratios. A multinomial model
        of more than two classes takes longer: every k of up to 100 features, else up to 50 values.
    y : (n,) labels, optional
        A Dataset brings its own.
    sample_weight : (n,) weights of zero or more, optional
    alpha : float
        Smoothing, as for the estimators.
    binarize : float, optional
        Bernoulli: values above it count as present.
    engine : SerialEngine or DaskEngine, optional
        Where the pass runs.

    Returns
    -------
    Path

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]
    >>> path = nfs.path(X, "multinomial", y=["tea", "tea", "coffee", "coffee"], alpha=0.5)
    >>> path.ks.tolist(), path.value.round(3).tolist(), path.support(2).tolist()
    ([1, 2, 3], [0.0, 1.621, 1.803], [0, 1])
    """
    X = numeric(X)
    estimator = _estimator(method, alpha, binarize)
    dataset = open_labelled(estimator, X, y, sample_weight)
    statistic = estimator.statistic(dataset)
    wanted = _wanted(ks, method, statistic.n_classes, dataset.n_features)
    reduction = dataset.reduce(statistic, engine)
    assert dataset.classes is not None
    refuse_empty_classes(dataset.classes, reduction.panels)
    logger.info("solving for %d values of k", len(wanted))
    class_totals = reduction.panels.totals
    totals = _totals(reduction.panels, documents if method == "bernoulli" else sums, statistic.n_classes)
    solved: Solved
    if method == "bernoulli":
        solved = _Bernoulli.solve(totals, class_totals["weight"], alpha, wanted)
    else:
        solved = _Multinomial.solve(totals, alpha, wanted)
    return Path(
        method=method,
        alpha=float(alpha),
        classes=dataset.classes,
        n_rows=int(class_totals["rows"].sum()),
        n_features=dataset.n_features,
        reused=reduction.reused,
        ks=wanted,
        solved=solved,
        named=_named(dataset.source),
    )


def _estimator(method: str, alpha: float, binarize: float | None) -> SparseNaiveBayes:
    """The estimator that knows what to count, and checks the parameters."""
    if method not in ESTIMATORS:
        raise InputError(f"method={method!r}; give one of {', '.join(map(repr, ESTIMATORS))}")
    if binarize is None:
        return ESTIMATORS[method](k="all", alpha=alpha)
    if method != "bernoulli":
        raise InputError(f'binarize={binarize} is for method="bernoulli"; the {method} model counts values as they are')
    return ESTIMATORS[method](k="all", alpha=alpha, binarize=binarize)


def _totals(panels: Panels, pick: Pick, n_classes: int) -> Totals:
    """The counts of all features, in memory if they fit."""
    return PanelTotals(panels, pick) if too_wide(panels, n_classes) else ArrayTotals(pick(panels.state().arrays))


def _wanted(ks: Iterable[Any] | None, method: str, n_classes: int, n_features: int) -> Array:
    """The k to solve for, ascending, each once."""
    if ks is not None:
        if isinstance(ks, str) or not isinstance(ks, Iterable):
            raise InputError(f'ks={ks!r} is not a list; write several k, such as [10, 0.01, "all"]')
        found = np.unique([number_to_keep(k, n_features) for k in ks]).astype(np.int64)
        if len(found) == 0:
            raise InputError("ks is empty; name at least one k, or leave it out for a path over all features")
        return found
    alone = method == "multinomial" and n_classes > 2
    if n_features <= (MOST_ALL_ALONE if alone else MOST_ALL):
        return np.arange(1, n_features + 1)
    return np.unique(np.rint(np.geomspace(1, n_features, POINTS_ALONE if alone else POINTS)).astype(np.int64))


@dataclass(frozen=True)
class _Names:
    """Names of data that were in memory, which are not held themselves."""

    all: list[str] | None

    def names(self, columns: Array) -> list[str] | None:
        return None if self.all is None else [self.all[i] for i in columns]


def _named(source: Source) -> Named:
    """What lies on disk is asked for names when the time comes."""
    return _Names(source.names(np.arange(source.n_features))) if is_shipped(source) else source


@dataclass(frozen=True)
class _Bernoulli:
    """Exact for every k: the features of largest gain."""

    scored: bernoulli.Scored
    value: Array
    null: float
    noise: float = 0.0

    @classmethod
    def solve(cls, totals: Totals, class_count: Array, alpha: float, ks: Array) -> _Bernoulli:
        scored = bernoulli.score_cells(*totals.grouped(), class_count, alpha)
        return cls(scored, bernoulli.path(scored, ks), bernoulli.null_objective(scored))

    @property
    def bound(self) -> Array:
        return self.value

    def support(self, k: int) -> Array:
        return bernoulli.solve(self.scored, k).support


@dataclass(frozen=True)
class _Multinomial:
    """A value and a bound for every k."""

    solution: solvers.Path
    null: float
    noise: float

    @classmethod
    def solve(cls, totals: Totals, alpha: float, ks: Array) -> _Multinomial:
        counted = multinomial.Counted(*totals.grouped(), float(alpha))
        null, total = null_multinomial(counted)
        return cls(solvers.solve_path(counted, ks), null, ABSOLUTE * total)

    @property
    def value(self) -> Array:
        return self.solution.value

    @property
    def bound(self) -> Array:
        return self.solution.bound

    def support(self, k: int) -> Array:
        return self.solution.support(k)
