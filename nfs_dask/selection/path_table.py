"""Supports of many sizes, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.methods.supports import Supports
from nfs_dask.selection.chosen import Chosen, Tabular
from nfs_dask.solvers.naive_bayes.path_grid import TOLERANCE
from nfs_dask.solvers.solution import RELATIVE
from nfs_dask.units import several

SHOWN = 20  # rows of a printed path


class Named(Protocol):
    """Names of columns, such as a source has."""

    def names(self, columns: Array) -> list[str] | None: ...


class Chooser(Protocol):
    """The data that a path was made of, which rules may read again."""

    def choose(self, path: Path, rule: str, **options: Any) -> Chosen: ...


@dataclass(frozen=True)
class Path(Tabular):
    """Supports of many sizes; made by `path`.

    Gains are what a support adds to the log likelihood without features, in nats, or takes off the cost of centers.
    """

    method: str
    parameters: Mapping[str, Any]  # of the method, as JSON values
    classes: Array  # (C,) sorted labels
    n_rows: int
    n_features: int
    reused: bool  # whether the counts had been kept, so that no document was read
    ks: Array  # (K,) int64, ascending
    solved: Supports
    named: Named
    rules: Chooser

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
        """The most that a support loses against the best one, (K,); never negative."""
        return self.solved.gap

    @property
    def relative_gap(self) -> Array:
        """The gap as a share of the bound, (K,)."""
        return np.divide(self.gap, self.bound, out=np.zeros(len(self.ks)), where=self.bound > 0)

    @property
    def certified(self) -> Array:
        """True where a support is the best there is up to rounding, (K,), as ``certified_`` of an estimator says it.

        An estimator that is fitted to one k tries more, and may prove what is only close here.
        """
        return self.gap <= RELATIVE * np.abs(self.bound) + self.solved.noise

    @property
    def close(self) -> Array:
        """True where a support is the best there is up to a millionth of its bound, (K,); so are all certified ones."""
        return self.gap <= TOLERANCE * np.abs(self.bound) + self.solved.noise

    @property
    def guaranteed(self) -> Array:
        """A gain that the best k features are sure to reach, known before any is found, (K,).

        A multinomial model reaches with k features the bound of C - 1 features fewer. Where that k is not on the path,
        a chord takes its place: bounds are concave in k. Other methods reach their bounds.
        """
        if self.method != "multinomial":
            return self.value
        fewer = np.maximum(self.ks - (len(self.classes) - 1), 0)
        return np.interp(fewer, [0, *self.ks], [0, *self.bound * (1 - TOLERANCE)])

    @property
    def null_objective(self) -> float:
        """The objective without any feature."""
        return self.solved.null

    @property
    def objective(self) -> Array:
        """The ``objective_`` of an estimator for each k, (K,): a log likelihood, or the cost of centers."""
        return self.solved.objective

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

    def choose(
        self,
        rule: str,
        *,
        ks: Iterable[Any] | None = None,
        folds: Any = None,
        alphas: Iterable[float] | None = None,
        by: str | None = None,
        within: float | None = None,
        engine: Engine | None = None,
    ) -> Chosen:
        """The number of features that a rule chooses: an int that an estimator takes as k, and that says why.

        Parameters
        ----------
        rule : "elbow", "error", "cv", "1se" or "near"
            "elbow": where the curve of gains over log k bends most; nothing is read. "error": the smallest predicted
            error, from one pass; not of l1. "cv": the best accuracy on documents that models were not fitted to, from
            two passes; "1se": the smallest k within one standard error of that; "near": the smallest within a share of
            it, for a list that a person reads.
        ks : list of int, float in (0, 1) or "all", optional
            What to look at, but for "elbow"; about twenty of the path if not given.
        folds
            For cross-validation, as of `nfs_dask.cross_validate`; 5 if not given.
        alphas : list of float, optional
            Smoothings that are tried with each k; that of the path if not given.
        by : "accuracy", "balanced" or "log_loss", optional
            What cross-validation goes by; accuracy if not given.
        within : float in [0, 1), optional
            For "near": the share of the best that may be lost; 0.01 if not given.
        engine : SerialEngine or DaskEngine, optional
            Where passes run; that of the path if not given.

        Returns
        -------
        Chosen
            With ``why_``, the ``table`` that the rule went by, an ``interval`` of k it could not tell apart, and the
            ``alpha`` that goes with it.
        """
        options = {"ks": ks, "folds": folds, "alphas": alphas, "by": by, "within": within, "engine": engine}
        return self.rules.choose(self, rule, **options)

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
            "close": self.close,
            "guaranteed": self.guaranteed,
        }
        values = zip(*(column[at].tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]

    def to_json(self) -> dict[str, Any]:
        """All but the supports, as JSON values."""
        return {
            "method": self.method,
            **self.parameters,
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
        """The method, its parameters and the data, in one line."""
        settings = [
            f"{name.replace('_', ' ')} {format(value, 'g') if isinstance(value, float) else value}"
            for name, value in self.parameters.items()
        ]
        return (
            f"{', '.join([self.method, *settings])}: {several(len(self.ks), 'value', 'values')} of k over "
            f"{self.n_features:,} features, {self.n_rows:,} documents in {len(self.classes)} classes"
        )

    def cells(self) -> list[list[str]]:
        """The table that is printed: its head, and rows of texts."""
        positions = self.sample()
        sure = np.where(self.certified, "yes", np.where(self.close, "close", "no"))
        columns = (self.ks, self.value, self.bound, self.gap, self.relative_gap, sure)
        rows = zip(*(column[positions].tolist() for column in columns), strict=True)
        return [
            ["k", "value", "bound", "gap", "relative gap", "certified"],
            *(
                [f"{k:,}", f"{value:,.3f}", f"{bound:,.3f}", f"{gap:.3g}", f"{share:.2g}", certified]
                for k, value, bound, gap, share, certified in rows
            ),
        ]

    def __repr__(self) -> str:
        return f"<Path of {self.headline}>"
