"""``nfs-dask explain``: texts and rows, for people, for programs and as a page."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from tests.helpers.commands import as_json, run
from tests.helpers.terminals import COLOURS, raw_on_terminal

HAM = ["Lunch on Tuesday?", "Notes of the team meeting", "The meeting on Tuesday is moved"]
SPAM = ["Cheap watches, best price", "The best price for cheap pills", "Win a cheap watch"]
LABELS = ["ham"] * 3 + ["spam"] * 3


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of texts, one of regions, one of a matrix, and data."""
    folder = tmp_path_factory.mktemp("explain")
    store = nfs.ingest(HAM + SPAM, folder / "s.zarr", labels=LABELS)
    nfs.SparseMultinomialNB(12).fit(store).save(folder / "m")
    table = pd.DataFrame({"text": HAM + SPAM, "split": ["a", "b"] * 3, "label": LABELS})
    table.to_csv(folder / "new.csv", index=False)
    nfs.ingest(table, folder / "t.zarr", label_column="label", keep=["split"])
    table = pd.DataFrame({"subject": HAM + SPAM, "body": SPAM + HAM, "label": LABELS})
    regions = nfs.ingest(table, folder / "r.zarr", regions=["subject", "body"], label_column="label")
    nfs.HybridNB().fit(regions).save(folder / "r.model")
    X = np.array([[0, 1, 2, 0], [3, 0, 0, 1], [1, 1, 1, 0]] * 4)
    sparse.save_npz(folder / "x.npz", sparse.csr_matrix(X))
    nfs.SparseCentroid(2).fit(X, ["a", "b", "c"] * 4).save(folder / "c.model")
    return folder


def test_what_a_program_reads_adds_up(place: Path) -> None:
    values = as_json("explain", place / "m", "A cheap watch on Tuesday, cheap", "nothing known")
    first, second = values["documents"]
    model = nfs.load_model(place / "m")
    decisions = model.decision_function(["A cheap watch on Tuesday, cheap", "nothing known"])
    for document, decision in zip((first, second), decisions, strict=True):
        terms = [document["base"], *(feature["contribution"] for feature in document["features"])]
        assert math.fsum(terms) == pytest.approx(decision, abs=1e-12) == document["total"]
    assert (first["predicted"], first["for"], first["against"]) == ("spam", "spam", "ham")
    weight = model.coef_[0, model.model_.support[model.model_.names.index("cheap")]]
    assert first["features"][0] == {"feature": "cheap", "value": 2.0, "contribution": pytest.approx(2 * weight)}
    (text,) = first["texts"]
    assert [text["text"][m["start"] : m["stop"]] for m in text["marks"] if m["feature"] == "cheap"] == ["cheap"] * 2
    assert second["features"] == [] and second["texts"][0]["marks"] == []


def test_rows_of_files_are_numbered_as_there(place: Path) -> None:
    found = as_json("explain", place / "m", "--file", place / "new.csv", "--rows", "5,0-1")["documents"]
    assert [document["document"] for document in found] == [5, 0, 1]
    assert [document["texts"][0]["text"] for document in found] == [SPAM[2], HAM[0], HAM[1]]
    assert len(as_json("explain", place / "m", "--file", place / "new.csv")["documents"]) == 5
    for source in ("new.csv", "t.zarr"):
        some = as_json("explain", place / "m", "--file", place / source, "--where", "split=b")["documents"]
        assert [document["document"] for document in some] == [1, 3, 5]
    said = run("explain", place / "m", "--file", place / "new.csv", "--rows", 9, code=3).stderr
    assert "document 9 is not there: there are 6, numbered from 0" in said


