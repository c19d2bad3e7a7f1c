from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nfs_dask.documents import csv_rows
from nfs_dask.documents import lines as cutting
from nfs_dask.documents.csv_rows import CsvDocuments
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.locations import open_tables
from nfs_dask.documents.open_documents import is_opened, open_documents
from nfs_dask.errors import InputError
from tests.helpers.reading import COMPRESS, places, read, shrink

TEXT = TextColumns(("text",), on_error="skip")
LABELLED = TextColumns(("text",), "label", on_error="skip")


def rows_of(content):
    """Rows with the lines they begin at, and the lines of those that cannot be parsed, as csv.reader alone has them."""
    reader = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    rows, broken = [], []
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return rows, broken
        except csv.Error:
            broken.append(line)
            continue
        if row:
            rows.append((line, row))


def read_cut(path, columns, piece):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, piece)
        source = CsvDocuments((str(path),), columns)
        return source, read(source)


soup = st.lists(st.sampled_from(["a", "b,", ",", '"', '""', "\n", "\r\n", "\r", "\u4e2d", '"x"', "\n1,", "\0"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(soup.map("".join), st.integers(3, 40), st.sampled_from(["", "\ufeff"]))
@example('1,"a""\n,"\n2,b"c\n"3""", "x"\n4,"d"\n', 3, "")
@example('"1"x,"\n2,b\n"3,c\n', 3, "")
@example("\r\r1,a\r\n2,b\r3,c\n", 3, "")
def test_every_cut_gives_what_csv_reads_whatever_the_content(tmp_path, body, piece, bom):
    content = ("label,text\n" + body).encode()
    path = tmp_path / "soup.csv"
    path.write_bytes(bom.encode() + content)
    _, found = read_cut(path, LABELLED, piece)
    rows, broken = rows_of(content)
    good = [row for _, row in rows[1:] if len(row) == 2 and row[0]]
    assert list(zip(found.labels, found.texts, strict=True)) == [tuple(row) for row in good]
    bad = [(line, "broken") for line in broken]
    bad += [(line, "broken") for line, row in rows[1:] if len(row) != 2]
    bad += [(line, "label") for line, row in rows[1:] if len(row) == 2 and not row[0]]
    assert [(line, kind) for kind, line in places(found)] == sorted(bad)
    assert found.empty == sum(not text.strip() for text in found.texts)


fields = st.text(st.sampled_from('ab ,"\n\r\t\u00e9\U0001f600'), min_size=1, max_size=10).filter(str.strip)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(fields, fields), min_size=1), st.integers(1, 60), st.sampled_from(["\n", "\r\n"]))
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_every_cut_gives_what_csv_writes(tmp_path, suffix, rows, piece, end):
    path = tmp_path / f"rows{suffix}"
    with path.open("w", newline="", encoding="utf-8") as file:
        # The writer puts a field with a carriage return in quotes only if its own lines end in one.
        quoting = csv.QUOTE_ALL if end == "\n" else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator=end, quoting=quoting)
        writer.writerows([["text", "label"], *rows])
    source, found = read_cut(path, LABELLED, piece)
    assert list(zip(found.texts, found.labels, strict=True)) == rows
    assert found.problems == []
    assert 1 <= source.n_pieces <= 1 + len(rows)


@pytest.mark.parametrize("name", ["mails.csv", "mails.tab", "mails.csv.gz", "mails.tsv.bz2", "mails.csv.xz"])
def test_it_reads_what_pandas_writes(tmp_path, monkeypatch, name):
    frame = pd.DataFrame({
        "id": range(60),
        "subject": [f'"{i}", é\r\n\t' if i % 4 else None for i in range(60)],
        "body": ["long, " * i + "." for i in range(60)],
        "stars": [i % 5 for i in range(60)],
        "weight": [i / 4 for i in range(60)],
    })  # fmt: skip
    path = tmp_path / name
    frame.to_csv(path, index=False, sep="\t" if ".t" in name else ",", compression="infer")
    shrink(monkeypatch, 1500, batch=300)
    source = open_tables((str(path),), TextColumns(("subject", "body"), "stars", "weight"))
    assert (source.n_pieces > 3) == name.endswith(("csv", "tab"))
    found = read(source)
    assert found.n_batches > 6
    assert found.texts == list(zip(frame.subject.fillna(""), frame.body, strict=True))
    assert found.labels == frame.stars.astype(str).tolist()
    assert found.weights == frame.weight.tolist()


