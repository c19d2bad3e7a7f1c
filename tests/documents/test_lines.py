from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nfs_dask.documents import lines
from nfs_dask.documents import lines as cutting
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.lines import LineDocuments, split_lines
from nfs_dask.documents.locations import format_of, open_tables
from nfs_dask.errors import InputError, StoreError
from tests.helpers.reading import COMPRESS, places, read, shrink

SKIP = TextColumns(on_error="skip")
POEM = ["Tyger", "", "burning\u0085bright", "in\u2028the\x0bforests", " ", "of the\rnight", "", "was\r"]


def truth(content):
    """Lines as Python's files in binary mode have them."""
    return [line.removesuffix(b"\n") for line in io.BytesIO(content)], content.endswith(b"\n")


def lines_of(content):
    found, ended = truth(content)
    last = len(found) - 1
    return [line.removesuffix(b"\r") if ended or i < last else line for i, line in enumerate(found)]


@given(st.binary(max_size=30).filter(bool) | st.lists(st.sampled_from([b"a", b"\r", b"\n", b"b"])).map(b"".join))
def test_lines_are_split_as_in_python(content):
    if content:
        found = split_lines(content)
        assert [found[i] for i in range(len(found))] == lines_of(content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["a", "bc", "\r", "\n", " ", "\u4e2d"]), max_size=30), st.integers(1, 40))
