"""Numbers of pairs against the counts they were made of."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.statistics import word_pairs
from nfs_dask.statistics.word_pairs import FEW, OWN, WordPairs, fit_together, side_by_side


def counts_of(dtype: str, n_tables: int, n_words: int, seed: int = 0) -> np.ndarray:
    """Half of them about where pairs begin to have a number of their own, the others of any size."""
    rng = np.random.default_rng(seed)
    shape, most = (2, n_tables, n_words), np.iinfo(dtype).max
    near, any_size = rng.integers(FEW - 2, FEW + 2, shape), rng.integers(0, most, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, near, any_size).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("n_tables", [1, 3])
def test_numbers_stand_for_the_counts(dtype: str, n_tables: int) -> None:
    counts = counts_of(dtype, n_tables, 500)
    pairs = WordPairs.of(counts)
    assert pairs.numbers.shape == counts.shape[1:]
    np.testing.assert_array_equal(pairs.pairs[pairs.numbers], np.moveaxis(counts.astype(np.int64), 0, -1))
    np.testing.assert_array_equal(pairs.counts(), counts)
    few = (counts < FEW).all(axis=0)
    assert (pairs.numbers[few] < OWN).all()
    assert len(np.unique(pairs.numbers[~few])) == len(pairs.own) == np.count_nonzero(~few)


def test_every_pair_of_small_counts_has_its_number() -> None:
    counts = np.stack(np.meshgrid(np.arange(FEW), np.arange(FEW), indexing="ij")).reshape(2, 1, -1)
    pairs = WordPairs.of(counts)
    assert len(pairs.own) == 0
    np.testing.assert_array_equal(pairs.counts(), counts)
    np.testing.assert_array_equal(np.sort(pairs.numbers[0]), np.arange(OWN))


@pytest.mark.parametrize("n_words", [49_152, 49_153, 70_000])
def test_numbers_are_wider_where_many_words_are_frequent(n_words: int) -> None:
    counts = np.random.default_rng(1).integers(FEW, 10**6, (2, 1, n_words))
    pairs = WordPairs.of(counts)
    assert pairs.numbers.dtype == (np.uint16 if n_words <= 49_152 else np.uint32)
    np.testing.assert_array_equal(pairs.counts(), counts)


def test_damaged_counts_stay_within_the_pairs() -> None:
    """Numbers are places in an array, that kernels take without looking whether they are there."""
    counts = np.array([[[-1, 3, -(2**40)]], [[2, -5, -1]]])
    np.testing.assert_array_equal(WordPairs.of(counts).counts(), counts)


@pytest.mark.parametrize("n_tables", [1, 2])
def test_side_by_side_they_are_those_of_all_words(n_tables: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of("uint32", n_tables, 301)
    parts = [WordPairs.of(counts[..., a:b]) for a, b in ((0, 100), (100, 101), (101, 200), (200, 301))]
    np.testing.assert_array_equal(side_by_side(parts).counts(), counts)
    assert side_by_side(parts[:1]) is parts[0]
    nbytes, n_own = 301 * n_tables * 2, sum(len(part.own) for part in parts)
    assert fit_together(parts, nbytes)
    assert not fit_together(parts, nbytes - 1)
    monkeypatch.setattr(word_pairs, "NARROW", OWN + n_own)
    assert fit_together(parts, nbytes)
    monkeypatch.setattr(word_pairs, "NARROW", OWN + n_own - 1)
    assert not fit_together(parts, nbytes)