def test_a_file_on_s3_is_cut_too(s3, monkeypatch):
    import fsspec

    rows = [(f'mail {i}, "quoted"\nand two lines', str(i % 2)) for i in range(300)]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("text", "label"), *rows])
    for name, content in (("a.csv", text.getvalue().encode()), ("b.csv.gz", COMPRESS[".gz"](text.getvalue().encode()))):
        with fsspec.open(f"{s3}/{name}", "wb") as file:
            file.write(content)
    shrink(monkeypatch, 2000)
    source = open_tables((f"{s3}/a.csv", f"{s3}/b.csv.gz"), TextColumns(("text",), "label"))
    assert source.n_pieces > 5
    found = read(source)
    assert list(zip(found.texts, found.labels, strict=True)) == rows * 2
    with pytest.raises(InputError, match=r"s3://.*/a.csv has the columns 'text', 'label'; label_column='y' is not"):
        open_tables((f"{s3}/a.csv",), TextColumns(("text",), "y"))


BAD = [
    (b"fine", "broken", "the row has 1 fields, the header has 3"),
    (b"fine,a,1,", "broken", "the row has 4 fields, the header has 3"),
    (b'"fine"x,a,1', "broken", "the row is not CSV (',' expected after '\"')"),
    (b"fine,,1", "label", "the document has no label"),
    (b"fine,a,", "weight", "the document has the weight ''; weights are finite"),
    (b"fine,a,-2", "weight", "the document has the weight -2; weights are finite"),
    (b"fine,a,nan", "weight", "the document has the weight nan; weights are finite"),
    (b"fine,a,1e999", "weight", "the document has the weight inf; weights are finite"),
    (b"fine,a,one", "weight", "the document has the weight 'one'; weights are finite"),
    (b"caf\xe9 au lait,a,1", "undecodable", "the byte 0xe9 at position 3 is not valid UTF-8"),
    (b"fine,caf\xe9,1", "undecodable", "U+DCE9, half of a character"),
]


@pytest.mark.parametrize(("row", "kind", "what"), BAD)
@pytest.mark.parametrize("n_before", [0, 40])
def test_each_kind_of_bad_row(tmp_path, row, kind, what, n_before):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"text,label,weight\n" + b'"two\nlines",a,1\n' * n_before + b"\n" + row + b"\nfine,b,2\n")
    columns = TextColumns(("text",), "label", "weight", on_error="skip")
    _, found = read_cut(path, columns, 100)
    assert found.texts == ["two\nlines"] * n_before + ["fine"]
    assert [problem[:2] for problem in found.problems] == [(kind, f"{path}, line {2 * n_before + 3}")]
    assert found.problems[0][2].startswith(what)
    with pytest.raises(InputError) as raised:
        read_cut(path, TextColumns(("text",), "label", "weight"), 100)
    assert str(raised.value).startswith(f"{path}, line {2 * n_before + 3}: {what}")
    assert 'on_error="skip" (--on-error skip)' in str(raised.value)


