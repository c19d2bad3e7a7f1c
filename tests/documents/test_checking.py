from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfs_dask.documents.checking import Checker, TextColumn, blank, check_columns, is_missing
from nfs_dask.documents.decoding import check_encoding, explain_undecodable, in_utf8, keeps_ascii, to_utf8
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.errors import InputError
from nfs_dask.text.strings import Strings, invalid_utf8

SKIP = TextColumns(("subject", "body"), "label", "weight", on_error="skip")


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_white_space_is_what_python_says_it_is():
    characters = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
    assert blank(Strings.of(characters)).tolist() == [c.isspace() for c in characters]


@given(st.lists(st.text(st.sampled_from(" \t\n\x1c\x85\xa0\u1680\u2000\u200b\u2029\u202f\u205f\u3000\u3001a\xc2"))))
def test_blank_texts_are_those_of_white_space_alone(texts):
    assert blank(Strings.of(texts)).tolist() == [not text.strip() for text in texts]


@given(st.lists(st.binary(max_size=3)))
def test_white_space_is_looked_for_in_any_bytes(texts):
    assert blank(Strings.of(texts)).tolist() == [is_utf8(text) and not text.decode().strip() for text in texts]


@given(st.lists(st.binary(max_size=4) | st.text(max_size=4).map(str.encode)), st.integers(0, 3))
@example(["é".encode()[:1], "é".encode()[1:]], 0)  # valid together, but neither is
@example([b"", "é".encode(), b""], 1)
def test_invalid_utf8_is_found_in_each_string(texts, start):
    strings = Strings.of(texts)
    part = strings.part(min(start, len(texts)), len(texts))
    assert invalid_utf8(part) == [i for i, text in enumerate(texts[start:]) if not is_utf8(text)]


regions = st.lists(st.sampled_from(["word", "", " \u3000", "é", b"\xff", None]), min_size=2, max_size=2)
labels = st.sampled_from(["spam", "ham", "", None])
weights = st.sampled_from([0.0, 1.0, 2.5, -1.0, np.nan, np.inf, None])
documents = st.lists(st.tuples(regions, labels, weights), max_size=12)


def kind_of(document):
    """What is wrong with a document, said in plain Python."""
    texts, label, weight = document
    if b"\xff" in texts:
        return "undecodable"
    if texts == [None, None]:
        return "missing"
    if not label:
        return "label"
    return "weight" if weight is None or not 0 <= weight < np.inf else None


def columns_of(found):
    regions = []
    for r in range(2):
        values = [texts[r] for texts, _, _ in found]
        # What is not there may have any bytes, and they must not come through.
        strings = Strings.of(value if value is not None else b"\xfehidden" for value in values)
        regions.append(TextColumn(strings, np.array([value is not None for value in values], bool)))
    labels = np.array([label for _, label, _ in found], object)
    there = np.array([weight is not None for _, _, weight in found], bool)
    weights = np.array([0.0 if weight is None else weight for _, _, weight in found])
    return regions, TextColumn(labels), TextColumn(weights, there)


def assert_filtered(batch, found):
    kinds = [kind_of(document) for document in found]
    good = [document for document, kind in zip(found, kinds, strict=True) if kind is None]
    for r, region in enumerate(batch.texts):
        assert region.to_list() == [texts[r] or "" for texts, _, _ in good]
    assert list(batch.labels) == [label for _, label, _ in good]
    assert batch.weights.tolist() == [weight for _, _, weight in good]
    assert batch.seen == len(found)
    assert batch.skipped.tolist() == [i for i, kind in enumerate(kinds) if kind]
    assert batch.empty == sum(not any((text or "").strip() for text in texts) for texts, _, _ in good)
    expected = [(kind, f"row {i}") for i, kind in enumerate(kinds) if kind]
    assert [(problem.kind, problem.where) for problem in batch.problems] == expected


@given(documents)
def test_bad_documents_are_left_out_and_named(found):
    assert_filtered(Checker(SKIP).batch(*columns_of(found), where=lambda i: f"row {i}"), found)


@pytest.mark.parametrize(
    ("value", "missing"),
    [(None, True), (np.nan, True), (float("nan"), True), (pd.NA, True), (pd.NaT, True), ("", True), (np.str_(""), True)]
    + [(0, False), (False, False), (" ", False), ("nan", False), (0.0, False), (np.int8(0), False), (b"x", False)],
)
def test_missing_labels(value, missing):
    assert is_missing(value) == missing
    batch = Checker(TextColumns(label="y", on_error="skip")).batch(
        [TextColumn(Strings.of(["a"]))], TextColumn([value]), None, str
    )
    assert batch.n_documents == (not missing)


def test_columns_that_are_not_there_are_named():
    has = r"mail.csv has the columns 'id', 'body', 'body'; "
    for columns, message in (
        (TextColumns(), has + "say which of them hold the texts with text_column="),
        (TextColumns(("text",)), has + "text_column='text' is not among them"),
        (TextColumns(("body",)), has + "text_column='body' is there 2 times"),
        (TextColumns(("id",), "y"), has + "label_column='y' is not among them"),
        (TextColumns(("id",), "id", "w"), has + "weight_column='w' is not among them"),
    ):
        with pytest.raises(InputError, match=message):
            check_columns("mail.csv", ["id", "body", "body"], columns)
    check_columns("mail.csv", ["id", "body", "body"], TextColumns(("id",), "id", "id"))


ENCODINGS = ["utf-8", "latin-1", "cp1252", "ascii", "gbk", "shift_jis", "utf-16-le", "utf-32-be", "koi8-r", "cp037"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(st.binary(max_size=12) | st.text(st.sampled_from("aé\u0416\u4e2d\U0001f600"), max_size=5), st.data())
def test_other_encodings_become_utf8_and_what_is_invalid_stays_so(encoding, content, data):
    if isinstance(content, str):
        content = content.encode(encoding, "ignore")
    cut = data.draw(st.integers(0, len(content)))
    for found in (to_utf8(content, encoding), b"".join(in_utf8([content[:cut], content[cut:]], encoding))):
        try:
            truth = content.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError:
            assert not is_utf8(found)
            assert "is not valid" in explain_undecodable(found, encoding)
        else:
            assert found.decode() == truth


def test_the_byte_that_is_not_valid_is_named():
    assert explain_undecodable(to_utf8(b"a\x81b", "cp1252"), "cp1252") == "the byte 0x81 is not valid cp1252"
    assert explain_undecodable(b"ab\xffc", "utf-8").startswith("the byte 0xff at position 2 is not valid")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_that_can_be_cut_have_line_ends_and_quotes_nowhere_else(encoding):
    assert keeps_ascii(encoding) == (encoding not in ("utf-16-le", "utf-32-be", "cp037"))
    if keeps_ascii(encoding):
        for character in map(chr, [*range(128, 0xD800), 0x1F600]):
            assert not set(character.encode(encoding, "ignore")) & set(b'\r\n\t,"')


def test_stateful_encodings_are_not_cut():
    assert not any(map(keeps_ascii, ["iso2022_jp", "utf-7", "hz", "utf-16"]))


@pytest.mark.parametrize("encoding", ["klingon", "hex", "idna", "punycode", ""])
def test_unknown_encodings_are_refused(encoding):
    with pytest.raises(InputError, match=f"encoding='{encoding}' cannot be read; give the name"):
        check_encoding(encoding)