def test_every_cut_gives_the_same_documents_and_problems(tmp_path, parts, piece):
    content = "".join(parts).encode()
    path = tmp_path / "cut.txt"
    path.write_bytes(content)
    expected = [line.decode() for line in lines_of(content)]
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, piece)
        source = LineDocuments((str(path),), SKIP)
        found = read(source)
    assert source.n_pieces == max(1, -(-len(content) // piece))
    assert found.texts == expected and found.problems == []
    assert found.seen == len(expected) and found.empty == sum(not line.strip() for line in expected)


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_compressed_files_have_the_same_documents(tmp_path, monkeypatch, suffix):
    content = "\r\n".join(POEM * 50).encode()
    path = tmp_path / f"poem.TXT{suffix}"
    path.write_bytes(COMPRESS[suffix](content) if suffix else content)
    shrink(monkeypatch, 300, batch=100)
    source = open_tables((str(path),), SKIP)
    assert (source.n_pieces > 5) == (suffix == "")  # a compressed file cannot be entered in the middle
    assert (source.import_nbytes > 0) == (suffix == ".zst")
    found = read(source)
    assert found.n_batches > 5
    assert found.texts == POEM * 50 and found.problems == []
    assert found.empty == sum(not line.strip() for line in POEM * 50) > 0


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_damaged_stream_is_named(tmp_path, suffix):
    content = COMPRESS[suffix](np.random.default_rng(0).bytes(50_000).hex("\n", 20).encode())
    for name, damaged in (("short", content[: len(content) // 3]), ("other", b"text that is not compressed\n" * 9)):
        path = tmp_path / f"{name}.txt{suffix}"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"{name}.txt{suffix} cannot be read to its end \(.*\); it is damaged"):
            read(LineDocuments((str(path),), SKIP))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8", "utf-8-sig", "shift_jis"])
def test_encodings(tmp_path, monkeypatch, encoding):
    texts = [f"{number} \u30ab\u30bf".replace("\u30ab\u30bf", "\xe9t\xe9" if encoding == "cp1252" else "\u30ab\u30bf")
             for number in range(100)]  # fmt: skip
    path = tmp_path / "text.txt"
    path.write_bytes("\n".join(texts).encode(encoding))
    shrink(monkeypatch, 200, batch=31)
    source = LineDocuments((str(path),), TextColumns(encoding=encoding))
    assert read(source).texts == texts
    assert (source.n_pieces == 1) == encoding.startswith("utf-16")


def test_a_mark_of_byte_order_is_no_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode())
    assert read(LineDocuments((str(path),), TextColumns())).texts == ["one", "\ufefftwo"]


def test_undecodable_lines_are_named_in_every_piece(tmp_path, monkeypatch):
    content = [b"line %d" % i for i in range(40)]
    for i in (3, 17, 38):
        content[i] = b"caf\xe9 %d" % i
    path = tmp_path / "text.txt"
    path.write_bytes(b"\n".join(content))
    shrink(monkeypatch, 64)
    source = LineDocuments((str(path),), SKIP)
    assert source.n_pieces > 4
    found = read(source)
    assert places(found) == [("undecodable", 4), ("undecodable", 18), ("undecodable", 39)]
    assert found.texts == [f"line {i}" for i in range(40) if i not in (3, 17, 38)]
    failing = LineDocuments((str(path),), TextColumns())
    list(failing.batches(1))
    with pytest.raises(InputError, match=r"text.txt, line 4: the byte 0xe9 at position 3 .* on_error=\"skip\""):
        list(failing.batches(0))
    last = failing.n_pieces - 1
    with pytest.raises(InputError, match=r"text.txt, line 39: the byte 0xe9"):
        list(failing.batches(last))
    assert len(read(LineDocuments((str(path),), TextColumns(encoding="latin-1"))).texts) == 40


def test_lines_far_into_a_file_are_named_by_their_byte(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_bytes(b"word\n" * 30 + b"\xff\nword\n\xff\n")
    shrink(monkeypatch, 80)
    monkeypatch.setattr(cutting, "COUNTED_NBYTES", 50)
    found = read(LineDocuments((str(path),), SKIP))
    assert [where.removeprefix(f"{path}, ") for _, where, _ in found.problems] == [
        "line 15 of those that begin at byte 79 or later",
        "line 17 of those that begin at byte 79 or later",
    ]
    with pytest.raises(InputError, match="line 31: the byte 0xff"):
        read(LineDocuments((str(path),), TextColumns()))


def test_many_small_files_share_pieces_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(cutting, "PIECE_NBYTES", 1000)
    monkeypatch.setattr(cutting, "FILE_NBYTES", 100)
    paths = []
    for i in range(35):
        paths.append(str(tmp_path / f"{i}.txt"))
        (tmp_path / f"{i}.txt").write_text(f"first of {i}\nsecond of {i}\n" if i else "x" * 2500)
    source = LineDocuments(tuple(paths), TextColumns())
    assert source.n_pieces == 3 + 4
    assert source.nbytes == sum(len(f"first of {i}\nsecond of {i}\n") for i in range(1, 35)) + 2500
    assert read(source).texts == ["x" * 2500] + [f"{rank} of {i}" for i in range(1, 35) for rank in ("first", "second")]


def test_batches_are_bounded_in_documents_too(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BATCH_DOCUMENTS", 7)
    path = tmp_path / "short.txt"
    path.write_text("".join(f"{i}\n" for i in range(30)))
    sizes = [batch.seen for batch in LineDocuments((str(path),), TextColumns()).batches(0)]
    assert sizes == [7, 7, 7, 7, 2]


def test_empty_files_have_no_documents(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text("")
    paths[1].write_text("one\n")
    assert read(LineDocuments(tuple(map(str, paths)), TextColumns())).texts == ["one"]


def test_a_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    shrink(monkeypatch, 1000, batch=64)
    monkeypatch.setattr(cutting, "LONGEST_LINE", 500)
    path = tmp_path / "zeros.txt"
    path.write_bytes(bytes(3000))
    with pytest.raises(InputError, match="zeros.txt has a line of more than 500 B; is it a file of lines"):
        read(LineDocuments((str(path),), SKIP))


def test_a_file_that_became_shorter_is_noticed(tmp_path, monkeypatch):
    shrink(monkeypatch, 100)
    path = tmp_path / "text.txt"
    path.write_text("word\n" * 100)
    source = LineDocuments((str(path),), TextColumns())
    path.write_text("word\n" * 50)
    with pytest.raises(InputError, match="has become shorter since it was opened"):
        read(source)


def test_the_fingerprint_tells_content_and_settings(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\n")
    first = LineDocuments((str(path),), TextColumns()).fingerprint
    assert first == LineDocuments((str(path),), TextColumns()).fingerprint
    assert first != LineDocuments((str(path),), TextColumns(encoding="latin-1")).fingerprint
    path.write_text("other\n")
    assert first != LineDocuments((str(path),), TextColumns()).fingerprint


@pytest.mark.parametrize("columns", [TextColumns(("text",)), TextColumns(label="y"), TextColumns(weight="w")])
def test_lines_have_no_columns(tmp_path, columns):
    with pytest.raises(InputError, match="lines of text have no columns"):
        LineDocuments((str(tmp_path / "text.txt"),), columns)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(StoreError, match="none.txt is missing"):
        LineDocuments((str(tmp_path / "none.txt"),), TextColumns())
    for paths, message in (
        (["a.docx"], r"a.docx is none of the files that are read as documents; their names end in .parquet, .*\.zst"),
        (["a.txt", "b.csv", "c.csv"], "a.txt and b.csv are files of different formats"),
        ([], "no files were given"),
    ):
        with pytest.raises(InputError, match=message):
            open_tables(paths, TextColumns())


def test_formats_are_told_by_the_ends_of_names():
    names = ["a.csv", "b.CSV.gz", "c.tsv.zst", "d.ndjson.xz", "e.json.bz2", "s3://b/f.parquet", "g", "h.gz", "csv"]
    assert [format_of(name) for name in names] == [
        ".csv", ".csv", ".tsv", ".ndjson", ".json", ".parquet", None, None, None,
    ]  # fmt: skip
