"""What Arrow reads, beside what Python's readers make of the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nfs_dask.documents import csv_rows, jsonl
from nfs_dask.documents.csv_rows import CsvDocuments
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.jsonl import JsonDocuments
from nfs_dask.documents.locations import open_tables
from nfs_dask.errors import InputError
from nfs_dask.sources.conditions import Condition
from tests.helpers.reading import read, shrink

COLUMNS = TextColumns(
    ("text", "title"), "label", "weight", kept=("id", "text"), where=(Condition("split", ("a", "1")),)
)
NAMES = ("text", "title", "label", "weight", "id", "split")


def strictly(patch):
    """Let Python read every row."""
    patch.setattr(csv_rows, "regular_rows", lambda _text, at, *_: (0, at, 0, True))
    patch.setattr(jsonl, "_by_arrow", lambda *_: None)


def outcome(make, path, columns, piece, batch, strict):
    """All that is read of a file, further columns too, or why it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, piece, batch)
        if strict:
            strictly(patch)
        try:
            source = make((str(path),), columns)
            batches = list(chain.from_iterable(map(source.batches, range(source.n_pieces))))
        except InputError as error:
            return str(error)
        found = [list(zip(*(strings.to_list() for strings in one.texts), strict=True)) for one in batches]
        labels = [(repr(label), type(label)) for one in batches for label in one.labels]
        weights = [weight for one in batches for weight in one.weights.tolist()]
        kept = {name: [repr(value) for one in batches for value in one.others[name]] for name in columns.kept}
        problems = [problem for one in batches for problem in one.problems]
        values = sorted({value for one in batches for value in one.found[0]})
        counts = sum(one.seen for one in batches), sum(one.empty for one in batches)
        return list(chain.from_iterable(found)), labels, weights, kept, problems, values, counts


def agree(make, path, on_error, piece, batch):
    columns = replace(COLUMNS, on_error=on_error)
    ours, theirs = (outcome(make, path, columns, piece, batch, strict) for strict in (False, True))
    assert ours == theirs


sizes = st.tuples(st.sampled_from([7, 50, 300, 1 << 22]), st.sampled_from([5, 60, 1 << 22]))
on_errors = st.sampled_from(["skip", "skip", "fail"])

odd_fields = st.sampled_from(
    [
        b"",
        b"a",
        b"1",
        b"1.5",
        b"nan",
        b"-1",
        b"1e400",
        b" x ",
        b"caf\xc3\xa9",
        b"\xff",
        b"\xe9t",
        b"\0",
        b"\xed\xb0\x80",
        b"x" * 90,
        b'"a,b"',
        b'"a\nb"',
        b'"a\r\nb"',
        b'"a""b"',
        b'""',
        b'"\r"',
        b'a"b',
        b'"a"b',
        b'"a',
        b"a,b",
        b"'a'",
        b"\\",
        b'"a" ',
    ]
)
odd_rows = st.tuples(
    st.lists(odd_fields, min_size=1, max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b""])
)
good_fields = st.sampled_from(
    [
        b"a",
        b"some words",
        b"so many words \xc3\xa9",
        b'"so many, words ""\n"',
        b"1",
        b'"b, c"',
        b'"d ""e"""',
        b'"f\ng"',
        b"",
    ]
)
good_rows = st.tuples(
    st.lists(good_fields, min_size=3, max_size=3).flatmap(
        lambda fields: st.tuples(*map(st.just, fields), st.just(b"2"), st.just(b"7"), st.sampled_from([b"a", b"b"]))
    ),
    st.sampled_from([b"\n", b"\n", b"\r\n"]),
)
rows_of_csv = st.lists(st.one_of(good_rows, good_rows, odd_rows), max_size=25)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows_of_csv, sizes, on_errors, st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_csv_is_read_as_python_reads_it(tmp_path, rows, size, on_error, mark):
    header = ",".join(NAMES).encode() + b"\n"
    path = tmp_path / "odd.csv"
    path.write_bytes(mark + header + b"".join(b",".join(fields) + end for fields, end in rows))
    agree(CsvDocuments, path, on_error, *size)


