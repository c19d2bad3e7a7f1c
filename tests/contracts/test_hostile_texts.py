"""Patterns and labels of models from elsewhere: bounded in time, and no formulas."""

from __future__ import annotations

import csv
import json
import re
import time

import google_crc32c
import pytest
from click.testing import CliRunner

import nfs_dask as nfs
from nfs_dask.cli.main import cli

TEXTS, LABELS = ["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"]
ENDLESS = [
    r"(?:a+)+b",
    r"(a+)+b",
    r"(?:a|a)*b",
    r"(?:aa|aa)+b",
    r"(?:\w+\s?)*9",
    r"(?i:(?:[a-z]x?|[A-Z]y?)+)9",
    r"(?:\w{2,3})+9",
    r"(?=(?:a+)+b)a",
    r"a*a*a*a*a*a*b",
    r"(?s).*.*.*.*9",
    r"a?" * 30 + "a" * 30 + "b",
]
FINE = [
    r"[a-z]+",
    r"(?u)\b\w+(?:[-']\w+)*\b",
    r"https?://\S+|\w+",
    r"\$?\d+(?:,\d{3})*(?:\.\d+)?%?",
    r"(?:[A-Z][a-z]+)+",
    r"\w+@\w+\.\w+|\w+",
    r"[#@]?\w{2,30}",
    r"(?<=\b)[^\W\d_]+(?!\d)",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("patterns")
    store = nfs.ingest(TEXTS, place / "store.zarr", labels=LABELS, token_pattern="[a-z]+")
    nfs.SparseMultinomialNB(2).fit(store).save(place / "model")
    return place / "model"


def forged(model, pattern):
    """The model with another pattern, and a checksum that fits."""
    content = json.loads((model / "model.json").read_text().replace(json.dumps("[a-z]+"), json.dumps(pattern)))
    del content["crc32c"]
    content["crc32c"] = f"{google_crc32c.value(json.dumps(content, sort_keys=True).encode()):08x}"
    (model / "model.json").write_text(json.dumps(content))


@pytest.fixture
def hostile(model):
    before = (model / "model.json").read_bytes()
    forged(model, r"(?:[a-z]+)+9")
    yield model
    (model / "model.json").write_bytes(before)


def test_a_pattern_of_a_model_that_may_take_for_ever_reads_nothing(hostile, tmp_path):
    loaded = nfs.load_model(hostile)
    assert loaded.predict(nfs.open_dataset(hostile.parent / "store.zarr")).tolist() == LABELS
    start = time.monotonic()
    for ask in (loaded.predict, loaded.explain, loaded.transform):
        with pytest.raises(nfs.InputError, match="may take for ever on some texts"):
            ask(["a" * 60])
    (tmp_path / "new.csv").write_text("text\n" + "a" * 60 + "\n")
    told = CliRunner().invoke(cli, ["predict", str(hostile), str(tmp_path / "new.csv"), "--text-column", "text"])
    assert told.exit_code == 3 and "may take for ever" in told.output
    assert time.monotonic() - start < 30
    own = nfs.load_model(hostile, tokenizer=re.compile("[a-z]+").findall)
    assert own.predict(TEXTS).tolist() == LABELS


@pytest.mark.parametrize("pattern", ENDLESS)
def test_patterns_that_may_take_for_ever_are_refused(pattern):
    with pytest.raises(nfs.InputError, match="may take for ever"):
        nfs.TextVectorizer(token_pattern=pattern).fit(["a" * 50])


@pytest.mark.parametrize("pattern", FINE)
def test_patterns_that_go_one_way_are_taken(pattern):
    text = "Ada's well-known $1,024.50 at ada@home.org: #MeToo TeaTime"
    found = nfs.TextVectorizer(token_pattern=pattern, lowercase=False).fit([text])
    assert set(found.get_feature_names_out()) == set(re.findall(pattern, text))


def test_predictions_are_no_formulas(tmp_path):
    labels = ["=1+1", "@now", "-1", "=1+1"]
    nfs.SparseMultinomialNB(4).fit(nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=labels)).save(tmp_path / "m")
    (tmp_path / "new.csv").write_text("id,text\n=2+2,green tea\n+3,black tea\nc,black coffee\n")
    asked = ["--text-column", "text", "--id-column", "id", "--out", str(tmp_path / "out.csv")]
    told = CliRunner().invoke(cli, ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), *asked])
    assert told.exit_code == 0, told.output
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["'=2+2", "+3", "c"]
    assert [row["label"] for row in rows] == ["'=1+1", "'@now", "-1"]


@pytest.mark.parametrize("ending", ["npz", "xlsx", "zip"])
def test_an_archive_that_points_before_its_beginning_is_named(ending, tmp_path):
    import io
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("some.npy", b"0" * 1000)
    data = bytearray(content.getvalue())
    end = data.rindex(b"PK\5\6")
    data[end + 16 : end + 20] = (2**31).to_bytes(4, "little")  # where the list of members begins
    place = tmp_path / f"odd.{ending}"
    place.write_bytes(data)
    for command in (["info", str(place)], ["ingest", str(place), str(tmp_path / "s.zarr")]):
        told = CliRunner().invoke(cli, command)
        assert told.exit_code == 3 and place.name in told.output, told.output
