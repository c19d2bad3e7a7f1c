"""Documents that are added to a fitted model, and taken from it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.folding import Reduction
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier, refuse_too_many
from nfs_dask.estimators.inputs import check_fitted, note_features, numeric, open_labelled
from nfs_dask.estimators.naming import KnownNames
from nfs_dask.sources.labels import encode_as, match_labels
from nfs_dask.sources.source import Source
from nfs_dask.statistics.incremental import lift
from nfs_dask.statistics.statistic import State, Statistic


class AddingClassifier(SparseClassifier):
    """A sparse classifier that keeps the sums it was fitted to, where they fit in memory."""

    _state: State  # of all documents so far

    @abstractmethod
    def _counting(self, dataset: Dataset, n_classes: int, first: bool) -> Statistic:
        """What to find out about documents; the ``first`` ones may decide how."""

    @abstractmethod
    def _settings(self, source: Source, classes: Array) -> Any:
        """The parameters, checked before anything is read."""

    @abstractmethod
    def _settle(
        self,
        classes: Array,
        state: State,
        settings: Any,
        source: Source,
        reduction: Reduction,
        earlier: KnownNames | None = None,
    ) -> None:
        """Solve, and only then remember: an estimator that refused is as it was."""

    @abstractmethod
    def _less(self, state: State, part: State) -> State:
        """The state without some of its documents."""

    def settings(self, dataset: Dataset) -> Any:
        """The parameters as solvers take them, checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        """
        return self._settings(dataset.source, dataset.known_classes())

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add documents, and fit anew to all documents so far: any split of the data gives the same model.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : (C,) labels, optional
            All classes there will be; needed at the first call. A class that has had no document yet is not predicted.
        """
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        first = not hasattr(self, "model_")
        if not first:
            self._check_state()
        declared = self._declared(classes, first)
        note_features(self, X, dataset.source, reset=first)
        settings = self._settings(dataset.source, declared)
        statistic = self._counting(dataset, len(declared), first)
        state, reduction = self._reduce_as(dataset, declared, statistic)
        if not first:
            state = statistic.merge(self._state, state)
        self._settle(declared, state, settings, dataset.source, reduction, None if first else self._names)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take documents away that were fitted before: the inverse of `partial_fit`.

        The model is that of the other documents; to the bit where values and weights are whole numbers. Where what is
        forgotten is so much larger than the rest that sums have lost the digits of the rest, it is refused.

        Parameters
        ----------
        X, y, sample_weight
            The documents, as they were given.
        """
        check_fitted(self)
        self._check_state()
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=False)
        settings = self._settings(dataset.source, self.classes_)
        statistic = self._counting(dataset, len(self.classes_), first=False)
        part, reduction = self._reduce_as(dataset, self.classes_, statistic)
        rest = self._less(self._state, part)
        if not rest.totals["weight"].any():
            raise InputError("no document would be left; make a new estimator instead")
        self._settle(self.classes_, rest, settings, dataset.source, reduction, self._names)
        return self

    def _reduce_as(self, dataset: Dataset, classes: Array, statistic: Statistic) -> tuple[State, Reduction]:
        """The sums of a part of the documents under the classes of the whole."""
        own = dataset.known_classes(1)
        labels, places = match_labels(own, np.arange(len(own)), classes)
        positions = encode_as(labels[places], classes)
        nbytes = statistic.array_nbytes(dataset.n_features, "count", weighted=False)
        refuse_too_many(nbytes, dataset.n_features, len(classes))
        reduction = dataset.reduce(statistic, self.engine)
        return lift(reduction.state, positions, common=("gram", "shift")), reduction

    def _check_state(self) -> None:
        if not hasattr(self, "_state"):
            raise InputError(
                "this model was loaded from a file, or has too many features, and holds no sums of all of them; fit "
                "fewer features to add or take away documents, or to score every feature"
            )
