from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from nfs_dask.documents import parquet
from nfs_dask.documents.arrow import texts_of, weights_of
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.locations import open_tables
from nfs_dask.documents.parquet import ParquetDocuments
from nfs_dask.errors import InputError
from nfs_dask.units import MiB
from tests.helpers.reading import places, read, shrink

SKIP = TextColumns(("text",), "label", on_error="skip")
texts = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=6))
LAYOUTS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "dictionary of bytes": pa.dictionary(pa.int32(), pa.binary()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.lists(texts, max_size=8), st.integers(0, 3))
def test_arrays_of_every_layout_have_their_texts(layout, values, start):
    encoded = [None if value is None else value.encode() for value in values]
    kind = LAYOUTS[layout]
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    array = pa.array(encoded, pa.binary()).cast(plain)
    array = (array.dictionary_encode().cast(kind) if plain != kind else array)[start:]
    strings, present = texts_of(array, "utf-8")
    found = [strings[i] for i in range(len(strings))]
    there = np.ones(len(array), bool) if present is None else present
    assert [text if keep else None for text, keep in zip(found, there, strict=True)] == encoded[start:]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts, st.sampled_from([1, 2, None])), max_size=12), st.integers(1, 5), st.data())
def test_every_cut_gives_what_pandas_reads(tmp_path, rows, group, data):
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame(rows, columns=["subject", "body", "label"]).astype({"label": "Int8"})
    schema = pa.schema([("subject", pa.string()), ("body", pa.large_string()), ("label", pa.int8())])
    frame.to_parquet(path, row_group_size=group, schema=schema)
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, data.draw(st.integers(1, 400)), batch=data.draw(st.integers(1, 30)))
        source = ParquetDocuments((str(path),), TextColumns(("subject", "body"), "label", on_error="skip"))
        found = read(source)
    kinds = ["missing" if row[:2] == (None, None) else "label" if row[2] is None else None for row in rows]
    good = [row for row, kind in zip(rows, kinds, strict=True) if kind is None]
    assert found.texts == [(subject or "", body or "") for subject, body, _ in good]
    assert found.labels == [label for _, _, label in good]
    assert found.empty == sum(not ((subject or "") + (body or "")).strip() for subject, body, _ in good)
    assert places(found) == [(kind, i) for i, kind in enumerate(kinds) if kind]
    assert all(where.startswith(f"{path}, row ") for _, where, _ in found.problems)


VIEWS = pa.string_view() if Version(pa.__version__) >= Version("21") else pa.string()  # which Parquet takes
LABELS = [
    (pa.array(["a", None, "", "\u4e2d"]), ["a", "\u4e2d"], str),
    (pa.array(["a", None, "", "b"]).dictionary_encode(), ["a", "b"], str),
    (pa.array(["a", None, "", "b"], pa.large_string()), ["a", "b"], str),
    (pa.array(["a", None, "", "b"], VIEWS), ["a", "b"], str),
    (pa.array([2**62 + 1, None, None, -3]), [2**62 + 1, -3], np.int64),
    (pa.array([200, None, None, 3], pa.uint8()), [200, 3], np.uint8),
    (pa.array([5, None, None, 3], pa.int16()).dictionary_encode(), [5, 3], np.int16),
    (pa.array([True, None, None, False]), [True, False], np.bool_),
    (pa.array([1.0, None, np.nan, 2.0], pa.float32()), [1.0, 2.0], np.float32),
]


@pytest.mark.parametrize(("column", "expected", "kind"), LABELS, ids=lambda value: str(getattr(value, "type", "")))
def test_labels_are_the_values_of_their_column(tmp_path, column, expected, kind):
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"text": ["one", "two", "three", "four"], "label": column}), path)
    found = read(ParquetDocuments((str(path),), SKIP))
    assert found.labels == expected
    assert {type(label) for label in found.labels} == {kind}
    assert places(found) == [("label", 1), ("label", 2)]
    with pytest.raises(InputError, match=r"labels.parquet, row 1: the document has no label; .*on_error=\"skip\""):
        read(ParquetDocuments((str(path),), TextColumns(("text",), "label")))


@pytest.mark.parametrize("kind", [pa.int32(), pa.float32(), pa.float64(), pa.decimal128(7, 2)])
def test_weights(tmp_path, kind):
    path = tmp_path / "weights.parquet"
    weights = pa.array([1.0, 0.0, -1.0, None, 3.0]).cast(kind)
    pq.write_table(pa.table({"text": list("abcde"), "w": weights}), path)
    found = read(ParquetDocuments((str(path),), TextColumns(("text",), weight="w", on_error="skip")))
    assert found.weights == [1.0, 0.0, 3.0]
    assert places(found) == [("weight", 2), ("weight", 3)]
    assert [what.partition(";")[0] for _, _, what in found.problems] == [
        "the document has the weight -1",
        "the document has no weight",
    ]
    assert np.isnan(weights_of(pa.array([None, np.nan])).values).all()


