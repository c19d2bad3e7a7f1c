from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.jsonl import JsonDocuments
from nfs_dask.documents.locations import open_tables
from nfs_dask.errors import InputError
from tests.helpers.reading import COMPRESS, places, read, shrink

COLUMNS = TextColumns(("text",), "label", "weight", on_error="skip")


def write(path, lines):
    content = "\n".join(lines).encode()
    suffix = path.suffix
    path.write_bytes(COMPRESS[suffix](content) if suffix in COMPRESS else content)
    return str(path)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
records = st.fixed_dictionaries(
    {"text": texts, "label": st.sampled_from(["a", 1, True, None]), "weight": st.sampled_from([1, 2.5, -1])}
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=8), st.integers(1, 200), st.booleans(), st.booleans())
def test_every_cut_gives_what_json_reads(tmp_path, records, piece, ascii_only, spaced):
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in records]
    path = write(tmp_path / "cut.jsonl", [x for line in lines for x in ((line, " ") if spaced else (line,))])
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, piece)
        found = read(JsonDocuments((path,), COLUMNS))
    good = [r for r in records if r["label"] is not None and r["weight"] >= 0]
    assert found.texts == [r["text"] for r in good]
    assert found.empty == sum(not r["text"].strip() for r in good)
    assert found.labels == [r["label"] for r in good]
    assert [type(label) for label in found.labels] == [type(r["label"]) for r in good]
    assert found.weights == [r["weight"] for r in good]
    bad = [i for i, record in enumerate(records) if record not in good]
    assert [line for _, line in places(found)] == [i * (1 + spaced) + 1 for i in bad]


@pytest.mark.parametrize("name", ["mails.jsonl", "mails.ndjson.gz", "mails.json.xz", "mails.jsonl.zst"])
def test_it_reads_what_pandas_writes(tmp_path, monkeypatch, name):
    frame = pd.DataFrame({
        "subject": [f'"{i}" / é \u2028\n' for i in range(50)],
        "body": [None if i % 3 else "long " * i + "." for i in range(50)],
        "spam": [i % 2 == 0 for i in range(50)],
    })  # fmt: skip
    path = write(tmp_path / name, frame.to_json(orient="records", lines=True).splitlines())
    shrink(monkeypatch, 900)
    source = open_tables((path,), TextColumns(("subject", "body"), "spam"))
    assert (source.n_pieces > 3) == name.endswith("jsonl")
    found = read(source)
    assert found.texts == list(zip(frame.subject, frame.body.fillna(""), strict=True))
    assert found.labels == frame.spam.tolist()


GOOD = '{"text": "fine", "label": "a", "weight": 1}'
BAD = [
    ('{"text": "cut', "broken", "the line is not JSON (Unterminated string"),
    ('["fine", "a"]', "broken", "the line is an array, not an object; write each element on a line of its own"),
    ('"fine"', "broken", "the line is a string, not an object"),
    ("null", "broken", "the line is null, not an object"),
    ("[" * 100_000, "broken", "the line is not JSON (maximum recursion depth"),
    ('{"text": ' + "1" * 5000 + "}", "broken", "the line is not JSON (Exceeds the limit"),
    ('{"txt": "fine", "label": "a"}', "broken", "there is no field 'text'; the line has 'txt', 'label'"),
    ("{}", "broken", "there is no field 'text'; the line has nothing"),
    ('{"text": 12, "label": "a"}', "broken", "the field 'text' is a number, not a string"),
    ('{"text": {"en": "fine"}, "label": "a"}', "broken", "the field 'text' is an object, not a string"),
    ('{"text": true, "label": "a"}', "broken", "the field 'text' is true or false, not a string"),
    ('{"text": "fine", "label": ["a"], "weight": 1}', "broken", "the label 'label' is an array, not a string"),
    ('{"text": null, "label": "a", "weight": 1}', "missing", "the text is missing"),
    ('{"text": NaN, "label": "a", "weight": 1}', "missing", "the text is missing"),
    ('{"text": "fine", "weight": 1}', "label", "the document has no label"),
    ('{"text": "fine", "label": "", "weight": 1}', "label", "the document has no label"),
    ('{"text": "fine", "label": NaN, "weight": 1}', "label", "the document has no label"),
    ('{"text": "fine", "label": "a"}', "weight", "the document has no weight; weights are finite numbers"),
    ('{"text": "fine", "label": "a", "weight": -1}', "weight", "the document has the weight -1;"),
    ('{"text": "fine", "label": "a", "weight": Infinity}', "weight", "the document has the weight inf;"),
    ('{"text": "fine", "label": "a", "weight": "heavy"}', "weight", "the document has the weight 'heavy';"),
    ('{"text": "half \\ud83d", "label": "a", "weight": 1}', "undecodable", "U+D83D, half of a character"),
    (b'{"text": "caf\xe9", "label": "a", "weight": 1}', "undecodable", "the byte 0xe9 at position 13"),
    (b'{"text": "\xed\xa0\x80", "label": "a"}', "undecodable", "the byte 0xed at position 10"),
]


@pytest.mark.parametrize(("line", "kind", "what"), BAD)
def test_each_kind_of_bad_line(tmp_path, line, kind, what):
    line = line.encode() if isinstance(line, str) else line
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join([GOOD.encode(), b"", line, GOOD.encode()]))
    found = read(JsonDocuments((str(path),), COLUMNS))
    assert found.texts == ["fine", "fine"]
    assert [problem[:2] for problem in found.problems] == [(kind, f"{path}, line 3")]
    assert found.problems[0][2].startswith(what)
    with pytest.raises(InputError) as raised:
        read(JsonDocuments((str(path),), TextColumns(("text",), "label", "weight")))
    assert str(raised.value).startswith(f"{path}, line 3: {what}")
    assert 'on_error="skip" (--on-error skip)' in str(raised.value)


def test_the_field_of_the_text_must_be_said(tmp_path):
    with pytest.raises(InputError, match=r"mails.jsonl: say which fields hold the texts, such as text_column="):
        JsonDocuments((str(tmp_path / "mails.jsonl"),), TextColumns())
