"""The certificate in words promises what is proved, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.models.certificate_text import certificate_in_words, facts_of_choice, verdict_of


def fitted(estimator: Any) -> Any:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    return estimator.fit(rng.poisson(rng.gamma(0.5, size=(2, 20))[y]), y).model_


def test_a_certified_choice_is_proved_and_another_one_is_not() -> None:
    model = fitted(nfs.SparseBernoulliNB(k=5, binarize=0.0))
    said = " ".join(certificate_in_words(model))
    assert "It is certified" in said and "5 features of 20" in said and verdict_of(model) == "certified: proved best"
    model = replace(model, evidence=replace(model.evidence, gap=12.5, certified=False))
    said = " ".join(certificate_in_words(model))
    assert "It is certified" not in said and "No other choice of 5 features is better by more than 12.500" in said
    assert verdict_of(model) == "at most 12.500 from the best log likelihood there can be"


def test_of_costs_the_bound_is_below() -> None:
    model = fitted(nfs.SparseCentroid(k=5))
    model = replace(model, evidence=replace(model.evidence, gap=1.0, certified=False))
    facts = dict(facts_of_choice(model))
    assert float(facts["no other choice is better than"].replace(",", "")) == pytest.approx(
        model.evidence.objective - 1, abs=1e-3
    )


def test_a_search_proves_nothing() -> None:
    model = fitted(nfs.ErrorRateSelector(k=5))
    said = " ".join(certificate_in_words(model))
    assert "A search found this choice" in said and verdict_of(model) == "found by a search"
    assert "no other choice is better than" not in dict(facts_of_choice(model))


@pytest.mark.parametrize("k", [5, "all"])
def test_all_say_that_accuracy_is_another_matter(k: Any) -> None:
    for estimator in (nfs.SparseMultinomialNB(k=k), nfs.HybridNB(k=k), nfs.SparseCentroid(k=k)):
        said = certificate_in_words(fitted(estimator))
        assert "does not say how often the model is right" in said[-1]
        assert ("nothing to choose" in " ".join(said)) == (k == "all")
