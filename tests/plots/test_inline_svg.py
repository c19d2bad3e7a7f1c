"""Displays inside of pages: the numbers and texts of the picture, no styles, and nothing but references to itself."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import nfs_dask as nfs
from nfs_dask.plots.inline_svg import inline_svg
from tests.plots.conftest import AWKWARD


@pytest.fixture(scope="module")
def model(two: Any) -> Any:
    return nfs.SparseMultinomialNB(k=40).fit(*two)


def features(model: Any) -> str:
    return inline_svg(lambda: nfs.plots.FeaturesDisplay.from_estimator(model, 20), "a", "<title>", "what & why")


def test_text_is_text(model: Any, two: Any) -> None:
    svg = ET.fromstring(features(model))
    texts = {text.strip() for one in svg.iter("text") for text in one.itertext()}
    shown = {name for top in model.top_features(20).values() for name, _ in top}
    assert "<script>" in texts or "<script>" not in shown
    assert {name for name in shown if name.startswith("word")} <= texts
    assert {name for name in AWKWARD if name.isidentifier() and len(name) < 30} & shown <= texts
    assert svg[0].text == "<title>" and svg[1].text == "what & why"
    assert svg.get("aria-labelledby") == f"{svg[0].get('id')} {svg[1].get('id')}"


def test_it_has_no_styles_and_refers_to_itself_alone(model: Any, two: Any) -> None:
    pictures = [
        features(model),
        inline_svg(lambda: nfs.plots.ConfusionDisplay.from_estimator(model, *two), "b", "", "", on_paper=True),
        inline_svg(lambda: nfs.plots.ReliabilityDisplay.from_estimator(model, *two), "c", "", ""),
    ]
    assert not any(re.search(r"style=|<style|<metadata|xmlns|https?:", one) for one in pictures)
    together = "".join(pictures)
    ids = re.findall(r' id="([^"]*)"', together)
    assert len(ids) == len(set(ids)) > 6
    referred = re.findall(r'href="#([^"]*)"', together) + re.findall(r"url\(#([^)]*)\)", together)
    assert set(referred) <= set(ids) and referred
    assert set(re.findall(r'href="([^#][^,"]*)', together)) == {"data:image/png;base64"}


def test_black_and_white_are_those_of_the_page_unless_it_is_paper(model: Any, two: Any) -> None:
    assert "#000000" not in features(model) and "#ffffff" not in features(model)
    paper = inline_svg(lambda: nfs.plots.ConfusionDisplay.from_estimator(model, *two), "b", "", "", on_paper=True)
    assert 'class="nfs-picture nfs-paper"' in paper and "#ffffff" in paper


def test_equal_pictures_are_equal_bytes_whatever_the_settings(model: Any) -> None:
    before = features(model)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}):
        assert features(model) == before
    assert plt.get_fignums() == []


def test_bars_are_as_long_as_weights(model: Any) -> None:
    svg = ET.fromstring(features(model))
    paths = [one.get("d", "") for one in svg.iter("path") if one.get("fill") in ("#0072B2", "#0072b2")]
    widths = sorted(
        (max(x) - min(x) for x in ([float(n) for n in re.findall(r"[ML] ([-\d.]+)", path)] for path in paths)),
        reverse=True,
    )
    (_, right) = list(model.top_features(20).values())
    weights = [weight for _, weight in right]
    assert widths == pytest.approx([weight * widths[0] / weights[0] for weight in weights], rel=1e-3)
