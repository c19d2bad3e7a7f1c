from __future__ import annotations

import math
import os
import pickle
import shutil
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import anndata
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.errors import DataWarning, InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.publish import clean_up
from nfs_dask.store.receipts import serial_map, verify
from nfs_dask.store.shard_tasks import EntriesTask
from nfs_dask.store.writer import write_store
from tests.helpers.grids import each_once
from tests.helpers.memory import peak_nbytes
from tests.helpers.strategies import awkward_csr
from tests.helpers.toys import SMALL, ToySource, assert_same_matrix, contents, example


def header_of(location):
    return read_header(Folder.of(location))


def files_of(location):
    return {p.relative_to(location).as_posix(): p.read_bytes() for p in Path(location).rglob("*") if p.is_file()}


# Round trips


@pytest.mark.parametrize("layout", [SMALL, None], ids=["small", "default"])
@pytest.mark.parametrize("weights", [None, np.arange(200), np.arange(200) / 7], ids=["plain", "whole", "real"])
def test_a_store_gives_back_what_was_written(tmp_path, layout, weights):
    source = example(weights=weights)
    write_store(source, tmp_path / "s", layout=layout)
    X, codes, read_weights = contents(tmp_path / "s")
    assert_same_matrix(X, source.X)
    np.testing.assert_array_equal(codes, source.codes)
    if weights is not None:
        assert read_weights.dtype == weights.dtype
        np.testing.assert_array_equal(read_weights, weights)
    verify(tmp_path / "s")


@given(st.data(), st.integers(1, 4), st.integers(1, 5))
def test_any_matrix_comes_back_as_scipy_would_sum_it(tmp_path_factory, data, n_blocks, runs):
    X = data.draw(awkward_csr())
    place = tmp_path_factory.mktemp("stores") / "s"
    canonical = X.astype(np.int64) if X.dtype.kind in "bu" else X.copy()  # sums that do not wrap around
    canonical.sum_duplicates()
    layout = replace(SMALL, chunk=2, shard=4, row_chunk=2, row_shard=4, block=3)
    mended = not X.has_canonical_format
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_store(ToySource(X, n_blocks=n_blocks), place, layout=layout, runs=runs)
    assert any(issubclass(w.category, DataWarning) for w in caught) == mended
    read, _, _ = contents(place)
    assert_same_matrix(read, canonical)
    verify(place)


