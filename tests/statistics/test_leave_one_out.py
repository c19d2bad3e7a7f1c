"""Features of documents against counting again without each of them, reference vectors, and scikit-learn."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB

from nfs_dask.arrays.block import Block
from nfs_dask.errors import InputError
from nfs_dask.solvers.logistic.likelihood import class_scores, prior_offsets
from nfs_dask.statistics.leave_one_out import RegionSums, RegionTable, laid_out
from nfs_dask.statistics.region_kernels import SHORT, SLOTS
from tests.helpers.region_features import region_features


def block_of(X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Block:
    rows, columns = np.nonzero(X)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return Block(indptr, columns.astype(np.int32), X[rows, columns], codes.astype(np.int32), X.shape[1], weights)


@dataclass
class Corpus:
    """Dense documents (n, R, V), and all that a feature depends on."""

    X: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None
    n_classes: int
    smoothing: float
    separate: bool
    support: np.ndarray | None
    normalize: bool

    @property
    def block(self) -> Block:
        n, n_regions, n_words = self.X.shape
        return block_of(self.X.reshape(n, n_regions * n_words), self.codes, self.weights)

    def counted(self, weights: np.ndarray) -> np.ndarray:
        """(C, R, V) or, shared, (C, 1, V)."""
        each = np.stack([np.tensordot(weights * (self.codes == c), self.X, 1) for c in range(self.n_classes)])
        return each if self.separate else each.sum(axis=1, keepdims=True)

    def one_document(self, i: int, weights: np.ndarray) -> np.ndarray:
        """(R, C) the features of a document by a table counted under these weights, one token after the other."""
        F = self.counted(weights)
        words = range(self.X.shape[2]) if self.support is None else self.support
        out = np.zeros((self.X.shape[1], self.n_classes))
        for r in range(self.X.shape[1]):
            f = F[:, r if self.separate else 0]
            p = (f + self.smoothing) / (f.sum(axis=1, keepdims=True) + self.smoothing * f.shape[1])
            tokens = sum(self.X[i, r, w] for w in words)
            for w in words:
                out[r] += self.X[i, r, w] * np.log(p[:, w])
            if self.normalize and tokens > 0:
                out[r] /= tokens
        return out

    def expected(self, leave_out: bool) -> np.ndarray:
        whole = np.ones(len(self.X)) if self.weights is None else self.weights.astype(float)
        rows = []
        for i in range(len(self.X)):
            weights = whole.copy()
            weights[i] -= min(weights[i], 1.0) if leave_out else 0.0
            rows.append(self.one_document(i, weights))
        each = np.stack(rows)
        return each[:, :, 1] - each[:, :, 0] if self.n_classes == 2 else each

    def table(self) -> tuple[RegionTable, np.ndarray]:
        weights = np.ones(len(self.X), np.int64) if self.weights is None else self.weights
        F = self.counted(weights)
        if not self.separate:
            F = F[:, 0]
        n_regions, n_words = self.X.shape[1:]
        counts = F if self.support is None else F[..., self.support]
        return RegionTable(n_regions, n_words, F.sum(axis=-1), self.smoothing, self.support), counts


@st.composite
def corpora(draw: Any) -> Corpus:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_regions, n_words, n_classes = (int(rng.integers(*ends)) for ends in ((1, 9), (1, 4), (1, 8), (2, 5)))
    X = rng.integers(0, 4, (n, n_regions, n_words)) * (rng.random((n, n_regions, n_words)) < 0.4)
    if draw(st.booleans()):
        X = X * 0.37
    weights = draw(st.sampled_from(["none", "whole", "real"]))
    return Corpus(
        X,
        rng.integers(0, n_classes, n),
        {"none": None, "whole": rng.integers(0, 4, n), "real": rng.random(n) * 2}[weights],
        n_classes,
        draw(st.sampled_from([1.0, 0.3, 1e-3, 1e-9])),
        draw(st.booleans()),
        np.flatnonzero(rng.random(n_words) < 0.6) if draw(st.booleans()) else None,
        draw(st.booleans()),
    )


@given(corpora(), st.booleans())
def test_leaving_out_is_counting_again_without(corpus: Corpus, leave_out: bool) -> None:
    table, counts = corpus.table()
    features = region_features(corpus.block, table, counts, normalize=corpus.normalize, leave_out=leave_out)
    np.testing.assert_allclose(features, corpus.expected(leave_out), rtol=1e-11, atol=1e-11)


@given(corpora(), st.lists(st.integers(0, 7), max_size=3))
def test_panels_of_words_give_the_same_bits(corpus: Corpus, cuts: list[int]) -> None:
    table, counts = corpus.table()
    width = counts.shape[-1]
    sums = RegionSums(corpus.block, table, leave_out=True)
    edges = [0, *sorted(min(cut, width) for cut in cuts), width]
    for start, stop in itertools.pairwise(edges):
        sums.add(counts[..., start:stop], start)
    whole = region_features(corpus.block, table, counts, normalize=True, leave_out=True)
    np.testing.assert_array_equal(sums.features(normalize=True), whole)


@given(corpora(), st.booleans())
def test_whole_numbers_have_the_same_bits_without_the_shortcut(corpus: Corpus, leave_out: bool) -> None:
    table, counts = corpus.table()
    sums = [RegionSums(corpus.block, table, leave_out=leave_out) for _ in range(2)]
    sums[1].in_parts = True
    for one in sums:
        one.add(laid_out(counts))
    np.testing.assert_array_equal(sums[0].logs, sums[1].logs)
    assert [one.places.tolist() for one in sums] == [sums[0].places.tolist()] * 2


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "uint32", "int64", "float64"])
@pytest.mark.parametrize("most", [100, 2**31])
def test_counts_are_laid_out_by_word_in_any_type(dtype: str, most: int) -> None:
    n_classes = 2 if dtype[0] == "f" else 3  # whole numbers of two classes are pairs
    top = min(most, np.iinfo("int64" if dtype[0] == "f" else dtype).max)
    counts = np.random.default_rng(0).integers(0, top, (n_classes, 1, 9))
    counts[0, 0, 0] = top
    laid = laid_out(counts.astype(dtype))
    assert isinstance(laid, np.ndarray)
    np.testing.assert_array_equal(laid, counts)
    assert laid.dtype == ("float64" if dtype[0] == "f" else "int32" if counts.max() < 2**31 else "int64")
    assert np.moveaxis(laid, 0, -1).flags.c_contiguous


@given(corpora(), st.integers(1, 300), st.booleans())
def test_frequent_words_have_the_same_bits_without_the_shortcut(corpus: Corpus, times: int, leave_out: bool) -> None:
    """Counts on both sides of what has a number of its own, and of what has its logarithm looked up."""
    corpus.n_classes, corpus.codes = 2, corpus.codes % 2
    table, counts = corpus.table()
    counts = counts * times ** np.arange(counts.shape[-1])
    sums = [RegionSums(corpus.block, table, leave_out=leave_out) for _ in range(2)]
    sums[1].in_parts = True
    for one in sums:
        one.add(counts)
    np.testing.assert_array_equal(sums[0].logs, sums[1].logs)


def golden_corpus(inputs: dict[str, Any], docs: list[Any], normalize: bool, y: list[int] | None = None) -> Corpus:
    X = np.zeros((len(docs), len(docs[0]), inputs["vocabulary_size"]), np.int64)
    for i, regions in enumerate(docs):
        for r, words in enumerate(regions):
            for word, count in words.items():
                X[i, r, int(word)] = count
    codes = np.zeros(len(docs), np.int64) if y is None else np.array(y)
    return Corpus(X, codes, None, 2, inputs["smooth"], False, None, normalize)


@pytest.mark.parametrize("name", ["normalised", "unnormalised"])
def test_reference_vectors(golden: Any, name: str) -> None:
    for case in golden("hybrid.json"):
        inputs, expected, normalize = case["inputs"], case["expected"][name], name == "normalised"
        corpus = golden_corpus(inputs, inputs["docs"], normalize, inputs["y"])
        table, counts = corpus.table()

        def close(block: Block, leave_out: bool, wanted: Any, *, case: Any = case, at: Any = (table, counts)) -> None:
            features = region_features(block, *at, normalize=name == "normalised", leave_out=leave_out)
            np.testing.assert_allclose(features, wanted, rtol=0, atol=1e-11, err_msg=case["id"])

        close(corpus.block, True, np.array(expected["loo_b"])[:, 1:])
        close(corpus.block, False, np.array(expected["in_sample_b"])[:, 1:])
        if inputs.get("test"):
            tested = golden_corpus(inputs, inputs["test"], normalize)
            close(replace(tested.block, codes=np.full(len(tested.X), -1)), False, np.array(expected["test_b"])[:, 1:])

        # A third class, which nothing is in, shows the features of each class.
        wide = replace(table, totals=np.append(table.totals, 0)), np.vstack([counts, np.zeros_like(counts[:1])])
        each = region_features(corpus.block, *wide, normalize=normalize, leave_out=True)
        np.testing.assert_allclose(each[:, :, :2], expected["loo_class_features"], rtol=0, atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_with_slopes_of_one_it_is_naive_bayes(n_classes: int) -> None:
    rng = np.random.default_rng(3)
    X, codes = rng.poisson(0.6, (60, 3, 40)), rng.integers(0, n_classes, 60)
    weights = rng.integers(1, 4, 60)
    corpus = Corpus(X, codes, weights, n_classes, 0.7, False, None, False)
    features = region_features(corpus.block, *corpus.table(), normalize=False, leave_out=False)
    class_weight = np.bincount(codes, weights, n_classes)
    theta = np.concatenate([np.log(class_weight[1:] / class_weight[0]), np.ones(3)])
    scores = class_scores(features, theta)
    posteriors = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    words = X.sum(axis=1)
    naive = MultinomialNB(alpha=0.7).fit(words, codes, weights)
    np.testing.assert_allclose(posteriors, naive.predict_proba(words), rtol=1e-9)

    fixed = class_scores(
        features, np.append(np.zeros(n_classes - 1), np.ones(3)), prior_offsets(class_weight, codes, np.zeros(60))
    )
    np.testing.assert_allclose(fixed - fixed[:, :1], scores - scores[:, :1], atol=1e-9)


def test_a_class_that_becomes_empty_has_equal_words() -> None:
    corpus = Corpus(np.array([[[3, 1, 0, 0]], [[0, 1, 2, 0]]]), np.array([0, 1]), None, 2, 1.0, False, None, False)
    features = region_features(corpus.block, *corpus.table(), normalize=False, leave_out=True)
    others = (np.array([0, 1, 2, 0]) + 1) / 7
    np.testing.assert_allclose(features[0], np.log(others) @ [3, 1, 0, 0] - 4 * np.log(1 / 4), rtol=1e-14)


@pytest.mark.parametrize("smoothing", [1e-4, 1e-6, 1e-10, 1e-14])
def test_little_smoothing_does_not_show_what_rounding_left(smoothing: float) -> None:
    """Words of one document only, and classes of one, have no counts without it, also where counts are real."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.gamma(1, 1, (12, 2, 9)) * (rng.random((12, 2, 9)) < 0.3)
        codes, weights = np.arange(12) // 11, None if seed % 2 else rng.uniform(0.1, 1, 12)
        corpus = Corpus(X, codes, weights, 2, smoothing, False, None, seed % 3 > 0)
        table, counts = corpus.table()
        features = region_features(corpus.block, table, counts, normalize=corpus.normalize, leave_out=True)
        np.testing.assert_allclose(features, corpus.expected(leave_out=True), rtol=1e-12, atol=1e-12)


