"""Somebody on a Dask cluster with a bag of texts, or a data frame of them."""

from __future__ import annotations

import re

import pytest

from tests.helpers.journeys import Journey

pytestmark = pytest.mark.slow

SCRIPT = """
import dask.bag as db
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

import nfs_dask as nfs

def letters(number):
    kinds = ["prize winner" if (number + i) % 2 else "lunch meeting" for i in range(500)]
    return [f"{kind} word{(7 * i + number) % 90} of day{i % 30}" for i, kind in enumerate(kinds)]

def folder(text):
    return "spam" if "prize" in text else "ham"

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        bag = db.from_sequence(range(20), npartitions=8).map(letters).flatten()
        mail = bag.map(lambda text: {"text": text, "folder": folder(text)}).to_dataframe()
        fitted = {}
        for name, dataset in {
            "frame": nfs.ingest(mail, "frame.zarr", label_column="folder"),
            "bag": nfs.ingest(bag, "bag.zarr", labels=[folder(text) for text in bag.compute()]),
        }.items():
            print(name, dataset)
            fitted[name] = nfs.SparseMultinomialNB(k=4).fit(dataset)
            print(sorted(fitted[name].get_feature_names_out()), fitted[name].predict(["a prize", "a lunch"]))
        print("the same bits:", fitted["bag"].objective_ == fitted["frame"].objective_)
"""


def test_a_bag_and_a_frame_of_texts_to_a_model(journey: Journey) -> None:
    shown = journey.python(SCRIPT)
    assert shown.count("10000 rows") + shown.count("10,000 rows") == 2
    assert shown.count("['lunch', 'meeting', 'prize', 'winner'] ['spam' 'ham']") == 2
    assert "the same bits: True" in shown
    assert not re.search("distributed.*(WARNING|ERROR)", shown)
    assert journey.minutes < 2
