"""Counted texts as a source, against scikit-learn's vectorizers on the same tokens."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from nfs_dask.arrays.block import canonical, check_structure
from nfs_dask.dataset import open_dataset
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.counted_source import CountedTexts
from nfs_dask.ingestion.given_vocabulary import write_fixed
from nfs_dask.ingestion.merged_columns import MergedColumns
from nfs_dask.ingestion.merging import choose_cuts
from nfs_dask.ingestion.term_groups import StoredFrequencies
from nfs_dask.sources.source import Source
from nfs_dask.store.layout import Numbers
from nfs_dask.store.shards import write_numbers
from nfs_dask.store.writer import write_store
from nfs_dask.text.counting import hash_strings
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from tests.helpers.counting_by_hand import merge_segments, write_segments
from tests.helpers.truth import assert_counts

RANDOM = np.random.default_rng(8)
ROWS = [[f"w{k}" for k in RANDOM.zipf(1.4, RANDOM.integers(0, 40)) % 700] for _ in range(240)]
Y = np.array(["ham", "spam", "eggs"])[RANDOM.integers(0, 3, len(ROWS))]


@pytest.fixture
def folder(tmp_path):
    return Folder(str(tmp_path / "work"))


def counted(folder, rows=ROWS, cuts=(100, 101, 101), settings=TextSettings(), target=8000, merge=None, **how):  # noqa: B008
    """A source over segments that are cut there."""
    n_regions = len(how.get("regions", [""]))
    own = {key: how.pop(key) for key in ("y", "weights", "block_entries") if key in how}
    segments = write_segments(folder, rows, cuts, settings, n_regions, **{"block_entries": 300} | own)
    merge = {"with_df": settings.tfidf, "hashed": settings.hashed is not None} | (merge or {})
    ranges = merge_segments(folder, segments, target, extra=[how["fixed"]] if "fixed" in how else [], **merge)
    return CountedTexts(folder, segments, ranges, settings, **how)


def matrix(source):
    """All blocks as one matrix, each looked at on its own."""
    parts, row, number = [sparse.csr_matrix((0, source.n_features))], 0, 0
    for block in source.blocks(0, source.n_blocks):
        check_structure(block)
        assert not canonical(block)[1]
        assert (block.first_row, block.number, block.n_features) == (row, number, source.n_features)
        assert block.nbytes <= source.block_nbytes and block.nnz <= source.block_entries
        parts.append(sparse.csr_matrix((block.data, block.indices, block.indptr), (block.n_rows, block.n_features)))
        row, number = row + block.n_rows, number + 1
    assert (row, number) == (source.n_rows, source.n_blocks)
    return sparse.vstack(parts).tocsr()


def by_sklearn(rows=ROWS, **how):
    """Counts and names; the tokens are given."""
    vectorizer = CountVectorizer(analyzer=lambda row: row, **how)
    X = vectorizer.fit_transform(rows).tocsr()
    X.sort_indices()
    return X, vectorizer.get_feature_names_out().tolist()


def assert_same(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


@pytest.mark.parametrize(
    ("how", "read"),
    [
        ({}, False),
        ({"settings": TextSettings(binary=True)}, False),
        ({"merge": {"fewest": 2}}, True),
        ({"settings": TextSettings(tfidf=True)}, True),
        ({"settings": TextSettings(hashed=8)}, True),
    ],
)
def test_outlines_are_blocks_whose_columns_need_not_be_read(folder, monkeypatch, how, read):
    source = counted(folder, y=Y, weights=np.arange(len(ROWS)), **how)
    expected = list(source.blocks(1, source.n_blocks))
    asked = []
    of_segment = MergedColumns.of_segment
    monkeypatch.setattr(MergedColumns, "of_segment", lambda *a, **k: asked.append(1) or of_segment(*a, **k))
    outlines = list(source.outlines(1, source.n_blocks))
    assert bool(asked) == read
    assert len(outlines) == len(expected) > 2
    for outline, block in zip(outlines, expected, strict=True):
        for one, other in zip(outline.entries[::2], block.entries[::2], strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
        np.testing.assert_array_equal(outline.codes, block.codes, strict=True)
        np.testing.assert_array_equal(outline.weights, block.weights, strict=True)
        assert (outline.number, outline.first_row, outline.nnz) == (block.number, block.first_row, block.nnz)


@pytest.mark.parametrize("how", [{}, {"min_df": 2}, {"max_df": 20, "min_df": 2}, {"binary": True}])
def test_counts_and_names_are_those_of_sklearn(folder, how):
    settings = TextSettings(binary=how.get("binary", False))
    merge = {"fewest": how.get("min_df", 1), "most": how.get("max_df", float("inf"))}
    source = counted(folder, settings=settings, merge=merge)
    X, names = by_sklearn(**how)
    assert_same(matrix(source), X)
    assert source.strings(0, source.n_features).to_list() == names
    assert source.nnz == X.nnz
    assert source.frequencies(0, source.n_features).tolist() == X.getnnz(axis=0).tolist()
    assert source.kind == ("binary" if settings.binary else "count")
    assert len(source.columns.ranges) > 2 and source.n_blocks > 4
    assert isinstance(source, Source)


def test_the_most_frequent_terms(folder):
    segments = write_segments(folder, ROWS, [100])
    looked = merge_segments(folder, segments, 8000, with_table=True)
    ranges = merge_segments(folder, segments, 8000, choose_cuts(looked, 100))
    source = CountedTexts(folder, segments, ranges, TextSettings())
    X, names = by_sklearn()
    order = sorted(range(X.shape[1]), key=lambda c: (-X[:, [c]].sum(), names[c]))
    kept = sorted(order[:100])
    assert_same(matrix(source), X[:, kept])
    assert source.names(np.arange(100)) == [names[c] for c in kept]


@pytest.mark.parametrize("cuts", [(), (1,), (50, 60, 70, 200), tuple(range(0, 240, 9))])
def test_any_cutting_gives_the_same(folder, cuts):
    source = counted(folder, cuts=cuts, target=5000 + 1000 * len(cuts))
    assert_same(matrix(source), by_sklearn()[0])


@pytest.mark.parametrize("norm", ["l2", "l1", None])
@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize("fewest", [1, 2])
def test_tfidf_is_that_of_sklearn_to_the_bit(folder, norm, sublinear, fewest):
    settings = TextSettings(tfidf=True, norm=norm, sublinear_tf=sublinear)
    source = counted(folder, settings=settings, merge={"fewest": fewest})
    X = by_sklearn(min_df=fewest)[0]
    assert_same(matrix(source), TfidfTransformer(norm=norm, sublinear_tf=sublinear).fit_transform(X).tocsr())
    assert source.kind == "real"


def test_a_part_of_the_blocks(folder):
    source = counted(folder, y=Y)
    whole = list(source.blocks(0, source.n_blocks))
    for start, stop in [(0, 1), (2, source.n_blocks - 1), (source.n_blocks - 1, source.n_blocks), (3, 3)]:
        for block, expected in zip(source.blocks(start, stop), whole[start:stop], strict=True):
            assert block.number == expected.number
            np.testing.assert_array_equal(block.indices, expected.indices)
            np.testing.assert_array_equal(block.codes, expected.codes)


def test_labels_and_weights_go_with_their_documents(folder):
    weights = np.arange(len(ROWS)) % 7
    rows = [row or ["empty"] for row in ROWS]
    source = counted(folder, rows, (2, 3, 100), y=Y, weights=weights)  # the first segments lack classes
    assert source.classes.tolist() == ["eggs", "ham", "spam"] and source.weighted
    assert_counts(source, by_sklearn(rows)[0].toarray(), Y, weights)


def test_labels_that_are_missing_and_classes_that_are_given(folder):
    segments = write_segments(folder, [["a"], ["b"]], [], y=np.array([3, 5]))
    ranges = merge_segments(folder, segments)
    (block,) = CountedTexts(folder, segments, ranges, TextSettings(), classes=np.array([1, 3, 4, 5])).blocks(0, 1)
    assert block.codes.tolist() == [1, 3]
    with pytest.raises(InputError, match="has the label 3, which is not among the classes"):
        CountedTexts(folder, segments, ranges, TextSettings(), classes=np.array([1, 5]))
    unlabelled = write_segments(folder, [["a"], ["b"]], [])
    (block,) = CountedTexts(folder, unlabelled, merge_segments(folder, unlabelled), TextSettings()).blocks(0, 1)
    assert block.codes.tolist() == [-1, -1]
    with pytest.raises(InputError, match="some documents come with labels and some without"):
        CountedTexts(folder, segments + unlabelled, ranges, TextSettings())


# Regions.


@pytest.mark.parametrize("tfidf", [False, True])
def test_regions_are_ranges_of_columns_over_one_vocabulary(folder, tfidf):
    settings = TextSettings(tfidf=tfidf)
    source = counted(folder, cuts=(30, 31), settings=settings, regions=("title", "body"))
    vectorizer = CountVectorizer(analyzer=lambda row: row).fit(ROWS)
    X = sparse.hstack([vectorizer.transform(ROWS[region::2]) for region in range(2)]).tocsr()
    X.sort_indices()
    names = vectorizer.get_feature_names_out().tolist()
    n = len(names)
    df = (X[:, :n] + X[:, n:]).getnnz(axis=0)
    if tfidf:
        idf = np.log((120 + 1) / (df + 1)) + 1
        X = sparse.csr_matrix((X.data * np.tile(idf, 2)[X.indices], X.indices, X.indptr), X.shape)
        X = sparse.diags(1 / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)).A1, 1e-300)) @ X
        np.testing.assert_allclose(matrix(source).toarray(), X.toarray(), rtol=1e-14)
    else:
        assert_same(matrix(source), X)
    expected = [f"title:{name}" for name in names] + [f"body:{name}" for name in names]
    assert source.strings(0, 2 * n).to_list() == expected
    assert source.strings(n - 2, n + 3).to_list() == expected[n - 2 : n + 3]
    assert source.names(np.array([n, 0, n - 1])) == [expected[n], expected[0], expected[n - 1]]
    assert source.frequencies(n - 2, 2 * n).tolist() == np.tile(df, 2)[n - 2 :].tolist()
    assert source.nnz is None


# A vocabulary that was given.


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("tfidf", [False, True])
def test_a_given_vocabulary(folder, in_order, tfidf):
    terms = sorted(f"w{k}" for k in range(0, 900, 3))
    columns = np.arange(300) if in_order else np.random.default_rng(1).permutation(300)
    fixed = write_fixed(folder, "fixed", Strings.of(terms), columns)
    settings = TextSettings(tfidf=tfidf)
    source = counted(folder, settings=settings, fixed=fixed, merge={"fixed": "fixed"})
    vocabulary = dict(zip(terms, columns.tolist(), strict=True))
    X, names = by_sklearn(vocabulary=vocabulary)
    if tfidf:
        df = X.getnnz(axis=0)
        X = TfidfTransformer().fit_transform(X).tocsr()
        assert source.frequencies(7, 290).tolist() == df[7:290].tolist()
    assert_same(matrix(source), X)
    assert len(source.columns.ranges) > 2
    assert source.strings(5, 200).to_list() == names[5:200]


def test_tfidf_that_was_fitted_before(folder):
    terms = sorted({term for row in ROWS[:90] for term in row})
    old = CountVectorizer(analyzer=lambda row: row, vocabulary=terms)
    X = old.fit_transform(ROWS[:90])
    fixed = write_fixed(folder, "fixed", Strings.of(terms), np.arange(len(terms)), X.getnnz(axis=0))
    settings = TextSettings(tfidf=True)
    source = counted(folder, ROWS[90:], settings=settings, fixed=fixed, merge={"fixed": "fixed"}, n_documents=90)
    later = old.transform(ROWS[90:])
    later.sort_indices()
    assert_same(matrix(source), TfidfTransformer().fit(X).transform(later).tocsr())
    assert source.nnz == later.nnz


# Hashed columns.


@pytest.mark.parametrize("bits", [4, 8, 20])
def test_hashed_columns(folder, bits):
    source = counted(folder, settings=TextSettings(hashed=bits))
    X, names = by_sklearn()
    columns = (hash_strings(Strings.of(names)) >> np.uint64(64 - bits)).astype(np.int64)
    fold = sparse.csr_matrix((np.ones(len(names), np.int64), (np.arange(len(names)), columns)), (len(names), 2**bits))
    expected = (X @ fold).tocsr()
    expected.sort_indices()
    assert_same(matrix(source), expected)
    assert source.n_features == 2**bits
    total = np.asarray(X.sum(axis=0)).ravel()
    found = source.strings(0, 2**bits).to_list()
    assert len(set(found)) == 2**bits
    for column in {0, 1, 2**bits - 1, *columns[:30].tolist()}:
        sharing = [name for name, c in zip(names, columns, strict=True) if c == column]
        best = min(sharing, key=lambda name: (-total[names.index(name)], name), default="")
        others = f"{best} +{len(sharing) - 1} #{column}" if len(sharing) > 1 else best
        assert found[column] == (others or f"#{column}")
        assert source.names(np.array([column])) == [found[column]]
    assert source.frequencies(0, 2**bits).tolist() == expected.getnnz(axis=0).tolist()


def test_more_columns_than_32_bits_can_number(folder):
    source = counted(folder, settings=TextSettings(hashed=33))
    X, names = by_sklearn()
    columns = (hash_strings(Strings.of(names)) >> np.uint64(31)).astype(np.int64)
    order = np.argsort(columns)
    assert len(np.unique(columns)) == len(columns) and columns.max() > 2**32
    found = matrix(source)
    assert found.shape == (len(ROWS), 2**33) and found.indices.dtype == np.int64
    expected = X[:, order].tocsr()
    expected.sort_indices()
    np.testing.assert_array_equal(found.indices, columns[order][expected.indices])
    np.testing.assert_array_equal(found.data, expected.data)
    assert source.names(columns) == names
    last = int(columns[order[-1]])
    assert source.frequencies(last - 1, last + 2).tolist() == [0, X[:, [order[-1]]].nnz, 0]


def test_names_of_hashed_columns_are_unique_whatever_the_terms(folder):
    rows = [[f"#{k}" for k in range(64)], [f"x +1 #{k}" for k in range(64)]]
    source = counted(folder, rows, (), TextSettings(hashed=6))
    names = source.strings(0, 64).to_list()
    assert len(set(names)) == 64
    parts = [source.strings(start, start + 8).to_list() for start in range(0, 64, 8)]
    assert [name for part in parts for name in part] == names


def test_hashed_tfidf_that_was_fitted_before(folder):
    bits, settings = 9, TextSettings(hashed=9, tfidf=True, norm=None)
    df = counted(folder / "old", ROWS[:90], settings=settings).frequencies(0, 2**bits)
    numbers = Numbers("frequencies", "int64", 2**bits, 64, 128)
    write_numbers(folder, numbers, [df])
    merge = {"stored": StoredFrequencies(folder, numbers)}
    source = counted(folder, ROWS[90:], settings=settings, merge=merge, n_documents=90)
    counts = matrix(counted(folder / "counts", ROWS[90:], settings=TextSettings(hashed=bits)))
    idf = np.log((90 + 1) / (df + 1)) + 1
    np.testing.assert_array_equal(matrix(source).data, counts.data * idf[counts.indices])


def test_hashed_and_binary(folder):
    source = counted(folder, settings=TextSettings(hashed=5, binary=True))
    values = matrix(source)
    assert values.data.max() == 1 and source.kind == "binary"


# Into a store, and the odd ends.


def test_a_store_of_counted_texts(folder, tmp_path):
    source = counted(folder, y=Y)
    write_store(source, tmp_path / "store")
    dataset = open_dataset(tmp_path / "store")
    X, names = by_sklearn()
    assert (dataset.n_rows, dataset.n_features, dataset.nnz, dataset.kind) == (*X.shape, X.nnz, "count")
    assert_counts(dataset.source, X.toarray(), Y)
    assert dataset.source.names(np.array([3, 0])) == [names[3], names[0]]


def test_counted_texts_in_object_storage(s3):
    source = counted(Folder(s3) / "work", ROWS[:20], (7,), target=1500, y=Y[:20])
    assert len(source.columns.ranges) > 1
    X, names = by_sklearn(ROWS[:20])
    assert_same(matrix(source), X)
    assert source.strings(0, len(names)).to_list() == names


def test_it_travels_light(folder):
    source = counted(folder, y=Y)
    sent = pickle.dumps(source)
    assert len(sent) < 6000
    assert_same(matrix(pickle.loads(sent)), matrix(source))


def test_no_documents_and_no_terms(folder):
    source = counted(folder, [], ())
    assert (source.n_rows, source.n_blocks, source.n_features, source.nnz) == (0, 0, 0, 0)
    assert matrix(source).shape == (0, 0)
    source = counted(folder, [[], []], ())
    assert matrix(source).shape == (2, 0)


def test_values_of_one_only_are_binary_where_it_is_known(folder):
    assert counted(folder, [["a", "b"], ["a"]], ()).kind == "binary"
    assert counted(folder, [["a", "b", "b"], ["a"]], (), merge={"fewest": 2}).kind == "binary"


def test_ranges_of_other_segments_are_refused(folder):
    segments = write_segments(folder, ROWS, [100])
    ranges = merge_segments(folder, segments)
    others = write_segments(folder, ROWS[:150], [70])
    with pytest.raises(StoreError, match=r"damaged|merge all segments again"):
        list(CountedTexts(folder, others, ranges, TextSettings()).blocks(0, 1))


@pytest.mark.parametrize("name", ["0.terms", "range-00001"])
def test_damage_is_named(folder, name, tmp_path):
    source = counted(folder)
    path = tmp_path / "work" / name
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(StoreError, match=f"{name} is truncated, damaged"):
        list(source.blocks(0, 1))
    path.unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        list(source.blocks(0, 1))