def test_documents_that_were_left_out_are_said_to_be(place: Path, tmp_path: Path) -> None:
    lines = [{"text": HAM[0]}, {"text": None}, {"text": SPAM[0]}]
    (tmp_path / "holes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    skipping = ("--file", tmp_path / "holes.jsonl", "--on-error", "skip")
    assert [d["document"] for d in as_json("explain", place / "m", *skipping)["documents"]] == [0, 2]
    assert "document 1 was left out" in run("explain", place / "m", *skipping, "--rows", 1, code=3).stderr


def test_matrices_and_several_classes(place: Path) -> None:
    values = as_json("explain", place / "c.model", "--file", place / "x.npz", "--rows", "1")
    (document,) = values["documents"]
    scores = nfs.load_model(place / "c.model").decision_function(sparse.load_npz(place / "x.npz"))[1]
    assert document["scores"] == pytest.approx(scores.tolist()) and document["probability"] is None
    sums = [
        math.fsum([base, *(feature["by_class"][c] for feature in document["features"])])
        for c, base in enumerate(document["base_by_class"])
    ]
    assert sums == pytest.approx(scores.tolist(), abs=1e-12)
    assert "squared distance to" in run("explain", place / "c.model", "--file", place / "x.npz").stdout


def test_regions_take_a_text_each(place: Path) -> None:
    (document,) = as_json("explain", place / "r.model", "Lunch", "cheap pills")["documents"]
    assert [text["region"] for text in document["texts"]] == ["subject", "body"]
    assert {feature["feature"] for feature in document["features"]} == {"subject:lunch", "body:cheap", "body:pills"}
    assert "2 texts, subject, body; give one of each" in run("explain", place / "r.model", "Lunch", code=2).stderr


def test_a_page_is_written_once(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    shown = run("explain", place / "m", "cheap <script>alert(1)</script>", "--html", page).stdout
    assert "1 document with marked texts written to" in shown
    assert "<script" not in page.read_text() and "&lt;script&gt;" in page.read_text()
    assert "exists" in run("explain", place / "m", "other", "--html", page, code=3).stderr
    run("explain", place / "m", "other words", "--html", page, "--overwrite")
    assert "other words" in page.read_text()


def test_what_people_see(place: Path) -> None:
    shown = run("explain", place / "m", "A CHEAP watch on Tuesday", "--top", 2).stdout
    assert re.search(r"A \[CHEAP \+\d\.\d\] .*\[Tuesday -\d\.\d\]", shown)
    assert "probability" in shown and "log odds of spam over ham" in shown and "and 1 more feature that" in shown


def test_terminals_show_marks_in_two_ways_and_every_line_fits(place: Path) -> None:
    words = [str(place / "m"), "cheap Tuesday, and so on " * 9]
    raw = raw_on_terminal(80, [sys.executable, "-m", "tests.helpers.nfs", "explain", *words])
    assert "\x1b[1;32mcheap\x1b[0m" in raw and "\x1b[4;35mTuesday\x1b[0m" in raw
    lines = COLOURS.sub("", raw).splitlines()
    assert max(map(len, lines)) <= 80 and "(bold: for spam; underlined: for ham)" in " ".join(lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a text to explain"),
        (("text", "--file", "new.csv"), "not both"),
        (("text", "--rows", "3"), "are about --file SOURCE"),
        (("text", "--text-column", "body"), "are about --file SOURCE"),
        (("--file", "new.csv", "--rows", "3-1"), "no list of numbers"),
        (("--file", "new.csv", "--rows", "a"), "no list of numbers"),
        (("--file", "new.csv", "--rows", "0-999999"), "too many to explain"),
        (("--file", "new.csv", "--rows", "1", "--where", "split=a"), "leave --where out"),
    ],
)
def test_wrong_usage_says_what_to_do(place: Path, arguments: tuple[str, ...], said: str) -> None:
    words = [str(place / one) if one == "new.csv" else one for one in arguments]
    assert said in " ".join(run("explain", place / "m", *words, code=2).stderr.split())


def test_a_model_of_a_matrix_reads_no_text(place: Path) -> None:
    assert "name rows of one with --file" in run("explain", place / "c.model", "text", code=3).stderr
