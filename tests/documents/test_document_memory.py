from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.documents import in_memory as memory
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.in_memory import MemoryDocuments
from nfs_dask.errors import InputError
from tests.helpers.string_types import STRING_TYPES
from tests.helpers.taking import take

SKIP = TextColumns(on_error="skip")
TEXTS = ["one", "zwei, naïve", "три \U0001f600", "a\0b", "four " * 9]

FORMS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "objects": lambda texts: np.array(texts, object),
    "odd index": lambda texts: pd.Series(texts, index=[7] * len(texts)),
    **STRING_TYPES,
}


@pytest.fixture
def tiny(monkeypatch):
    """Batches and pieces of a few documents."""
    monkeypatch.setattr(memory, "BATCH_NBYTES", 12)
    monkeypatch.setattr(memory, "PIECE_BATCHES", 2)


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, tiny):
    source = MemoryDocuments(FORMS[form](TEXTS), TextColumns())
    taken = take(source)
    assert taken.texts == TEXTS and sum(taken.pieces) == len(TEXTS)
    assert source.in_memory and not source.labelled and source.fingerprint is None


@pytest.mark.parametrize("form", ["list", "objects", *STRING_TYPES])
def test_missing_documents_are_named(form, tiny):
    texts = [*TEXTS[:2], None, "", *TEXTS[2:], None, " \t"]
    taken = take(MemoryDocuments(FORMS[form](texts), SKIP))
    assert taken.texts == [text for text in texts if text is not None] and taken.seen == len(texts)
    assert taken.problems == [("missing", f"document {i}") for i in (2, 7)] and taken.empty == 2
    with pytest.raises(InputError, match=r"document 2: the text is missing.*on_error"):
        take(MemoryDocuments(FORMS[form](texts), TextColumns()))


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_whatever_stands_for_missing(missing):
    assert take(MemoryDocuments(["one", missing], SKIP)).problems == [("missing", "document 1")]


def test_half_of_a_character_is_undecodable():
    taken = take(MemoryDocuments(["one", "\ud800", "two"], SKIP))
    assert taken.texts == ["one", "two"] and taken.problems == [("undecodable", "document 1")]
    assert "U+D800" in taken.whats[0]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (5, "5, not a string"),
        (b"x", "a bytes.*decode it"),
        (("one", "spam"), "a tuple.*labels="),
        (["a", "b"], "a list.*join"),
        ({"text": "a"}, "a dict.*text_column="),
        (np.array([1]), "a ndarray"),
    ],
)
def test_what_is_no_string_is_named_whatever_is_skipped(item, said):
    with pytest.raises(InputError, match=f"document 3 is {said}"):
        take(MemoryDocuments(["one", "two", "three", item], SKIP))


def test_pieces_are_cut_by_characters(tiny):
    texts = ["123456"] * 20
    taken = take(MemoryDocuments(texts, TextColumns()))
    assert taken.pieces == [4] * 5 and taken.texts == texts
    assert take(MemoryDocuments(["x" * 100, "y"] * 3, TextColumns())).pieces == [3, 3]
    assert MemoryDocuments(texts, TextColumns()).nbytes == 120


def test_very_short_documents_are_cut_by_their_number(monkeypatch):
    monkeypatch.setattr(memory, "BATCH_DOCUMENTS", 10)
    rows = memory.DocumentRows.of(["x"] * 25, TextColumns())
    assert rows.cuts()[0] == [0, 10, 20, 25]


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.none(), min_size=1))
@pytest.mark.parametrize("form", ["list", "chunks"])
def test_nothing_is_lost_or_moved(form, texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "BATCH_NBYTES", 40)
        patch.setattr(memory, "PIECE_BATCHES", 3)
        taken = take(MemoryDocuments(FORMS[form](texts), SKIP))
    assert taken.texts == [text for text in texts if text is not None]
    assert taken.empty == sum(not text.strip() for text in taken.texts)
    assert [where for _, where in taken.problems] == [f"document {i}" for i, text in enumerate(texts) if text is None]


