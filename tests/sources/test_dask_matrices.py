from __future__ import annotations

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.sources import dask_matrices
from nfs_dask.sources.dask_matrices import CollectionSource, is_collection
from nfs_dask.sources.source import Source
from tests.helpers.truth import assert_counts

RNG = np.random.default_rng(5)
X = RNG.integers(0, 4, (20, 9)) * (RNG.random((20, 9)) < 0.4)
Y = RNG.choice(["ham", "spam", "eggs"], 20)
ROWS = (6, 6, 6, 2)

CHUNKS = {
    "numpy": np.asarray,
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "COO": pydata.COO,
    "GCXS": pydata.GCXS,
}


def dask_array(form="numpy", columns=9, meta="right"):
    """X in chunks of six rows, whose collection knows what they are, is mistaken, or has no idea of their heights."""
    array = da.from_array(X, chunks=(6, columns))
    if form != "numpy":
        told = {"right": CHUNKS[form](np.zeros((0, 0), int)), "wrong": np.zeros((0, 0), "float32")}
        array = array.map_blocks(CHUNKS[form], meta=told.get(meta, told["wrong"]))
    if meta == "unknown":
        array._chunks = ((np.nan,) * 4, array.chunks[1])
    return array


LABELS = {
    "numpy": lambda: Y,
    "list": lambda: Y.tolist(),
    "pandas": lambda: pd.Series(Y),
    "array": lambda: da.from_array(Y, chunks=6),
    "array-otherwise": lambda: da.from_array(Y, chunks=7),
    "series": lambda: dd.from_pandas(pd.Series(Y), npartitions=3),
    "categories": lambda: dd.from_pandas(pd.Series(Y, dtype="category"), npartitions=4),
}


@pytest.mark.parametrize("columns", [9, 4])
@pytest.mark.parametrize("meta", ["right", "wrong", "unknown"])
@pytest.mark.parametrize("form", CHUNKS)
def test_every_chunk_counts_like_numpy(form, meta, columns):
    source = CollectionSource(dask_array(form, columns, meta), da.from_array(Y, chunks=6))
    assert isinstance(source, Source)
    assert source.delayed is not None
    assert (source.n_rows, source.n_features, source.n_blocks) == (20, 9, 4)
    assert_counts(source, X, Y)
    assert [b.first_row for b in source.blocks(0, 4)] == [0, 6, 12, 18]


@pytest.mark.parametrize("labels", LABELS)
def test_every_kind_of_labels(labels):
    assert_counts(CollectionSource(dask_array("csr_array"), LABELS[labels]()), X, Y)


@pytest.mark.parametrize("labels", ["numpy", "list", "pandas", "array"])
def test_every_kind_of_labels_where_rows_are_unknown(labels):
    assert_counts(CollectionSource(dask_array("csr_array", meta="unknown"), LABELS[labels]()), X, Y)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("weights", [np.arange(20), np.arange(20) / 7])
def test_weights(weights, lazy, unknown):
    given = da.from_array(weights, chunks=6 if unknown else 9) if lazy else weights
    source = CollectionSource(dask_array(meta="unknown" if unknown else "right"), da.from_array(Y, chunks=6), given)
    assert source.weighted
    assert_counts(source, X, Y, weights)


def test_data_frames():
    frame = pd.DataFrame(X, columns=[f"word {i}" for i in range(9)])
    frame["class"] = Y
    lazy = dd.from_pandas(frame, npartitions=3)
    source = CollectionSource(lazy.drop(columns="class"), lazy["class"], lazy["word 1"])
    assert source.names(np.array([3, 0])) == ["word 3", "word 0"]
    assert_counts(source, X, Y, X[:, 1])
    assert_counts(CollectionSource(lazy.drop(columns="class"), Y), X, Y)


def test_rows_may_stay_unknown():
    source = CollectionSource(dask_array("COO", meta="unknown"))
    assert (source.n_rows, source.classes) == (-1, None)
    blocks = list(source.blocks(0, 4))
    assert [block.n_rows for block in blocks] == [6, 6, 6, 2]
    assert {block.first_row for block in blocks} == {0}
    assert {int(code) for block in blocks for code in block.codes} == {-1}


def test_empty_chunks():
    array = da.concatenate([da.from_array(X[:0], chunks=(1, 9)), dask_array(), da.from_array(X[:0], chunks=(1, 9))])
    assert_counts(CollectionSource(array, Y), X, Y)
    assert_counts(CollectionSource(array, da.from_array(Y, chunks=3)), X, Y)


