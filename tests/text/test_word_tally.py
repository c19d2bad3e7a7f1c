"""Words and pairs counted by sorting, against scikit-learn, and against the table that looks terms up."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.text import word_tally
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings
from nfs_dask.text.strings import Strings
from nfs_dask.text.word_tally import counts_by_sorting
from tests.text.test_counting import accents, expected, stop_lists, texts, unpack

sorted_ranges = st.sampled_from([(1, 1), (1, 2), (2, 2)])
patterns = st.sampled_from([DEFAULT_PATTERN, r"\w+", r"(?u)\b\w\w\w+\b"])


def counted(texts, settings, **options):
    """What a counter gives out, of texts that come in two lots; its terms and rows are in order."""
    counter = TermCounter(settings, in_order=True, **options)
    half = len(texts) // 2
    counter.add(Strings.of(texts[:half]))
    counter.add(Strings.of(texts[half:]))
    assert counter.n_rows == len(texts)
    found = counter.finish()
    names = [found.terms[i] for i in range(len(found.terms))]
    assert names == sorted(names)
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        assert np.all(np.diff(found.ids[start:stop]) > 0)
    return found


def check(texts, settings, **options):
    rows, terms = unpack(counted(texts, settings, **options))
    theirs, their_terms = expected(texts, settings)
    assert (rows, terms) == (theirs, sorted(their_terms))


@given(texts, sorted_ranges, st.booleans(), accents, patterns, stop_lists)
def test_words_and_pairs_are_scikit_learns(texts, ngrams, lowercase, strip_accents, pattern, stop_words):
    settings = TextSettings(
        ngrams=ngrams, lowercase=lowercase, strip_accents=strip_accents, token_pattern=pattern, stop_words=stop_words
    )
    assert counts_by_sorting(settings)
    check(texts, settings)


@given(texts, sorted_ranges, st.sampled_from([1, 3, 20]), st.integers(1, 8))
def test_collisions_and_growth_change_nothing(texts, ngrams, hash_bits, capacity):
    check(texts, TextSettings(ngrams=ngrams), hash_bits=hash_bits, capacity=capacity)


@given(texts, sorted_ranges, st.integers(1, 12))
def test_numbers_without_room_for_rows_give_the_same(texts, ngrams, bits):
    """As with so many words and rows that 64 bits do not hold them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_tally, "_BITS", bits)
        check(texts, TextSettings(ngrams=ngrams))


@pytest.mark.parametrize(
    "settings",
    [
        TextSettings(ngrams=(1, 3)),
        TextSettings(analyzer="char", ngrams=(1, 2)),
        TextSettings(token_pattern=r"\S+", ngrams=(1, 2)),
        TextSettings(token_pattern=r"[a-z ]+", ngrams=(1, 2)),
    ],
)
def test_other_terms_are_looked_up_and_put_in_order(settings):
    assert not counts_by_sorting(settings)
    check(["to be or not to be\x01be", "", "be\x01 be\x01be or  be"], settings)


def test_a_tokenizers_tokens_may_hold_what_comes_before_a_space():
    settings = TextSettings(ngrams=(1, 2), tokenizer="here")
    assert not counts_by_sorting(settings)
    found = counted(["a\x01,a,b", "a,\x01"], settings, tokenizer=lambda text: text.split(","))
    assert found.terms.to_list() == sorted(["a\x01", "a", "b", "a\x01 a", "a b", "\x01", "a \x01"])


def test_a_counter_starts_afresh_and_what_it_gave_out_stays():
    counter = TermCounter(TextSettings(ngrams=(1, 2)), in_order=True)
    empty = counter.nbytes
    counter.add(Strings.of(["b1 a1 b1", "zz"] * 1000))
    assert counter.nbytes > 2 * empty
    first = counter.finish()
    assert counter.nbytes == empty and counter.n_rows == 0
    counter.add(Strings.of(["yy xx"]))
    assert unpack(counter.finish())[1] == ["xx", "yy", "yy xx"]
    assert unpack(first)[1] == ["a1", "a1 b1", "b1", "b1 a1", "zz"]


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("n_words", [50, 200_000])
def test_memory_is_known_before_it_is_taken(ngrams, n_words):
    """Twice what a counter says bounds what it holds when it gives out what was counted."""
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(n_words)]
    texts = [" ".join(words[i] for i in row) for row in random.integers(0, n_words, (20_000, 15))]
    strings = Strings.of(texts)

    def held_and_said() -> tuple[int, int]:
        counter = TermCounter(TextSettings(ngrams=ngrams), in_order=True)
        counter.add(strings)
        said = counter.nbytes
        before = counter._tally._table.nbytes + counter._tally._ids.nbytes + counter._tally._indptr.nbytes
        tracemalloc.start()
        counter.finish()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return before + peak, said

    held, said = min(held_and_said() for _ in range(3))  # what other threads take meanwhile is counted, too
    assert held <= 2 * said