FRAME = pd.DataFrame(
    {
        "text": TEXTS,
        "title": ["t1", "", "t3", "t4", "t5"],
        "class": ["ham", "spam", "ham", "spam", "spam"],
        "weight": [1, 2, 0, 4, 5],
        "stars": [5, 1, 2, 1, 1],
    },
    index=list("abcde"),
)


@pytest.mark.parametrize("strings", STRING_TYPES)
def test_frames(strings, tiny):
    texts = {
        name: STRING_TYPES[strings]([text or None for text in FRAME[name]]).array for name in ("text", "title", "class")
    }
    frame = FRAME.assign(**texts)
    source = MemoryDocuments(frame, TextColumns(("text",), "class", "weight"))
    taken = take(source)
    assert source.labelled and source.weighted
    assert taken.texts == TEXTS and taken.labels == FRAME["class"].tolist() and taken.weights == [1, 2, 0, 4, 5]
    taken = take(MemoryDocuments(frame, TextColumns(("title", "text"), "stars")))
    assert taken.texts == list(zip(["t1", "", "t3", "t4", "t5"], TEXTS, strict=True))
    assert taken.labels == [5, 1, 2, 1, 1] and taken.weights == []


def test_a_document_is_empty_or_missing_if_all_its_regions_are():
    frame = pd.DataFrame({"subject": ["a", None, None, None], "body": [None, "b", " ", None]})
    taken = take(MemoryDocuments(frame, TextColumns(("subject", "body"), on_error="skip")))
    assert taken.texts == [("a", ""), ("", "b"), ("", " ")] and taken.empty == 1
    assert taken.problems == [("missing", "document 3")]


@pytest.mark.parametrize("labels", [["x", None, "y"], [1.0, np.nan, 2.0], pd.array([1, None, 2], "Int64")])
def test_missing_labels_are_named(labels):
    frame = pd.DataFrame({"text": ["a", "b", "c"], "class": labels})
    with pytest.raises(InputError, match=r"document 1: the document has no label"):
        take(MemoryDocuments(frame, TextColumns(("text",), "class")))
    taken = take(MemoryDocuments(frame, TextColumns(("text",), "class", on_error="skip")))
    assert taken.texts == ["a", "c"] and taken.labels == [labels[0], labels[2]]


@pytest.mark.parametrize("bad", [-1, np.nan, np.inf, None, "heavy", 10**400])
def test_bad_weights_are_named(bad):
    frame = pd.DataFrame({"text": ["a", "b", "c"], "weight": pd.Series([1, bad, 2.5], dtype=object)})
    with pytest.raises(InputError, match=r"document 1: the .*weight"):
        take(MemoryDocuments(frame, TextColumns(("text",), None, "weight")))
    taken = take(MemoryDocuments(frame, TextColumns(("text",), None, "weight", on_error="skip")))
    assert taken.texts == ["a", "c"] and taken.weights == [1, 2.5] and taken.problems == [("weight", "document 1")]


def test_bad_frames_are_refused():
    with pytest.raises(InputError, match=r"columns 'text', 'title'.*label_column='klass' is not among them"):
        MemoryDocuments(FRAME, TextColumns(("text",), "klass"))
    twice = pd.concat([FRAME, FRAME[["text"]]], axis=1)
    with pytest.raises(InputError, match=r"text_column='text' is there 2 times"):
        MemoryDocuments(twice, TextColumns(("text",)))
    with pytest.raises(InputError, match="document 0, 'stars' is 5, not a string"):
        take(MemoryDocuments(FRAME, TextColumns(("stars",))))


@pytest.mark.parametrize("nothing", [[], np.array([], str), pd.Series([], dtype=object), FRAME.iloc[:0]])
def test_nothing_is_refused(nothing):
    columns = TextColumns(("text",)) if hasattr(nothing, "columns") else TextColumns()
    with pytest.raises(InputError, match="no documents were given"):
        MemoryDocuments(nothing, columns)
    with pytest.raises(InputError, match=r"shape \(2, 1\).*one dimension"):
        MemoryDocuments(np.array([["a"], ["b"]]), TextColumns())