def test_a_quote_that_is_never_closed_is_broken(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('text\nfine\n"never\nclosed\n')
    _, found = read_cut(path, TEXT, 8)
    assert found.texts == ["fine"]
    assert places(found) == [("broken", 3)]


def test_long_fields_are_read_and_endless_ones_are_not(tmp_path, monkeypatch):
    path = tmp_path / "long.csv"
    path.write_text("text\n" + "word " * 100_000 + "\n")  # the csv module alone refuses 131,072 characters
    assert len(read(CsvDocuments((str(path),), TEXT)).texts[0]) == 500_000
    limit = csv.field_size_limit(1000)
    try:
        monkeypatch.setattr(csv_rows, "LONGEST_LINE", 1000)
        path.write_text('text\n"' + "word\n" * 1000)
        found = read(CsvDocuments((str(path),), TEXT))
        assert found.problems[0] == (
            "broken",
            f"{path}, line 2",
            "the row is not CSV (field larger than field limit (1000))",
        )
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_encodings(tmp_path, monkeypatch, encoding):
    texts = [f"{i} caf\xe9 \u2019" for i in range(50)]
    path = tmp_path / "text.csv"
    path.write_bytes(("r\xe9sum\xe9\n" + "\n".join(texts)).encode(encoding))
    shrink(monkeypatch, 200)
    source = CsvDocuments((str(path),), TextColumns(("r\xe9sum\xe9",), encoding=encoding))
    assert (source.n_pieces > 1) == (encoding == "cp1252")
    assert read(source).texts == texts
    path.write_bytes(path.read_bytes().replace("\xe9 ".encode("cp1252"), b"\x81 ", 1))
    if encoding == "cp1252":
        with pytest.raises(InputError, match="text.csv, line 2: the byte 0x81 is not valid cp1252"):
            read(source)


def test_each_file_has_a_header_of_its_own(tmp_path, monkeypatch):
    contents = ["text,label\none,a\n", "label,other,text\nb,x,two\n", "label\nc\n"]
    paths = []
    for i, content in enumerate(contents):
        paths.append(str(tmp_path / f"{i}.csv"))
        (tmp_path / f"{i}.csv").write_text(content)
    found = read(CsvDocuments(tuple(paths[:2]), LABELLED))
    assert (found.texts, found.labels) == (["one", "two"], ["a", "b"])
    with pytest.raises(InputError, match="2.csv has the columns 'label'; text_column='text' is not among them"):
        read(CsvDocuments(tuple(paths), LABELLED))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; its first row has to name the columns"),
        ("\n\n", "is empty; its first row has to name the columns"),
        ('"text"s\n', "line 1: the header row is not CSV"),
        ("body\tlabel\n", r"looks tab-separated: it begins with 'body\\tlabel'; add delimiter="),
    ],
)
def test_headers_that_cannot_be_used_are_refused_at_once(tmp_path, content, message):
    path = tmp_path / "head.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=f"head.csv,? ?{message}"):
        CsvDocuments((str(path),), TEXT)


def test_a_header_without_rows_has_no_documents(tmp_path):
    path = tmp_path / "head.csv"
    path.write_text("text,label")
    assert read(CsvDocuments((str(path),), LABELLED)).seen == 0


def test_only_the_first_header_is_read_to_open_many_small_files(tmp_path, monkeypatch):
    paths = []
    for i in range(20):
        paths.append(str(tmp_path / f"{i}.csv"))
        (tmp_path / f"{i}.csv").write_text(f"text\nof {i}\n")
    opened = []
    real = cutting.open_content
    monkeypatch.setattr(cutting, "open_content", lambda path: opened.append(path) or real(path))
    source = CsvDocuments(tuple(paths), TEXT)
    assert opened == paths[:1]
    assert source.n_pieces == 1
    assert read(source).texts == [f"of {i}" for i in range(20)]


def test_a_large_file_is_opened_by_its_head_and_read_by_tasks(tmp_path, monkeypatch):
    text = io.StringIO(newline="")
    rows = [(f'mail {i}, "quoted"\nand\r\ntwo' if i % 3 else f"plain {i}", str(i % 2)) for i in range(300)]
    csv.writer(text).writerows([("text", "label"), *rows])
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(text.getvalue(), newline="")
    paths = (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), str(tmp_path / "a.csv"))
    shrink(monkeypatch, 500, batch=130)
    known, tasks = CsvDocuments(paths, LABELLED), []
    assert known.n_pieces > 30
    source = CsvDocuments(paths, LABELLED)
    with monkeypatch.context() as patch:
        patch.setattr(csv_rows, "scan", None)
        assert is_opened(source) and open_documents(source) is source and source.nbytes == known.nbytes

    def backwards(function, items):
        tasks.extend(items)
        return [function(item) for item in reversed(items)][::-1]

    source.look(backwards)
    assert source.pieces == known.pieces and len(tasks) >= known.n_pieces
    source.look(None)  # once is enough
    found = read(source)
    assert list(zip(found.texts, found.labels, strict=True)) == rows * 3