def test_nothing_of_x_is_computed_before_it_is_asked_for():
    def explode(chunk):
        raise AssertionError("computed")

    array = da.from_array(X, chunks=(6, 9)).map_blocks(explode, meta=np.zeros((0, 0)))
    source = CollectionSource(array, da.from_array(Y, chunks=6))
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert source.block_entries == 54  # small enough for a bound without looking
    with pytest.raises(AssertionError, match="computed"):
        next(source.blocks(0, 1))


def counting(collection, made, name):
    """The same, which notes each chunk that is computed."""

    def note(chunk):
        made[name] = made.get(name, 0) + 1
        return chunk

    return collection.map_blocks(note, meta=collection._meta)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "labels", [Y, np.arange(len(Y)) % 2 == 0, np.arange(len(Y)) % 200, np.where(Y == "ham", None, Y)]
)
def test_labels_are_computed_once(known, labels):
    made: dict[str, int] = {}
    rows = da.from_array(X, chunks=(7, 9))
    y = counting(da.from_array(labels, chunks=7 if not known else 5), made, "y")
    if not known:
        rows = rows[da.from_array(np.ones(len(X), bool), chunks=7)]
    source = CollectionSource(counting(rows, made, "X"), y)
    codes = np.concatenate([block.codes for block in source.blocks(0, source.n_blocks)])
    assert [None if code < 0 else source.classes[code] for code in codes] == labels.tolist()
    assert made == {"X": source.n_blocks, "y": len(y.chunks[0])}


def test_labels_that_are_too_many_to_hold_are_read_again(monkeypatch):
    monkeypatch.setattr(dask_matrices, "MOST_CODES", len(Y) // 2)
    made: dict[str, int] = {}
    source = CollectionSource(da.from_array(X, chunks=(7, 9)), counting(da.from_array(Y, chunks=5), made, "y"))
    assert_counts(source, X, Y)
    assert made["y"] > len(range(0, len(Y), 5))


@pytest.mark.parametrize("engine", [nfs.SerialEngine(), None])
def test_a_fit_computes_once_what_it_is_given(engine):
    made: dict[str, int] = {}
    given = (da.from_array(X, chunks=(7, 9)), da.from_array(Y, chunks=7), da.from_array(np.ones(len(Y)), chunks=7))
    lazy = [counting(one, made, name) for one, name in zip(given, "Xyw", strict=True)]
    nfs.SparseMultinomialNB(k=2, engine=engine).fit(*lazy)
    assert set(made.values()) == {len(given[0].chunks[0])}


def test_wide_data_are_judged_by_a_chunk_not_by_their_meta():
    """The collection says dense, 32 GB a chunk; its chunks are sparse."""
    wide = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        columns = np.sort(rng.integers(0, 4_000_000, (1000, 4)), axis=1)
        wide.append(sparse.csr_matrix((np.ones(4000), columns.ravel(), np.arange(0, 4001, 4)), (1000, 4_000_000)))
    parts = [da.from_delayed(dask.delayed(w), w.shape, float) for w in wide]
    source = CollectionSource(da.concatenate(parts), np.arange(3000) % 2)
    blocks = list(source.blocks(0, 3))
    assert max(b.nbytes for b in blocks) <= source.block_nbytes <= 3 * max(b.nbytes for b in blocks)
    assert max(b.nnz for b in blocks) <= source.block_entries


@pytest.mark.parametrize(("order", "copies"), [("C", 0.5), ("F", 1)])
def test_large_dense_chunks_are_bounded_by_their_cells(order, copies):
    """And a chunk that is copied, row by row, stays beside its block."""
    array = da.ones((4000, 1000), chunks=(2000, 1000)).map_blocks(np.array, order=order)
    source = CollectionSource(array, np.arange(4000) % 2)
    (block,) = source.blocks(0, 1)
    held = block.nbytes + copies * 2000 * 1000 * 8
    assert held <= source.block_nbytes <= 1.1 * held
    assert source.block_entries == 2_000_000


def test_sparse_chunks_are_not_copied():
    chunk = sparse.csr_matrix(X)
    source = CollectionSource(da.from_delayed(dask.delayed(chunk, pure=False), X.shape, int), Y)
    (block,) = source.blocks(0, 1)
    assert np.shares_memory(block.data, chunk.data)


def test_it_travels():
    source = pickle.loads(pickle.dumps(CollectionSource(dask_array("csr_matrix"), da.from_array(Y, chunks=6))))
    assert_counts(source, X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CollectionSource(da.ones(5, chunks=2)), "1 dimension"),
        (lambda: CollectionSource(da.ones((2, 2, 2))), "3 dimension"),
        (lambda: CollectionSource(dd.from_pandas(pd.Series([1]), npartitions=1)), "1 dimension"),
        (lambda: CollectionSource(dask.delayed(1)), "Delayed"),
        (lambda: CollectionSource(da.ones((0, 3))), "0 sample"),
        (lambda: CollectionSource(da.ones((3, 0))), "0 feature"),
        (lambda: CollectionSource(dask_array(), Y[:7]), "there are 20 rows but 7 labels"),
        (lambda: CollectionSource(dask_array(meta="unknown"), Y[:7]), "there are 20 rows but 7 labels"),
        (lambda: CollectionSource(dask_array(), da.from_array(Y[:7], chunks=2)), "X has 20 rows but y has 7"),
        (lambda: CollectionSource(dask_array(), da.ones((20, 1))), "one dimension"),
        (lambda: CollectionSource(dask_array(), da.random.random(20)), "chunk 0 of y: Unknown label type: continuous"),
        (lambda: CollectionSource(dask_array(), Y, da.ones(19)), "X has 20 rows but sample_weight has 19"),
        (lambda: CollectionSource(dask_array(), Y, np.ones(19)), "X has 20 rows but sample_weight has 19"),
        (
            lambda: CollectionSource(dask_array(meta="unknown"), da.from_array(Y, chunks=7)),
            "X has 4 row chunks and y has 3, of unknown lengths",
        ),
        (lambda: CollectionSource(dask_array(), names=["a"]), "9 columns but 1 names"),
    ],
)
def test_what_cannot_be_is_refused_at_the_door(make, message):
    with pytest.raises(InputError, match=message):
        make()


