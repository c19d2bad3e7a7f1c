from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import with_seal
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.sources.source import Source
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store.header import Header, read_header
from nfs_dask.store.layout import OWN, Layout
from nfs_dask.store.shards import ShardReader, ShardWriter, write_numbers
from nfs_dask.store.writer import write_store

SMALL = Layout(chunk=32, shard=128, row_chunk=8, row_shard=32, block=64)
N_ROWS, N_FEATURES = 150, 30


def matrix(seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    return sparse.csr_matrix(
        (rng.integers(1, 9, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.15)).astype(dtype)
    )


def labels(seed=0):
    return np.random.default_rng(seed).choice(["ham", "eggs", "spam"], N_ROWS)


def read(source):
    blocks = list(source.blocks(0, source.n_blocks))
    assert [block.number for block in blocks] == list(range(source.n_blocks))
    for block in blocks:
        assert block.nbytes <= source.block_nbytes
        assert block.nnz <= source.block_entries
    shape = (source.n_rows, source.n_features)
    indptr = np.concatenate([[0], *[np.diff(block.indptr) for block in blocks]]).cumsum()
    parts = (np.concatenate([block.data for block in blocks]), np.concatenate([block.indices for block in blocks]))
    return sparse.csr_matrix((*parts, indptr), shape=shape), np.concatenate([block.codes for block in blocks])


def assert_same(got, expected):
    assert got.shape == expected.shape
    assert (got != expected).nnz == 0


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("ours") / "s"
    write_store(MatrixSource(matrix(), labels()), place, names=[f"w{i}" for i in range(N_FEATURES)], layout=SMALL)
    return place


@pytest.fixture
def ours(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "s"))


# Stores of ours


def test_it_is_a_source(ours):
    source = ZarrSource(ours)
    assert isinstance(source, Source)
    assert source.trusted
    assert not source.in_memory
    assert (source.n_rows, source.n_features, source.nnz, source.kind) == (N_ROWS, N_FEATURES, matrix().nnz, "count")
    X, codes = read(source)
    assert_same(X, matrix())
    assert source.classes[codes].tolist() == labels().tolist()


def test_any_range_of_blocks_is_read_alone(ours):
    source = ZarrSource(ours)
    for start, stop in [(0, 0), (0, 1), (2, 5), (source.n_blocks - 1, source.n_blocks)]:
        for block in source.blocks(start, stop):
            part = matrix()[block.first_row : block.first_row + block.n_rows]
            assert_same(sparse.csr_matrix((block.data, block.indices, block.indptr), part.shape), part)


def test_it_travels_light_and_carries_no_handle(ours):
    source = ZarrSource(ours)
    list(source.blocks(0, 2))
    size = len(pickle.dumps(source))
    assert size < 4000
    assert size == len(pickle.dumps(ZarrSource(ours)))
    assert_same(read(pickle.loads(pickle.dumps(source)))[0], matrix())


