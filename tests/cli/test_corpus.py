"""The generated corpus: the same block wherever it is read, and an answer that the counts give back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from nfs_dask.arrays.block import check_labels, check_structure
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.errors import InputError


def matrix_of(corpus, start=0, stop=None):
    blocks = list(corpus.blocks(start, corpus.n_blocks if stop is None else stop))
    csr = [sp.csr_array((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)) for b in blocks]
    return sp.vstack(csr, format="csr"), np.concatenate([b.codes for b in blocks])


@pytest.fixture(scope="module")
def corpus():
    return GeneratedCorpus(3000, 2000, n_classes=3, planted=5, seed=7, block_rows=700)


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


def test_fingerprints_tell_corpora_apart():
    kinds = [{}, {"seed": 1}, {"planted": 9}, {"n_classes": 3}, {"words_per_document": 61}, {"block_rows": 99}]
    prints = [GeneratedCorpus(100, 500, **kind).fingerprint for kind in kinds]
    assert len(set(prints)) == len(kinds)
    assert GeneratedCorpus(100, 500).fingerprint == prints[0]


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