def test_unsorted_and_repeated_columns_are_mended_and_counted(tmp_path):
    X = sparse.csr_matrix((np.array([1, 2, 3]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    with pytest.warns(DataWarning, match="1 of 1 blocks had unsorted or repeated columns"):
        write_store(ToySource(X, n_blocks=1), tmp_path / "s")
    read, _, _ = contents(tmp_path / "s")
    assert read.toarray().tolist() == [[2, 0, 4], [0, 0, 0]]


@pytest.mark.parametrize(
    ("values", "dtype", "kind", "stored", "read"),
    [
        ([1, 1, 0], "bool", "binary", "int32", "uint8"),
        ([1.0, 1.0, 1.0], "float64", "binary", "int32", "uint8"),
        ([1, 2, 255], "uint8", "count", "int32", "uint8"),
        ([1, 2, 256], "float32", "count", "int32", "uint16"),
        ([1, 2, 70_000], "int64", "count", "int32", "int32"),
        ([1, 2, 2**31 - 1], "uint32", "count", "int32", "int32"),
        ([1, 2, 2**31], "uint32", "count", "int64", "uint32"),
        ([1, 2, 2**40], "int64", "count", "int64", "int64"),
        ([1, -2, 3], "int64", "signed", "int32", "int8"),
        ([1, 0.5, 3], "float32", "real", "float32", "float32"),
        ([1, 0.5, 3], "float64", "real", "float64", "float64"),
        ([1, -0.5, 3], "float64", "signed", "float64", "float64"),
    ],
)
def test_others_read_types_to_compute_with_and_passes_the_smallest(tmp_path, values, dtype, kind, stored, read):
    X = sparse.csr_matrix((np.array(values, dtype), [0, 1, 2], [0, 2, 3]), shape=(2, 3))
    write_store(ToySource(X, n_blocks=2), tmp_path / "s")
    header = header_of(tmp_path / "s")
    assert (header.kind, header.value_type) == (kind, stored)
    np.testing.assert_array_equal(contents(tmp_path / "s")[0].data, np.array(values, dtype))
    assert next(ZarrSource(tmp_path / "s").blocks(0, 1)).data.dtype == read
    assert anndata.read_zarr(tmp_path / "s").X.dtype == stored


def test_the_type_does_not_depend_on_which_task_saw_what(tmp_path):
    X = sparse.csr_matrix((np.array([1.0, 2**30, 0.5, 7]), [0, 0, 0, 0], [0, 1, 2, 3, 4]), shape=(4, 1))
    for runs in (1, 2, 4):
        write_store(ToySource(X, n_blocks=4), tmp_path / str(runs), runs=runs)
    assert {header_of(tmp_path / str(runs)).fingerprint for runs in (1, 2, 4)} == {
        header_of(tmp_path / "1").fingerprint
    }
    assert_same_matrix(contents(tmp_path / "2")[0], X)


def test_data_without_entries_labels_or_names_are_a_store(tmp_path):
    write_store(ToySource(sparse.csr_matrix((5, 3)), n_blocks=2), tmp_path / "s")
    X, codes, _ = contents(tmp_path / "s")
    assert (X.shape, X.nnz, set(codes)) == ((5, 3), 0, {-1})
    assert anndata.read_zarr(tmp_path / "s").shape == (5, 3)
    verify(tmp_path / "s")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_data_are_refused_and_leave_nothing(tmp_path, shape):
    with pytest.raises(InputError, match="no rows|no columns"):
        write_store(ToySource(sparse.csr_matrix(shape), n_blocks=1), tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(tmp_path, bad):
    source = example(dtype="float64")
    source.X.data[77] = bad
    row = int(np.searchsorted(source.X.indptr, 77, side="right")) - 1
    with pytest.raises(InputError, match=rf"row {row}, column {source.X.indices[77]}"):
        write_store(source, tmp_path / "s", layout=SMALL)
    assert list(tmp_path.iterdir()) == []


# Runs, shards and tasks


def test_the_number_of_runs_changes_not_one_byte(tmp_path):
    source = example(1000, names=[f"w{i}" for i in range(40)], weights=np.arange(1000) / 3)
    for runs in (1, 2, 5, 7):
        write_store(source, tmp_path / str(runs), layout=SMALL, runs=runs)
    first = files_of(tmp_path / "1")
    assert sum(name.startswith("X/data/c/") for name in first) > 20
    for runs in (2, 5, 7):
        assert files_of(tmp_path / str(runs)) == first


def test_blocks_of_the_source_change_not_one_byte(tmp_path):
    for n_blocks in (1, 3, 50):
        write_store(example(n_blocks=n_blocks), tmp_path / str(n_blocks), layout=SMALL, runs=3)
    assert files_of(tmp_path / "1") == files_of(tmp_path / "3") == files_of(tmp_path / "50")


def twice_backwards(function, items):
    """What a cluster may do: other orders, repeated tasks, and only what survives pickling."""
    again = pickle.loads(pickle.dumps(items))
    [function(item) for item in reversed(again)]
    return [function(item) for item in items]


def test_tasks_can_be_repeated_in_any_order(tmp_path):
    source = example(400)
    write_store(source, tmp_path / "once", layout=SMALL, runs=4)
    write_store(source, tmp_path / "twice", layout=SMALL, runs=4, map=twice_backwards)
    assert files_of(tmp_path / "once") == files_of(tmp_path / "twice")


def test_each_shard_has_one_writer(tmp_path):
    written = []

    def watching(function, items):
        entries = [task for task in items if isinstance(task, EntriesTask)]
        written.extend(shard for task in entries for shard in range(task.first, task.stop))
        return serial_map(function, items)

    write_store(example(1000), tmp_path / "s", layout=SMALL, runs=5, map=watching)
    assert written == list(range(header_of(tmp_path / "s").data.n_shards))


def test_blocks_are_bounded_in_entries_and_rows_and_split_no_row(tmp_path):
    X = sparse.vstack([sparse.csr_matrix((100, 90)), sparse.csr_matrix(np.ones((3, 90))), sparse.eye_array(90)])
    write_store(ToySource(X.tocsr().astype(np.uint8)), tmp_path / "s", layout=SMALL)
    source = ZarrSource(tmp_path / "s")
    blocks = list(source.blocks(0, source.n_blocks))
    assert max(block.n_rows for block in blocks) <= SMALL.row_shard
    assert max(block.nnz for block in blocks) == source.block_entries < SMALL.block + 90
    assert max(block.nbytes for block in blocks) == source.block_nbytes


def test_progress_tells_what_is_done(tmp_path):
    told = []
    write_store(example(), tmp_path / "s", layout=SMALL, runs=2, progress=lambda *args: told.append(args))
    assert [what for what, done, total in told if done == total] == ["reading", "writing"]


# AnnData


@pytest.mark.parametrize(
    "classes",
    [["eggs", "ham", "spam"], [-1, 5, 70], [False, True, True], [0.0, 1.0, 2.0]],
    ids=["str", "int", "bool", "float"],
)
def test_anndata_opens_a_store_with_labels_and_names(tmp_path, classes):
    classes = np.unique(classes)
    names = [f"würd {i}" for i in range(40)]
    codes = np.random.default_rng(1).integers(-1, len(classes), 200)
    source = example(names=names, codes=codes, classes=classes, weights=np.arange(200) / 3)
    write_store(source, tmp_path / "s", layout=SMALL)
    opened = anndata.read_zarr(tmp_path / "s")
    assert_same_matrix(opened.X, source.X)
    assert opened.var_names.tolist() == names
    assert opened.obs_names.tolist() == [str(i) for i in range(200)]
    assert opened.obs["label"].cat.codes.tolist() == codes.tolist()
    assert opened.obs["label"].cat.categories.tolist() == classes.tolist()
    assert opened.obs["weight"].tolist() == source.given_weights.tolist()


def test_anndata_slices_a_store_without_loading_it(tmp_path):
    source = example()
    write_store(source, tmp_path / "s", layout=SMALL)
    lazy = anndata.io.sparse_dataset(zarr.open_group(tmp_path / "s", mode="r")["X"])
    assert lazy.format == "csr"
    assert_same_matrix(lazy[31:97], source.X[31:97])


def test_the_label_column_has_the_name_that_is_asked_for(tmp_path):
    write_store(example(), tmp_path / "s", label_name="sentiment")
    assert anndata.read_zarr(tmp_path / "s").obs.columns.tolist() == ["sentiment"]
    assert ZarrSource(tmp_path / "s").classes.tolist() == ["eggs", "ham", "spam"]


@pytest.mark.parametrize("name", ["", "a/b", "_index", ".hidden", "weight"])
def test_label_names_that_cannot_be_folders_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="label column"):
        write_store(example(), tmp_path / "s", label_name=name)


# Append


@pytest.mark.parametrize(("runs", "cuts"), each_once([3, 1], [[1], [37], [32, 64], [50, 51, 180]]))
def test_appending_equals_writing_at_once(tmp_path, cuts, runs):
    source = example(weights=np.arange(200) / 3, names=[f"w{i}" for i in range(40)])
    write_store(source, tmp_path / "whole", layout=SMALL)
    edges = [0, *cuts, 200]
    for i, (first, last) in enumerate(zip(edges, edges[1:], strict=False)):
        write_store(source.part(first, last), tmp_path / "parts", layout=SMALL, append=i > 0, runs=runs)
    assert_same_matrix(contents(tmp_path / "parts")[0], source.X)
    header = header_of(tmp_path / "parts")
    assert header == replace(header_of(tmp_path / "whole"), generation=len(cuts) + 1)
    verify(tmp_path / "parts")
    assert_same_matrix(anndata.read_zarr(tmp_path / "parts").X, source.X)


def test_appending_rewrites_only_what_was_not_full(tmp_path):
    source = example(400)
    write_store(source.part(0, 200), tmp_path / "s", layout=SMALL)
    full = header_of(tmp_path / "s").nnz // SMALL.shard
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s/X/data/c").iterdir()}
    write_store(source.part(200, 400), tmp_path / "s", append=True)
    kept = {int(p.name) for p, time in before.items() if p.stat().st_mtime_ns == time}
    assert kept == set(range(full))


def test_new_classes_get_codes_behind_the_old_ones_and_are_read_sorted(tmp_path):
    source = example()
    write_store(source.part(0, 100), tmp_path / "s", layout=SMALL)
    more = source.part(100, 200)
    more._facts = replace(more.facts, classes=np.array(["bacon", "ham", "spam"]))
    write_store(more, tmp_path / "s", append=True)
    read = ZarrSource(tmp_path / "s")
    assert read.classes.tolist() == ["bacon", "eggs", "ham", "spam"]
    assert header_of(tmp_path / "s").classes == ("eggs", "ham", "spam", "bacon")
    old = np.array(["eggs", "ham", "spam", None], object)[source.codes[:100]]
    new = np.array(["bacon", "ham", "spam", None], object)[source.codes[100:]]
    codes = contents(tmp_path / "s")[1]
    assert np.append(read.classes.astype(object), None)[codes].tolist() == [*old, *new]
    labels = anndata.read_zarr(tmp_path / "s").obs["label"]
    assert labels.astype(object).where(labels.notna(), None).tolist() == [*old, *new]


def test_a_reader_goes_on_with_what_it_opened(tmp_path):
    source = example(300)
    write_store(source.part(0, 117), tmp_path / "s", layout=SMALL)
    reader = ZarrSource(tmp_path / "s")
    first = next(iter(reader.blocks(0, 1)))
    write_store(source.part(117, 300), tmp_path / "s", append=True)
    rest = list(reader.blocks(1, reader.n_blocks))
    rows = np.concatenate([np.repeat(np.arange(b.n_rows) + b.first_row, np.diff(b.indptr)) for b in [first, *rest]])
    assert len(rows) == source.X.indptr[117]
    assert rest[-1].first_row + rest[-1].n_rows == 117
    np.testing.assert_array_equal(np.concatenate([b.data for b in [first, *rest]]), source.X[:117].data)
    np.testing.assert_array_equal(np.concatenate([b.codes for b in [first, *rest]]), source.codes[:117])


@pytest.mark.parametrize("share", [0.5, 1])
@pytest.mark.parametrize("stage", ["survey", "write_shards"])
def test_a_crash_while_appending_leaves_the_old_generation(tmp_path, stage, share):
    source = example(300)
    write_store(source.part(0, 117), tmp_path / "s", layout=SMALL)
    before = header_of(tmp_path / "s")

    def dying(function, items):
        if function.__name__ == stage:
            serial_map(function, items[: math.ceil(share * len(items))])
            raise KeyboardInterrupt
        return serial_map(function, items)

    with pytest.raises(KeyboardInterrupt):
        write_store(source.part(117, 300), tmp_path / "s", append=True, map=dying)
    assert header_of(tmp_path / "s") == before
    assert_same_matrix(contents(tmp_path / "s")[0], source.X[:117])
    verify(tmp_path / "s")
    write_store(source.part(117, 250), tmp_path / "s", append=True)  # shorter than the one that died
    assert_same_matrix(contents(tmp_path / "s")[0], source.X[:250])
    verify(tmp_path / "s")
    assert not [path for path in (tmp_path / "s/nfs_dask").iterdir() if path.name.startswith(("scratch", "writing"))]


def test_kinds_widen_where_the_stored_type_holds_them(tmp_path):
    write_store(example(dtype="uint8", high=1), tmp_path / "s")
    assert header_of(tmp_path / "s").kind == "binary"
    write_store(example(dtype="int64", high=200), tmp_path / "s", append=True)
    assert header_of(tmp_path / "s").kind == "count"
    assert contents(tmp_path / "s")[0].data.max() > 1


def test_rows_that_do_not_go_with_the_store_are_refused(tmp_path):
    write_store(example(names=[f"w{i}" for i in range(40)]), tmp_path / "s")
    with pytest.raises(InputError, match="have 41 columns and .* has 40"):
        write_store(example(n_features=41), tmp_path / "s", append=True)
    with pytest.raises(InputError, match="column 7 is named 'w7' .* and 'x'"):
        write_store(example(names=[f"w{i}" if i != 7 else "x" for i in range(40)]), tmp_path / "s", append=True)
    with pytest.raises(InputError, match="weight to every row or to none"):
        write_store(example(weights=np.ones(200)), tmp_path / "s", append=True)
    with pytest.raises(InputError, match="labels are of type str"):
        write_store(example(classes=[1, 2, 3]), tmp_path / "s", append=True)
    with pytest.raises(InputError, match=r"have labels \(label\), and the rows to append have none; give one label"):
        write_store(example(codes=None, classes=None), tmp_path / "s", append=True)  # no pass would count them
    assert contents(tmp_path / "s")[0].shape == (200, 40)


def test_labels_cannot_be_appended_to_a_store_without(tmp_path):
    write_store(example(codes=None, classes=None), tmp_path / "s")
    with pytest.raises(InputError, match="has no labels, and the rows|no labels"):
        write_store(example(), tmp_path / "s", append=True)


def test_there_must_be_a_store_to_append_to(tmp_path):
    with pytest.raises(StoreError, match=r"is not a store: there is no zarr.json"):
        write_store(example(), tmp_path / "s", append=True)
    zarr.create_group(tmp_path / "group")
    before = files_of(tmp_path / "group")
    with pytest.raises(StoreError, match="not one that nfs-dask wrote"):
        write_store(example(), tmp_path / "group", append=True)
    assert files_of(tmp_path / "group") == before
    assert [path.name for path in tmp_path.iterdir()] == ["group"]


class Endless(ToySource):
    """Blocks made when they are asked for, so that whoever holds more than a few is found out."""

    def __init__(self, n_blocks):
        super().__init__(sparse.random_array((2000, 5000), density=0.01, rng=0, format="csr"), n_blocks=n_blocks)
        self._facts = replace(self.facts, n_rows=2000 * n_blocks)

    def blocks(self, start, stop):
        for number in range(start, stop):
            block = self.piece(0, 2000, number)
            yield replace(block, data=np.ones(block.nnz), first_row=2000 * number)


def test_memory_does_not_grow_with_the_rows(tmp_path):
    layout = Layout(chunk=4096, shard=65536, row_chunk=1024, row_shard=4096, block=16384)

    def written(n_blocks):
        shutil.rmtree(tmp_path / f"{n_blocks}", ignore_errors=True)
        write_store(Endless(n_blocks), tmp_path / f"{n_blocks}", layout=layout)
        verify(tmp_path / f"{n_blocks}")

    few, many = (peak_nbytes(partial(written, n_blocks)) for n_blocks in (4, 40))
    assert ZarrSource(tmp_path / "40").nnz == 10 * ZarrSource(tmp_path / "4").nnz
    assert many < 1.3 * few  # what may grow: 24 bytes a shard and 16 a block


# Places


def test_an_existing_target_is_refused_and_left_alone(tmp_path):
    write_store(example(), tmp_path / "s")
    before = files_of(tmp_path / "s")
    with pytest.raises(StoreError, match="exists; choose another place, append=True"):
        write_store(example(seed=1), tmp_path / "s")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="exists"):
        write_store(example(), tmp_path / "file")
    assert files_of(tmp_path / "s") == before


@pytest.mark.parametrize("share", [0.5, 1])
@pytest.mark.parametrize("stage", ["survey", "write_shards"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_writer_removes_what_it_began(tmp_path, stage, share, error):
    def dying(function, items):
        if function.__name__ == stage:
            serial_map(function, items[: math.ceil(share * len(items))])
            raise error
        return serial_map(function, items)

    with pytest.raises(error):
        write_store(example(), tmp_path / "s", layout=SMALL, map=dying)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_visible_before_all_is_there(tmp_path):
    def looking(function, items):
        assert not (tmp_path / "s").exists()
        return serial_map(function, items)

    write_store(example(), tmp_path / "s", layout=SMALL, map=looking)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_the_slower_of_two_writers_is_told(tmp_path):
    def overtaken(function, items):
        if function.__name__ == "write_shards" and not (tmp_path / "s").exists():
            write_store(example(seed=1), tmp_path / "s")
        return serial_map(function, items)

    with pytest.raises(StoreError, match="another writer was faster"):
        write_store(example(seed=2), tmp_path / "s", map=overtaken)
    assert_same_matrix(contents(tmp_path / "s")[0], example(seed=1).X)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_two_cannot_append_at_once_and_a_dead_one_can_be_cleaned_up(tmp_path):
    write_store(example(), tmp_path / "s")
    (tmp_path / "s/nfs_dask/writing").write_text("{}")
    (tmp_path / "s/nfs_dask/scratch-1").mkdir()
    with pytest.raises(StoreError, match="being written by another process, or one died"):
        write_store(example(seed=1), tmp_path / "s", append=True)
    clean_up(tmp_path / "s")
    assert not (tmp_path / "s/nfs_dask/scratch-1").exists()
    write_store(example(seed=1), tmp_path / "s", append=True)
    assert ZarrSource(tmp_path / "s").n_rows == 400


def test_clean_up_takes_what_a_killed_writer_left(tmp_path):
    (tmp_path / ".s.12345678.partial/X").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    clean_up(tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_clean_up_leaves_alone_what_no_writer_claimed(tmp_path):
    for name in ("checkout/nfs_dask/module.py", ".checkout.old.partial/file"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("mine")
    clean_up(tmp_path / "checkout")
    assert sorted(files_of(tmp_path)) == [".checkout.old.partial/file", "checkout/nfs_dask/module.py"]


def test_a_relative_path_is_a_place_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_store(example(), "s")
    assert os.path.exists(tmp_path / "s/zarr.json")


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (np.array([0, 1, 2**64 - 1], np.uint64), "the label 18446744073709551615 does not fit 64 bits"),
        (np.array(["a", "b", "\ud800"]), "not valid text; remove its surrogates"),
        (np.array([b"a", b"b", b"c"]), r"labels such as \[b'a', .* cannot be stored; give strings"),
    ],
)
def test_labels_that_no_store_holds_are_refused(tmp_path, classes, message):
    with pytest.raises(InputError, match=message):
        write_store(example(classes=classes), tmp_path / "s", layout=SMALL)
    assert list(tmp_path.iterdir()) == []