def test_a_worker_reads_a_store_of_ours_without_zarr_and_pandas(ours):
    code = f"""
import sys
from nfs_dask.sources.zarr import ZarrSource
source = ZarrSource({str(ours)!r})
assert sum(block.nnz for block in source.blocks(0, source.n_blocks)) == source.nnz
print(sorted({{"zarr", "pandas", "anndata", "dask", "distributed", "sklearn"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tasks_read_what_the_source_says_and_list_nothing(ours):
    source = ZarrSource(ours)
    (ours / "zarr.json").unlink()
    for path in ours.rglob("zarr.json"):
        path.unlink()
    assert_same(read(source)[0], matrix())


def test_a_block_reads_only_its_own_row_pointers(ours):
    source = ZarrSource(ours)
    blocks = list(source.blocks(0, source.n_blocks))
    for shard in (ours / "X/indptr/c").iterdir():
        if shard.name != "1":
            shard.unlink()
    own = [b for b in blocks if b.first_row >= SMALL.row_shard and b.first_row + b.n_rows < 2 * SMALL.row_shard]
    assert own
    for block in own:
        assert next(source.blocks(block.number, block.number + 1)).nnz == block.nnz


def test_labels_may_be_given_instead(ours):
    other = labels(1).astype(object)
    other[5] = None
    source = ZarrSource(ours, labels=list(other))
    codes = read(source)[1]
    assert codes[5] == -1
    assert np.append(source.classes.astype(object), None)[codes].tolist() == other.tolist()
    prints = {ZarrSource(ours, labels=y).fingerprint for y in (None, "label", labels(1), labels(2))}
    assert len(prints) == 3  # the column's name means the store's own labels
    with pytest.raises(InputError, match=f"{N_ROWS} rows .* 3 labels"):
        ZarrSource(ours, labels=["a", "b", "c"])
    with pytest.raises(InputError, match="no column 'genre' in obs; it has label"):
        ZarrSource(ours, labels="genre")


def test_entries_beyond_two_to_the_31_are_read(tmp_path):
    """Only the far end of the store is there: the shards before it would be gigabytes."""
    folder, far, rows = Folder.of(tmp_path / "s"), 2**31 + 5, 40
    X = matrix()[:rows]
    layout = Layout()
    small = tmp_path / "small"
    write_store(MatrixSource(X, labels()[:rows]), small)
    header = replace(
        read_header(Folder.of(small)),
        n_rows=rows + 1,
        nnz=far + X.nnz,
        index_type="int64",
        pointer_type="int64",
        n_blocks=2,
        block_entries=far,
        block_nbytes=far * 9,
        checks=None,
    )
    folder.write("zarr.json", header.root())
    write_numbers(folder, header.cuts, [np.array([0, 1])])
    write_numbers(folder, header.indptr, [np.append(0, far + X.indptr.astype(np.int64))])
    write_numbers(folder, header.codes, [np.zeros(rows + 1, np.int32)])
    for numbers, values in ((header.data, X.data), (header.indices, X.indices)):
        with ShardWriter(folder, numbers, far // layout.shard) as writer:
            writer.add(np.zeros(far % layout.shard, numbers.dtype))
            writer.add(values.astype(numbers.dtype))
    (block,) = ZarrSource(folder.location).blocks(1, 2)
    assert_same(sparse.csr_matrix((block.data, block.indices, block.indptr), X.shape), X)


# Damage and hostile metadata


@pytest.mark.parametrize("name", ["X/data/c/1", "X/indices/c/3", "X/indptr/c/2", "obs/label/codes/c/0"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_damage_is_reported_by_name(ours, name, harm):
    file = ours / name
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    if harm == "remove":
        file.unlink()
    else:
        file.write_bytes(content if harm == "flip" else content[: len(content) // 2])
    with pytest.raises(StoreError, match=f"{name} is {'missing' if harm == 'remove' else 'damaged'}"):
        read(ZarrSource(ours))


def change_header(store, **changes):
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"][OWN] = with_seal({**root["attributes"][OWN], **changes})
    (store / "zarr.json").write_text(json.dumps(root))


@pytest.mark.parametrize(
    "changes",
    [
        {"n_rows": -1},
        {"n_rows": 2**70},
        {"n_rows": "many"},
        {"nnz": None},
        {"n_features": 0},
        {"n_blocks": 10**9},
        {"kind": "magic"},
        {"value_type": "object"},
        {"value_type": "V16"},
        {"value_type": "uint8", "narrow_type": "int32"},
        {"narrow_type": "V16"},
        {"pointer_type": "int64", "index_type": "int16"},
        {"pointer_type": "float64"},
        {"editions": {"X/data": -1}},
        {"editions": {"X/data": "../../x"}},
        {"editions": [1]},
        {"nnz": 2**31},
        {"index_type": "int64"},
        {"weight_type": "U8"},
        {"label": "../../etc"},
        {"classes": [1, 2, 3]},
        {"class_type": "object"},
        {"layout": {"chunk": 2**40, "shard": 2**40, "row_chunk": 8, "row_shard": 8, "block": 8}},
        {"layout": {"chunk": 3, "shard": 128, "row_chunk": 8, "row_shard": 32, "block": 64}},
        {"layout": {"chunk": "pickle"}},
        {"layout": None},
        {"format": "1; import os"},
    ],
    ids=lambda changes: "-".join(f"{k}={v}"[:30] for k, v in changes.items()),
)
def test_a_header_that_cannot_be_is_refused(ours, changes):
    change_header(ours, **changes)
    with pytest.raises(StoreError, match="header|classes|claims|cannot be"):
        ZarrSource(ours)


def test_a_store_from_the_future_says_what_to_do(ours):
    change_header(ours, format=99)
    with pytest.raises(StoreError, match="format 99, and this nfs-dask knows formats up to 2; install"):
        ZarrSource(ours)


def rewrite(store, name, change):
    """Change an array as an attacker would: with checksums that fit."""
    folder = Folder.of(store)
    header = read_header(folder)
    numbers = next(n for n in header.numbers() if n.name == name)
    values = ShardReader(folder, numbers).read(0, numbers.length).copy()
    change(values)
    write_numbers(folder, numbers, [values])


@pytest.mark.parametrize(
    ("name", "position", "value", "message"),
    [
        ("X/indices", 7, N_FEATURES, "a column is not below"),
        ("X/indices", 7, -1, "a column is not below"),
        ("X/indptr", 9, 2**30, "X/indptr is damaged"),
        ("X/indptr", 9, -5, "X/indptr is damaged"),
        ("X/indptr", 9, 0, "X/indptr is damaged"),
        ("obs/label/codes", 3, 3, "a code that stands for no category"),
        ("obs/label/codes", 3, -2, "a code that stands for no category"),
        ("nfs_dask/cuts", 1, 2**40, "cuts is damaged"),
        ("nfs_dask/cuts", 1, -7, "cuts is damaged"),
    ],
)
def test_values_that_would_lead_outside_are_refused(ours, name, position, value, message):
    change_header(ours, checks=None)  # as in a store of before, whose chunks may hold anything
    rewrite(ours, name, lambda values: values.__setitem__(position, value))
    with pytest.raises(StoreError, match=message):
        read(ZarrSource(ours))


def test_a_block_larger_than_promised_is_refused_before_it_is_read(ours):
    change_header(ours, block_entries=3)
    with pytest.raises(StoreError, match="damaged"):
        read(ZarrSource(ours))


def test_what_is_not_a_store_is_told_apart(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/readme.txt").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/zarr.json").write_text("{")
    zarr.create_array(tmp_path / "array", shape=(3,), dtype="i4")
    zarr.create_group(tmp_path / "group")
    for name, message in {
        "nothing": "does not exist; give the folder",
        "empty": "is an empty folder",
        "other": "holds readme.txt but no zarr.json",
        "file": "is a file, not a Zarr store",
        "broken": "zarr.json is damaged: it is not a JSON object",
        "array": "is a Zarr array, not a group",
        "group": "a Zarr group with no X in it",
    }.items():
        with pytest.raises(StoreError, match=message):
            ZarrSource(tmp_path / name)


# AnnData's stores


def write_anndata(place, X, version=3, chunks=None, layers=None, **columns):
    names = [f"g{i}" for i in range(X.shape[1])]
    index = [f"cell{i}" for i in range(X.shape[0])]
    data = anndata.AnnData(X, obs=pd.DataFrame(columns, index=index), var=pd.DataFrame(index=names), layers=layers)
    with warnings.catch_warnings(action="ignore"), anndata.settings.override(zarr_write_format=version):
        data.write_zarr(place, chunks=chunks)
    return place


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("form", ["csr", "dense"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_anndata_stores_are_read_where_they_lie(tmp_path, version, form, dtype):
    X = matrix(dtype=dtype)
    write_anndata(tmp_path / "a", X if form == "csr" else X.toarray(), version, kind=pd.Categorical(labels()))
    source = pickle.loads(pickle.dumps(ZarrSource(tmp_path / "a", labels="kind")))
    assert not source.trusted
    got, codes = read(source)
    assert_same(got, X)
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert source.classes[codes].tolist() == labels().tolist()
    assert source.names(np.array([7, 0, 29])) == ["g7", "g0", "g29"]
    assert ZarrSource(tmp_path / "a").classes is None


@pytest.mark.parametrize("version", [2, 3])
def test_foreign_stores_come_in_bounded_blocks(tmp_path, version, monkeypatch):
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 1000)
    for form in (matrix(), matrix().toarray()):
        place = write_anndata(tmp_path / type(form).__name__, form, version)
        source = ZarrSource(place)
        assert source.n_blocks > 4
        assert_same(read(source)[0], matrix())


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(labels(), categories=["spam", "unused", "ham", "eggs"]),
        np.random.default_rng(0).integers(3, 6, N_ROWS),
        np.random.default_rng(0).random(N_ROWS) < 0.5,
        pd.Categorical(np.random.default_rng(0).integers(3, 6, N_ROWS)),
    ],
    ids=["categorical", "integers", "booleans", "integer categories"],
)
@pytest.mark.parametrize("version", [2, 3])
def test_labels_of_any_kind(tmp_path, column, version):
    source = ZarrSource(write_anndata(tmp_path / "a", matrix(), version, y=column), labels="y")
    assert source.classes.tolist() == sorted(source.classes.tolist())
    assert source.classes[read(source)[1]].tolist() == list(column)


@pytest.mark.parametrize("version", [2, 3])
def test_a_column_of_strings(tmp_path, version):
    place = write_anndata(tmp_path / "a", matrix(), version, y=np.arange(N_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.io.write_elem(
            zarr.open_group(place, mode="r+", use_consolidated=False)["obs"], "y", labels().astype(object)
        )
        zarr.consolidate_metadata(place)
    source = pickle.loads(pickle.dumps(ZarrSource(place, labels="y")))
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert source.classes[read(source)[1]].tolist() == labels().tolist()


def test_missing_labels_are_unlabelled_and_bad_columns_refused(tmp_path):
    column = pd.Categorical([None, *labels()[1:]])
    place = write_anndata(tmp_path / "a", matrix(), y=column, size=np.random.default_rng(0).random(N_ROWS))
    assert read(ZarrSource(place, labels="y"))[1][0] == -1
    with pytest.raises(InputError, match="continuous values"):
        ZarrSource(place, labels="size")
    with pytest.raises(InputError, match="no column 'z' in obs; it has y, size"):
        ZarrSource(place, labels="z")


def test_other_byte_orders_are_turned_around(tmp_path):
    place = write_anndata(tmp_path / "a", matrix(), 2)
    for part, dtype in (("data", ">f4"), ("indices", ">i4"), ("indptr", ">i8")):
        values = zarr.open_array(place / "X" / part, mode="r")[:]
        shutil.rmtree(place / "X" / part)
        turned = zarr.create_array(place / "X" / part, shape=values.shape, dtype=dtype, zarr_format=2)
        turned[:] = values
    source = ZarrSource(place)
    assert_same(read(source)[0], matrix())
    assert all(part.dtype.isnative for block in source.blocks(0, 1) for part in (block.indices, block.data))


def test_layers(tmp_path):
    place = write_anndata(tmp_path / "a", matrix(), layers={"counts": matrix(1)})
    assert_same(read(ZarrSource(place, layer="counts"))[0], matrix(1))
    assert ZarrSource(place).fingerprint != ZarrSource(place, layer="counts").fingerprint
    with pytest.raises(StoreError, match="no layer 'raw'"):
        ZarrSource(place, layer="raw")


@pytest.mark.parametrize("version", [2, 3])
def test_columns_first_is_refused_with_the_way_out(tmp_path, version):
    write_anndata(tmp_path / "a", matrix().tocsc(), version)
    with pytest.raises(StoreError, match=r"csc_matrix.*tocsr"):
        ZarrSource(tmp_path / "a")


def test_a_foreign_fingerprint_follows_the_objects(tmp_path):
    place = write_anndata(tmp_path / "a", matrix(), y=labels())
    first = ZarrSource(place, labels="y").fingerprint
    assert ZarrSource(place, labels="y").fingerprint == first
    file = next(path for path in (place / "X/data").rglob("*") if path.name == "0")
    file.write_bytes(file.read_bytes() + b"x")
    assert ZarrSource(place, labels="y").fingerprint != first


def test_a_foreign_store_can_be_ingested(tmp_path):
    place = write_anndata(tmp_path / "a", matrix(), y=pd.Categorical(labels()))
    write_store(ZarrSource(place, labels="y"), tmp_path / "s", layout=SMALL)
    source = ZarrSource(tmp_path / "s")
    assert_same(read(source)[0], matrix())
    assert source.classes[read(source)[1]].tolist() == labels().tolist()
    assert source.names(np.array([3])) == ["g3"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_foreign_damage_is_reported_by_name(tmp_path, version, part, harm):
    place = write_anndata(tmp_path / "a", matrix(), version)
    source = ZarrSource(place)
    name = f"X/{part}/0" if version == 2 else f"X/{part}/c/0"
    content = (place / name).read_bytes()
    (place / name).unlink()
    if harm == "truncate":
        (place / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match=f"{name} is {'missing' if harm == 'remove' else 'damaged'}"):
        read(source)


def test_row_pointers_out_of_order_are_refused(tmp_path):
    place = write_anndata(tmp_path / "a", matrix())
    group = zarr.open_group(place, mode="r+", use_consolidated=False)
    pointers = group["X/indptr"][:]
    for position, value in ((5, 10**6), (5, -4), (0, 3), (-1, 10**9)):
        harmed = pointers.copy()
        harmed[position] = value
        group["X/indptr"][:] = harmed
        with pytest.raises(StoreError, match="backwards|row pointers run from"):
            ZarrSource(place)


def edit(place, path, version, **changes):
    """Change the metadata of one array of a foreign store."""
    if version == 2:
        file = place / path / ".zarray"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
        return
    root = json.loads((place / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"][path].update(changes)
    (place / "zarr.json").write_text(json.dumps(root))


@pytest.mark.parametrize(
    ("version", "path", "changes", "message"),
    [
        (2, "X/data", {"dtype": "|O", "filters": [{"id": "pickle"}]}, "not numbers"),
        (2, "X/data", {"filters": [{"id": "pickle"}]}, "codec 'pickle'"),
        (2, "X/data", {"compressor": {"id": "msgpack2"}}, "codec 'msgpack2'"),
        (2, "X/data", {"dtype": [["a", "<i4"]]}, "not numbers"),
        (2, "X/data", {"chunks": [2**40]}, "rechunk"),
        (2, "X/data", {"chunks": [0]}, "do not cut"),
        (2, "X/data", {"shape": [2**61]}, "damaged"),
        (2, "X/data", {"shape": [-3]}, "damaged|cannot be used"),
        (2, "obs/y/categories", {"filters": [{"id": "pickle"}]}, "never read"),
        (3, "X/data", {"data_type": "string"}, "not numbers"),
        (3, "X/data", {"data_type": {"name": "struct"}}, "not numbers"),
        (3, "X/data", {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}, "codec 'numcodecs.pickle'"),
        (3, "X/data", {"codecs": "bytes"}, "cannot be used"),
        (3, "X/indices", {"data_type": "float64"}, "not whole numbers"),
        (3, "X/indptr", {"shape": [2**50]}, "row pointers"),
        (
            3,
            "X/data",
            {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**50]}}},
            "rechunk|too many",
        ),
        (3, "X", {"attributes": {"encoding-type": "csr_matrix", "shape": [2**70, 3]}}, "for a shape"),
        (3, "X", {"attributes": {"encoding-type": "csr_matrix", "shape": [2**50, 3]}}, "row pointers"),
        (3, "X", {"attributes": {"encoding-type": "awkward"}}, "csr_matrix and dense arrays"),
    ],
)
def test_hostile_metadata_are_refused_before_anything_is_unpacked(tmp_path, version, path, changes, message):
    place = write_anndata(tmp_path / "a", matrix(), version, y=labels().astype(object))
    edit(place, path, version, **changes)
    with pytest.raises(StoreError, match=message):
        ZarrSource(place, labels="y")


def test_header_survives_json(ours):
    header = read_header(Folder.of(ours))
    assert Header.from_json(json.loads(json.dumps(header.to_json())), "here") == header
