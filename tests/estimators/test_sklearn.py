"""The estimators are scikit-learn's: its own checks, and its tools around them."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from nfs_dask import SerialEngine, SparseBernoulliNB, SparseMultinomialNB

ESTIMATORS = [
    SparseBernoulliNB("all", binarize=0.5),
    SparseBernoulliNB(0.5, binarize=0.5),
    SparseMultinomialNB("all"),
    SparseMultinomialNB(0.5),
]

EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore:k=1. a single feature can carry no weight")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_FAILURES, xfail_strict=True)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
