"""The estimators as classes of scikit-learn's, which is what users are given.

Importing scikit-learn takes longer than most fits. The classes below these do without it, and commands, paths and
cross-validation use them.
"""

from __future__ import annotations

# ruff: noqa: D101 - classes here have the docstrings of those they are made of
from inspect import unwrap
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from nfs_dask.estimators.bernoulli import BernoulliClassifier
from nfs_dask.estimators.centers import CentersClassifier
from nfs_dask.estimators.hybrid import HybridClassifier
from nfs_dask.estimators.multinomial import MultinomialClassifier
from nfs_dask.estimators.predicted_error import PredictedErrorClassifier


class ScikitLearnClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):
    """What scikit-learn's tools expect of a classifier that also selects features."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Python says it in the TypeError of a wrong argument.
        unwrap(cls.__init__).__qualname__ = f"{cls.__name__}.__init__"


class SparseMultinomialNB(MultinomialClassifier, ScikitLearnClassifier):
    __doc__ = MultinomialClassifier.__doc__


class SparseBernoulliNB(BernoulliClassifier, ScikitLearnClassifier):
    __doc__ = BernoulliClassifier.__doc__


class SparseCentroid(CentersClassifier, ScikitLearnClassifier):
    __doc__ = CentersClassifier.__doc__


class HybridNB(HybridClassifier, ScikitLearnClassifier):
    __doc__ = HybridClassifier.__doc__


class ErrorRateSelector(PredictedErrorClassifier, ScikitLearnClassifier):
    __doc__ = PredictedErrorClassifier.__doc__