def test_what_is_left_of_huge_counts_is_exact() -> None:
    """The table has 2^60 of a word, and without the document 3: doubles would not tell them from 0."""
    block = Block(np.array([0, 1]), np.array([0]), np.array([2**60]), np.array([0]), 2)
    table = RegionTable(1, 2, np.array([2**60 + 3, 4]))
    features = region_features(block, table, np.array([[2**60 + 3, 0], [2, 2]]), normalize=True, leave_out=True)
    assert features[0, 0] == pytest.approx(np.log(3 / 6) - np.log(4 / 5), rel=1e-14)


@pytest.mark.parametrize("order", ["sorted", "reversed", "repeated"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint64", "float32"])
def test_entries_may_come_in_any_order_and_type(dtype: str, order: str) -> None:
    data, indices = np.ones(4, dtype), np.array([0, 1, 3, 4], np.uint16)
    if order == "reversed":
        indices = indices[::-1].copy()
    if order == "repeated":
        data, indices = np.ones(5, dtype), np.array([4, 3, 1, 1, 0], np.int64)
    block = Block(np.array([0, len(data)]), indices, data, np.array([1]), 6)
    X = np.zeros((1, 2, 3), np.int64)
    np.add.at(X.reshape(-1), indices, 1)
    corpus = Corpus(X, np.array([1]), None, 2, 1.0, False, None, True)
    features = region_features(block, *corpus.table(), normalize=True, leave_out=True)
    np.testing.assert_allclose(features, corpus.expected(True), atol=1e-14)


def test_documents_and_regions_without_words_are_zero() -> None:
    block = block_of(np.zeros((3, 8)), np.array([0, 1, 1]))
    table = RegionTable(2, 4, np.array([7, 9]))
    counts = np.array([[1, 2, 3, 1], [4, 3, 1, 1]])
    np.testing.assert_array_equal(
        region_features(block, table, counts, normalize=True, leave_out=True), np.zeros((3, 2))
    )
    assert region_features(
        block_of(np.zeros((0, 8)), np.zeros(0)), table, counts, normalize=True, leave_out=True
    ).shape == (
        0,
        2,
    )


def test_what_cannot_be_is_refused() -> None:
    totals = np.array([4, 5])
    with pytest.raises(InputError, match="above 0"):
        RegionTable(1, 3, totals, smoothing=0.0)
    with pytest.raises(InputError, match="at least one"):
        RegionTable(0, 3, totals)
    with pytest.raises(InputError, match="each of the 2 regions"):
        RegionTable(2, 3, np.ones((2, 3)))
    for support in ([2, 1], [0, 3], [-1]):
        with pytest.raises(InputError, match="ascend"):
            RegionTable(1, 3, totals, support=np.array(support))
    table, block = RegionTable(2, 3, totals), block_of(np.eye(6, dtype=np.int64)[:2], np.array([0, 1]))
    with pytest.raises(InputError, match="not 2 regions of 4"):
        RegionSums(block, RegionTable(2, 4, totals), leave_out=False)
    with pytest.raises(InputError, match="label missing"):
        RegionSums(replace(block, codes=np.array([0, -1])), table, leave_out=True)
    with pytest.raises(InputError, match="negative"):
        RegionSums(replace(block, data=np.array([1.0, -1.0])), table, leave_out=False)
    sums = RegionSums(block, table, leave_out=True)
    with pytest.raises(InputError, match="counts of shape"):
        sums.add(np.ones((3, 3)))
    with pytest.raises(InputError, match="words 1 to 3"):
        sums.add(np.ones((2, 3)), 1)


@pytest.mark.parametrize("n_regions", [1, 2, 3])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_regions_and_words_they_share_are_found(n_regions: int, separate: bool, dtype: str) -> None:
    """In rows that are short and long, with words that fall on one slot whether they are the same or not."""
    rng = np.random.default_rng(n_regions)
    n_words = 3 * SLOTS + 5
    rows = []
    for i in range(60):
        pool = np.arange(3) * SLOTS + rng.integers(5) if i % 3 else rng.permutation(n_words)[:90]
        n_entries = int(rng.integers(0, min(len(pool) * n_regions, 2 * SHORT) + 1))
        every = (np.arange(n_regions)[:, None] * n_words + pool).ravel()
        rows.append(np.sort(rng.choice(every, n_entries, replace=False)))
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns, data = np.concatenate(rows).astype(np.int32), rng.integers(1, 9, indptr[-1]).astype(dtype)
    block = Block(indptr, columns, data, np.zeros(60, np.int32), n_regions * n_words)
    totals = np.full((2, n_regions) if separate else 2, 10**6)
    sums = RegionSums(block, RegionTable(n_regions, n_words, totals), leave_out=True)
    regions = columns // n_words
    for i, row in enumerate(rows):
        here = slice(indptr[i], indptr[i + 1])
        assert sums.places[i].tolist() == (indptr[i] + np.searchsorted(row, np.arange(n_regions) * n_words)).tolist()
        assert sums.lengths[i].tolist() == [data[here][regions[here] == r].sum() for r in range(n_regions)]
        if len(sums.shared):
            words, times = np.unique(row % n_words, return_counts=True)
            np.testing.assert_array_equal(sums.shared[here], times[np.searchsorted(words, row % n_words)] > 1)
    assert (len(sums.shared) > 0) == (n_regions > 1 and not separate)