def test_bytes_that_are_not_text_are_named(tmp_path):
    path = tmp_path / "bytes.parquet"
    pq.write_table(pa.table({"text": pa.array([b"fine", b"caf\xe9", b"fine"])}), path)
    columns = TextColumns(("text",), on_error="skip")
    assert places(read(ParquetDocuments((str(path),), columns))) == [("undecodable", 1)]
    with pytest.raises(InputError, match="bytes.parquet, row 1: the byte 0xe9 at position 3 is not valid UTF-8"):
        read(ParquetDocuments((str(path),), TextColumns(("text",))))
    latin = TextColumns(("text",), encoding="latin-1")
    assert read(ParquetDocuments((str(path),), latin)).texts == ["fine", "caf\xe9", "fine"]


def test_rows_are_named_by_their_place_in_the_file(tmp_path, monkeypatch):
    path = tmp_path / "gaps.parquet"
    values = [None if i % 7 == 3 else f"text {i}" for i in range(60)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=10)
    shrink(monkeypatch, 150, batch=30)
    source = ParquetDocuments((str(path),), TextColumns(("text",), on_error="skip"))
    assert source.n_pieces == 6
    assert places(read(source)) == [("missing", i) for i in range(3, 60, 7)]


@pytest.mark.parametrize("large", [(), (2, 9)], ids=["all small", "some large"])
def test_small_batches_of_arrow_are_put_together(tmp_path, monkeypatch, large):
    path = tmp_path / "many.parquet"
    monkeypatch.setattr(parquet, "MOST_ROWS", 10)
    monkeypatch.setattr(parquet, "JOINED_NBYTES", 4000)
    texts = [None if i == 77 else f"text {i} " * (400 if i // 10 in large else 1) for i in range(120)]
    labels = pa.array([f"label {i // 10}" for i in range(120)]).dictionary_encode()
    pq.write_table(pa.table({"text": texts, "label": labels}), path, row_group_size=30)
    source = ParquetDocuments((str(path),), TextColumns(("text",), label="label", on_error="skip"))
    batches = list(source.batches(0))
    assert large or len(batches) <= 6
    assert [text for batch in batches for text in batch.texts[0].to_list()] == [text for text in texts if text]
    assert [label for batch in batches for label in batch.labels] == [f"label {i // 10}" for i in range(120) if i != 77]
    assert [problem.where for batch in batches for problem in batch.problems] == [f"{path}, row 77"]


def test_row_groups_share_pieces_and_small_files_too(tmp_path, monkeypatch):
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.pq"))
        pq.write_table(pa.table({"text": [f"{i} {j} " + "x" * 1000 for j in range(40 if i == 1 else 1)]}), paths[-1],
                       row_group_size=10, compression="none", use_dictionary=False)  # fmt: skip
    monkeypatch.setattr(parquet, "PIECE_NBYTES", 25_000)
    opened = []
    real = parquet.open_binary
    monkeypatch.setattr(parquet, "open_binary", lambda path: opened.append(path) or real(path))
    source = open_tables(paths, TextColumns(("text",)))
    assert opened == [paths[1], paths[0]]  # the first for its schema, the large one for its row groups
    expected = [f"{i} {j} " + "x" * 1000 for i in range(4) for j in range(40 if i == 1 else 1)]
    assert read(source).texts == expected
    groups = [(part.path[-4:], part.start, part.stop) for piece in source.pieces for part in piece]
    assert groups == [("0.pq", 0, None), ("1.pq", 0, 2), ("1.pq", 2, 4), ("2.pq", 0, None), ("3.pq", 0, None)]
    assert source.n_pieces == 1  # far less than a piece together


def test_a_file_without_rows_or_groups_has_no_documents(tmp_path):
    for rows in (pa.table({"text": pa.array([], pa.string())}), pa.table({"text": ["a"]})[:0]):
        pq.write_table(rows, tmp_path / "none.parquet")
        assert read(ParquetDocuments((str(tmp_path / "none.parquet"),), TextColumns(("text",)))).seen == 0
    pq.ParquetWriter(tmp_path / "groups.parquet", pa.schema([("text", pa.string())])).close()
    assert read(ParquetDocuments((str(tmp_path / "groups.parquet"),), TextColumns(("text",)))).seen == 0


def test_only_a_little_of_a_file_is_in_memory(tmp_path):
    path = str(tmp_path / "large.parquet")
    generator = np.random.default_rng(0)
    table = pa.table({"text": [generator.bytes(4000).hex() for _ in range(6000)], "rest": np.arange(6000)})
    pq.write_table(table, path)  # 48 MB of text in one row group
    del table
    source = ParquetDocuments((path,), TextColumns(("text",)))
    pool = pa.default_memory_pool()
    before, most, n = pool.bytes_allocated(), 0, 0
    for batch in source.batches(0):
        most = max(most, pool.bytes_allocated() - before)
        assert batch.texts[0].nbytes <= 5 * MiB
        n += batch.n_documents
    del batch
    assert n == 6000
    assert most < 24 * MiB  # two batches, and what Arrow needs to make one
    assert pool.bytes_allocated() == before


def test_texts_that_repeat_come_in_batches_of_the_usual_size(tmp_path):
    path = str(tmp_path / "repeated.parquet")
    pq.write_table(pa.table({"text": pa.array(["spam " * 1000] * 5000)}), path)  # some kilobytes for 25 MB
    sizes = [batch.texts[0].nbytes for batch in ParquetDocuments((path,), TextColumns(("text",))).batches(0)]
    assert max(sizes) < 5 * MiB
    assert len(sizes) >= 5


READ = """
import sys
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.parquet import ParquetDocuments
next(ParquetDocuments((sys.argv[1],), TextColumns(("text",), "label")).batches(0))
print("pyarrow" in sys.modules, "pandas" in sys.modules, "sklearn" in sys.modules)
"""


def test_neither_pandas_nor_sklearn_is_loaded(tmp_path):
    """What is loaded takes memory of workers, as `tests/ingestion/test_rehearsal.py` measures."""
    path = tmp_path / "small.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "label": pa.array(["x", "y"]).dictionary_encode()}), path)
    run = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, check=True, text=True)
    assert run.stdout.split() == ["True", "False", "False"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (TextColumns(), r"has the columns 'text', 'label', 'day', 'tags'; say which of them hold the texts"),
        (TextColumns(("body",)), "text_column='body' is not among them"),
        (TextColumns(("label",)), "text_column='label' holds int64; give a column of strings or bytes"),
        (TextColumns(("text",), "day"), r"label_column='day' holds date32\[day\]; give a column of strings, whole"),
        (TextColumns(("text",), "tags"), r"label_column='tags' holds list<element: string>; give a column of strings"),
        (TextColumns(("text",), None, "text"), "weight_column='text' holds string; give a column of numbers"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_at_once(tmp_path, columns, message):
    days, tags = pa.array([0], pa.date32()), pa.array([["x"]], pa.list_(pa.string()))
    table = pa.table({"text": ["a"], "label": [1], "day": days, "tags": tags})
    pq.write_table(table, tmp_path / "some.parquet")
    with pytest.raises(InputError, match=rf"some.parquet:? .*{message}"):
        ParquetDocuments((str(tmp_path / "some.parquet"),), columns)


def test_other_files_than_the_first_are_checked_when_read(tmp_path):
    paths = [str(tmp_path / f"{i}.parquet") for i in range(2)]
    pq.write_table(pa.table({"text": ["a"], "label": ["x"]}), paths[0])
    pq.write_table(pa.table({"text": ["a"], "y": ["x"]}), paths[1])
    with pytest.raises(InputError, match="1.parquet has the columns 'text', 'y'; label_column='label' is not among"):
        read(ParquetDocuments(tuple(paths), SKIP))


def test_files_that_are_damaged_or_something_else_are_named(tmp_path):
    path = tmp_path / "mails.parquet"
    pq.write_table(pa.table({"text": [f"some text {i}" for i in range(5000)]}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    for damaged in (b"text,label\n" * 10, b"", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"mails.parquet cannot be read as Parquet \(.*\); it is another kind"):
            ParquetDocuments((str(path),), TextColumns(("text",)))
    content[2000:2200] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"mails.parquet cannot be read as Parquet \(.*\); it is another kind"):
        read(ParquetDocuments((str(path),), TextColumns(("text",), on_error="skip")))
    with pytest.raises(InputError, match=r"mails.parquet.gz is compressed as a whole; Parquet files are so inside"):
        open_tables((f"{path}.gz",), TextColumns(("text",)))


def test_a_file_on_s3(s3):
    import fsspec

    with fsspec.open(f"{s3}/mails.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["one", "two"], "label": ["a", "b"]}), file)
    found = read(open_tables((f"{s3}/mails.parquet",), SKIP))
    assert (found.texts, found.labels) == (["one", "two"], ["a", "b"])


def test_memory_comes_from_the_system_and_what_others_take_it_from_is_left_alone(tmp_path):
    """Of files that are opened by several threads at once, too, and of those that cannot be opened."""
    good, damaged = tmp_path / "good.parquet", tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"text": ["some words"] * 9000}), good)
    damaged.write_bytes(b"PAR1 and no more of it PAR1")
    default, system = pa.proxy_memory_pool(pa.default_memory_pool()), pa.system_memory_pool()
    before = pa.default_memory_pool()
    pa.set_memory_pool(default)
    try:

        def read_some(path):
            try:
                return next(ParquetDocuments((str(path),), TextColumns(("text",))).batches(0))
            except InputError:
                return None

        held = system.bytes_allocated()
        with ThreadPoolExecutor(8) as threads:
            batches = list(filter(None, threads.map(read_some, [good, damaged] * 20)))
        nbytes = batches[0].texts[0].nbytes
        assert len(batches) == 20 and system.bytes_allocated() - held > 20 * nbytes / 2
        assert default.max_memory() < nbytes / 10
        assert pa.array(["x" * nbytes]).nbytes < default.max_memory()
    finally:
        pa.set_memory_pool(before)