def with_chunk(number, chunk):
    """X whose chunk of that number is another thing."""
    parts = [dask.delayed(X[a : a + 6]) for a in range(0, 20, 6)]
    parts[number] = dask.delayed(chunk)
    return da.concatenate([da.from_delayed(p, (n, 9), int) for p, n in zip(parts, ROWS, strict=True)])


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (X[:5], r"block 2 \(rows from 12\): X has 5 rows here.* say 6"),
        (X[:6, :8], r"block 2 .*chunks of \[8\] columns here, where it says \[9\]"),
        (X[:6].astype(complex), "block 2 .*Complex data not supported"),
        (X[:6].astype(str), "block 2 .*type <U"),
        (X[0], "block 2 .*1 dimension"),
    ],
)
def test_chunks_that_are_not_what_they_should_be_are_named(chunk, message):
    source = CollectionSource(with_chunk(2, chunk), Y)
    assert next(source.blocks(1, 2)).n_rows == 6
    with pytest.raises(InputError, match=message):
        next(source.blocks(2, 3))


def test_labels_and_rows_of_unknown_chunks_are_compared_in_the_task():
    y = da.from_array(Y, chunks=((5, 5, 5, 5),))
    source = CollectionSource(dask_array(meta="unknown"), y)
    with pytest.raises(InputError, match="block 0 .*6 rows here.* say 5"):
        next(source.blocks(0, 1))


def test_bad_weights_name_their_block():
    weights = da.from_array(np.r_[np.ones(13), -1, np.ones(6)], chunks=6)
    source = CollectionSource(dask_array(), Y, weights)
    with pytest.raises(InputError, match="block 2 .*sample_weight -1.0 in row 1"):
        list(source.blocks(0, 4))


def test_what_a_collection_is():
    assert is_collection(dask_array())
    assert is_collection(dd.from_pandas(pd.Series([1]), npartitions=1))
    assert not is_collection(X)
    assert not is_collection(da.Array)


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


@pytest.mark.parametrize("form", ["numpy", "csr_matrix", "COO"])
def test_persisted_collections(client, form):
    array, y = dask_array(form).persist(), da.from_array(Y, chunks=6).persist()
    assert_counts(CollectionSource(array, y), X, Y)
    source = CollectionSource(array.map_blocks(lambda chunk: chunk), da.from_array(Y, chunks=5))
    assert_counts(source, X, Y)
    del array, y
    assert_counts(source, X, Y, blocks=[future.result() for future in client.compute(source.delayed)])


def test_blocks_are_computed_here_although_a_cluster_is_around(client):
    import threading

    seen = []
    array = da.from_array(X, chunks=(6, 9)).map_blocks(lambda c: seen.append(threading.current_thread().name) or c)
    source = CollectionSource(array, Y)
    list(source.blocks(0, 4))
    assert seen
    assert not any("Dask-Default-Threads" in name for name in seen[-4:])


def test_tasks_of_a_cluster(client):
    source = CollectionSource(dask_array("GCXS", columns=5), da.from_array(Y, chunks=7))
    assert_counts(source, X, Y, blocks=[future.result() for future in client.compute(source.delayed)])


def test_inside_a_task(client):
    source = CollectionSource(dask_array("csr_matrix"), Y)
    assert client.submit(lambda: sum(block.n_rows for block in source.blocks(0, 4)), pure=False).result() == 20