odd_values = st.recursive(
    st.sampled_from(
        [
            "a",
            "",
            "two\nlines",
            "caf\u00e9",
            "\U0001f600",
            "\ud800",
            "\ud83d\ude00 x",
            "\0",
            1,
            1.0,
            -0.5,
            1e300,
            float("nan"),
            float("-inf"),
            10**30,
            True,
            False,
            None,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "text", "\u00e9"]), inner, max_size=2)
    ),
    max_leaves=4,
)
texts = st.sampled_from(["some words", "", "caf\u00e9 \U0001f600", 'a "b" \\ / \t\n', "\u2028\x7f"])
records = st.fixed_dictionaries(
    {
        "text": texts,
        "title": texts,
        "label": st.sampled_from(["a", 1, 1.0, True, None]),
        "weight": st.sampled_from([1, 2.5]),
    },
    optional={"id": odd_values, "split": st.sampled_from(["a", "b", 1]), "other": odd_values, "text ": odd_values},
)
odd_records = st.fixed_dictionaries({}, optional=dict.fromkeys([*NAMES, "other"], odd_values))
odd_bytes = st.sampled_from(
    [
        b'"',
        b"\\",
        b"\\u12",
        b"\\ud83d",
        b"\\x",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\xff",
        b"\xc3",
        b"\t",
        b"\x0b",
        b"\0",
        b"\r",
        b" ",
        b"0",
        b".",
        b"1e",
        b"-",
        b"NaN",
        b"nul",
        b"\xef\xbb\xbf",
        b'"text": 1,',
        b'"text": "b",',
        b'"te\\u0078t": "b",',
        b"\n",
        b"9" * 700,
    ]
)


@st.composite
def json_lines(draw):
    """A line; some with a few bytes put in, taken out or put in their place."""
    record = draw(st.one_of(records, records, odd_records))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    line = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=separators).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(st.one_of(st.just(b""), odd_bytes)) + line[at + draw(st.integers(0, 2)) :]
    return line + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(json_lines(), max_size=12), sizes, on_errors, st.booleans())
def test_json_lines_are_read_as_python_reads_them(tmp_path, lines, size, on_error, ended):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"".join(lines).removesuffix(b"" if ended else b"\n"))
    agree(JsonDocuments, path, on_error, *size)


def test_what_is_regular_takes_no_python(tmp_path, monkeypatch):
    text, label = r'"a \u00e9\ud83d\ude00\n\"b\""', '"Inf"'
    others = ["{}", '{"a": [1, {"b": []}], "c": {}}', "[[[1, 2], []], {}]", "-0", "1E+5", '"\\u00e9\\/\\b"', "NaN"]
    path = tmp_path / "regular.jsonl"
    lines = [f'{{"label": {label}, "other": {value}, "text": {text}}}\r\n' for value in others]
    path.write_text("".join(lines) + "\n", newline="")
    monkeypatch.setattr(JsonDocuments, "_strictly", None)
    found = read(JsonDocuments((str(path),), TextColumns(("text",), "label")))
    assert found.texts == ['a \u00e9\U0001f600\n"b"'] * len(others)
    assert found.labels == ["Inf"] * len(others)


def test_an_odd_row_among_many_costs_little(tmp_path, monkeypatch):
    rows = [f"a text,{i}" for i in range(1000)]
    rows[500] = 'a "text",500,too many'
    path = tmp_path / "one.csv"
    path.write_text("\n".join(["text,label", *rows]))
    read_by_python = []
    strictly = CsvDocuments._strictly

    def noted(self, found, part, header):
        for line, row in found:
            read_by_python.append(row)
            yield from strictly(self, [(line, row)], part, header)

    monkeypatch.setattr(CsvDocuments, "_strictly", noted)
    found = read(CsvDocuments((str(path),), TextColumns(("text",), "label", on_error="skip")))
    assert len(found.texts) == 999
    assert read_by_python == [['a "text"', "500", "too many"]]


@pytest.mark.parametrize("name", ["odd.jsonl", "odd.csv"])
def test_a_bad_document_that_nobody_asked_for_loses_no_good_ones(tmp_path, name):
    path = tmp_path / name
    if name == "odd.csv":
        rows = ["split,weight,text", "a,1,first", "b,much,second", "a,1,third"]
    else:
        split = [("a", 1, "first"), ("b", "much", "second"), ("a", 1, "third")]
        rows = [json.dumps({"split": a, "weight": weight, "text": text}) for a, weight, text in split]
    path.write_text("\n".join(rows))
    columns = TextColumns(("text",), weight="weight", where=(Condition("split", ("a",)),))
    for strict in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if strict:
                strictly(patch)
            source = open_tables((str(path),), columns)
            batches = list(chain.from_iterable(map(source.batches, range(source.n_pieces))))
        assert [text for batch in batches for text in batch.texts[0].to_list()] == ["first", "third"]
