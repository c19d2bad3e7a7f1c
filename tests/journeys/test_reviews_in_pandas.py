"""Somebody with reviews in a DataFrame: to a model, the words it stands on, and what it says of new texts."""

from __future__ import annotations

import re

import pytest

from tests.helpers.journeys import Journey

pytestmark = pytest.mark.slow

REVIEWS = """
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
common = [f"word{i}" for i in range(300)]
telling = {"good": ["wonderful", "warm", "funny"], "bad": ["dull", "waste", "wooden"]}
opinions = rng.choice(["good", "bad"], 3000)
texts = [
    " ".join([*rng.choice(common, 30), *rng.choice(telling[opinion], 2), rng.choice(telling["good"] + telling["bad"])])
    for opinion in opinions
]
reviews = pd.DataFrame({"text": texts, "opinion": opinions})
"""
FIT = """
import nfs_dask as nfs

dataset = nfs.ingest(reviews[:2000], "reviews.zarr", label_column="opinion")
model = nfs.SparseMultinomialNB(k=6).fit(dataset)
for opinion, words in model.top_features(3).items():
    print(opinion, [word for word, weight in words])
print(model)
print(f"no other six words are better by more than {model.dual_gap_:.3g} nats; proved best: {model.certified_}")
"""
PREDICT = """
print(model.predict(["What a warm, wonderful evening", "Dull, and the acting wooden"]))
print(nfs.evaluate(model, reviews[2000:], label_column="opinion"))
model.save("reviews.model")
"""
AGAIN = """
import nfs_dask as nfs

print(nfs.load_model("reviews.model").predict(["a waste of an evening"]))
"""


def test_to_a_model_its_words_and_predictions(journey: Journey) -> None:
    shown = journey.python(REVIEWS + FIT + PREDICT)
    words = {
        found[1]: set(re.findall(r"'(\w+)'", found[2])) for found in re.finditer(r"(?m)^(good|bad) (\[.*\])$", shown)
    }
    assert words == {"good": {"wonderful", "warm", "funny"}, "bad": {"dull", "waste", "wooden"}}
    assert "proved best: True" in shown
    assert "['good' 'bad']" in shown
    assert "['bad']" in journey.python(AGAIN)
    assert journey.minutes < 1
