"""The generated corpus: the same block wherever it is read, and an answer that the counts give back."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from nfs_dask.arrays.block import check_labels, check_structure
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.errors import InputError
from nfs_dask.sources.source import Source


def matrix_of(corpus, start=0, stop=None):
    blocks = list(corpus.blocks(start, corpus.n_blocks if stop is None else stop))
    csr = [sp.csr_array((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)) for b in blocks]
    return sp.vstack(csr, format="csr"), np.concatenate([b.codes for b in blocks])


@pytest.fixture(scope="module")
def corpus():
    return GeneratedCorpus(3000, 2000, n_classes=3, planted=5, seed=7, block_rows=700)


def test_it_is_a_source(corpus):
    assert isinstance(corpus, Source)
    assert corpus.n_blocks == 5
    assert corpus.classes.tolist() == sorted(corpus.classes.tolist())


def test_blocks_are_sound_and_within_what_was_promised(corpus):
    row = 0
    for number, block in enumerate(corpus.blocks(0, corpus.n_blocks)):
        check_structure(block)
        check_labels(block, corpus.n_classes)
        matrix = sp.csr_array((block.data, block.indices, block.indptr), shape=(block.n_rows, block.n_features))
        assert matrix.has_canonical_format
        assert block.data.min() >= 1
        assert (block.number, block.first_row) == (number, row)
        assert block.nbytes <= corpus.block_nbytes
        assert block.nnz <= corpus.block_entries
        row += block.n_rows
    assert row == corpus.n_rows


def test_a_block_depends_on_nothing_but_its_number(corpus):
    whole, codes = matrix_of(corpus)
    part, part_codes = matrix_of(pickle.loads(pickle.dumps(corpus)), 2, 4)
    rows = slice(2 * corpus.block_rows, 4 * corpus.block_rows)
    assert (whole[rows] != part).nnz == 0
    assert np.array_equal(codes[rows], part_codes)


def test_the_planted_words_are_those_whose_counts_differ_most(corpus):
    X, codes = matrix_of(corpus)
    rates = np.stack([X[codes == c].sum(axis=0) / X[codes == c].sum() for c in range(3)])
    for c in range(3):
        lead = rates[c] - np.delete(rates, c, axis=0).max(axis=0)
        found = np.argsort(-lead)[: corpus.planted]
        assert set(corpus.names(found)) == set(corpus.planted_words(c))


def test_the_background_is_zipf(corpus):
    X, _ = matrix_of(GeneratedCorpus(5000, 1000, planted=0))
    counts = X.sum(axis=0)
    expected = np.log1p(1 / np.arange(1, 1001)) / np.log(1001) * counts.sum()
    # Poisson noise: five standard deviations for each of the 1,000 words.
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 5)


def test_documents_have_the_length_asked_for():
    X, _ = matrix_of(GeneratedCorpus(4000, 800, words_per_document=30))
    lengths = X.sum(axis=1)
    assert lengths.mean() == pytest.approx(30, rel=0.02)
    assert lengths.min() >= 1


def test_names_are_words_and_no_two_alike(corpus):
    names = corpus.names(np.arange(corpus.n_features))
    assert len(set(names)) == corpus.n_features
    planted = {word for c in range(3) for word in corpus.planted_words(c)}
    assert {name for name in names if not name.startswith("w0")} == planted


def test_fingerprints_tell_corpora_apart():
    kinds = [{}, {"seed": 1}, {"planted": 9}, {"n_classes": 3}, {"words_per_document": 61}, {"block_rows": 99}]
    prints = [GeneratedCorpus(100, 500, **kind).fingerprint for kind in kinds]
    assert len(set(prints)) == len(kinds)
    assert GeneratedCorpus(100, 500).fingerprint == prints[0]


def test_many_classes_and_many_words_have_names_too():
    corpus = GeneratedCorpus(10, 5000, n_classes=30, planted=20)
    words = [word for c in range(30) for word in corpus.planted_words(c)]
    assert len(set(words)) == 600
    assert corpus.classes.tolist() == sorted(corpus.classes.tolist())


def test_memory_does_not_grow_with_the_documents():
    def peak(n_documents):
        tracemalloc.start()
        for _ in GeneratedCorpus(n_documents, 10_000, block_rows=500).blocks(0, -(-n_documents // 500)):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(8000) < 1.2 * peak(2000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_documents": 0},
        {"n_classes": 0},
        {"planted": -1},
        {"planted": 50},
        {"words_per_document": 0},
        {"block_rows": 0},
    ],
)
def test_an_impossible_corpus_is_refused(wrong):
    with pytest.raises(InputError):
        GeneratedCorpus(**{"n_documents": 10, "n_features": 100} | wrong)
