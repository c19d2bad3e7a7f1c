"""Features: bars are as long as weights, on the side of their class, and names are shown as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import FeaturesDisplay
from nfs_dask.plots.drawing import shown
from tests.plots.conftest import documents


def names_at(ax: Any, bars: Any) -> list[str]:
    """What is written beside each of some bars."""
    labels = dict(zip(ax.get_yticks(), (text.get_text() for text in ax.get_yticklabels()), strict=True))
    return [labels[round(bar.get_y() + bar.get_height() / 2)] for bar in bars]


def test_bars_of_two_classes_point_to_either_side(two: Any, ax: Any) -> None:
    model = nfs.SparseMultinomialNB(k="all").fit(*two)
    display = FeaturesDisplay.from_estimator(model, 30, ax=ax)
    tops = model.top_features(30)
    for label, sign in zip(tops, (-1, 1), strict=True):
        bars = display.bars_[label]
        assert [bar.get_width() for bar in bars] == pytest.approx([sign * weight for _, weight in tops[label]])
        assert names_at(ax, bars) == [shown(name) for name, _ in tops[label]]
    assert "occurrence" in ax.get_xlabel() and r"\$0\$ class_00" in ax.get_title()


def test_more_classes_have_panels_of_their_own(three: Any, ax: Any) -> None:
    model = nfs.SparseMultinomialNB(k=40).fit(*three)
    display = FeaturesDisplay.from_estimator(model, 4, against=3, ax=ax)
    margins, names = model.model_.margins(), model.model_.feature_names
    for c, (label, one) in enumerate(zip(model.classes_, display.axes_, strict=True)):
        order = np.argsort(-margins[c])
        best, worst = order[:4], order[-3:]
        widths = [bar.get_width() for bar in display.bars_[label]]
        assert widths == pytest.approx([*margins[c][best], *margins[c][worst]])
        assert names_at(one, display.bars_[label]) == [shown(names[i]) for i in [*best, *worst]]
    assert widths[-1] < 0 < widths[0]
    assert display.bars_[label][0].get_facecolor() != display.bars_[label][-1].get_facecolor()


def test_many_classes_and_axes_of_ones_own(three: Any) -> None:
    many = nfs.SparseBernoulliNB(k=30, binarize=0.0).fit(*documents(23, n_rows=460))
    display = FeaturesDisplay.from_estimator(many, 3)
    assert len(display.bars_) == 23 and sum(one.axison for one in display.axes_) == 23
    display.figure_.draw_without_rendering()
    model = nfs.SparseCentroid(k=5).fit(*three)
    given = Figure().subplots(1, 2)
    wanted = list(model.classes_[:1]) + list(model.classes_[2:])
    picked = FeaturesDisplay.from_estimator(model, classes=wanted[:1], ax=given[0])
    assert picked.ax_ is given[0] and list(picked.bars_) == wanted[:1]
    assert "units of the feature" in given[0].get_xlabel()


def test_hybrid_models_have_features_too(two: Any, ax: Any) -> None:
    X, y = two
    model = nfs.HybridNB(k=10).fit([X, X], y)
    display = FeaturesDisplay.from_estimator(model, 2, ax=ax)
    assert model.top_features(2) == display.features


def test_infinite_weights_and_classes_without_features(ax: Any) -> None:
    features = {"a": [("$x$", np.inf), ("y", 2.0)], "b": [], "c": [("z", 1.0), ("w", -np.inf)]}
    display = FeaturesDisplay(features=features).plot(ax)
    endless, plain = display.bars_["a"]
    assert endless.get_width() > plain.get_width() == 2.0 and endless.get_hatch() and not plain.get_hatch()
    assert display.bars_["c"][1].get_width() < -2
    assert "no feature" in display.axes_[1].texts[0].get_text()


@pytest.mark.parametrize("features", [{"only": [("a", 1.0)]}, {"a": [], "b": []}, {"a": [("x", np.inf)], "b": []}])
def test_one_class_and_no_features_at_all(features: Any, ax: Any) -> None:
    assert list(FeaturesDisplay(features=features).plot(ax).bars_) == list(features)


def test_other_things_are_refused(two: Any) -> None:
    model = nfs.SparseMultinomialNB(k=3).fit(*two)
    with pytest.raises(InputError, match="n=0; give how many"):
        FeaturesDisplay.from_estimator(model, 0)
    with pytest.raises(InputError, match="against=-1; give how many"):
        FeaturesDisplay.from_estimator(model, against=-1)
    with pytest.raises(InputError, match="the model has no class 'eggs'; its classes are"):
        FeaturesDisplay.from_estimator(model, classes=["eggs"])
    with pytest.raises(InputError, match="the model is a str; give a fitted estimator"):
        FeaturesDisplay.from_estimator("model")
    with pytest.raises(ValueError, match="not fitted"):
        FeaturesDisplay.from_estimator(nfs.SparseMultinomialNB())
    with pytest.raises(InputError, match="features are of no class"):
        FeaturesDisplay(features={})
    with pytest.raises(InputError, match="give what top_features"):
        FeaturesDisplay(features={"a": 3})  # type: ignore[dict-item]
