"""Settings of texts that are taken but contradict one another, as scikit-learn's vectorizers warn of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings, Tokenizer
from nfs_dask.text.strings import Strings

MOST_NAMED = 5  # words in a warning


def contradictions(
    settings: TextSettings, tokenizer: Tokenizer | None = None, vocabulary: Strings | None = None
) -> Iterator[str]:
    """What to tell the user: parameters that do nothing beside others, and words that no text can have."""
    yield from _idle(settings)
    if settings.analyzer == "word" and settings.stop_words:
        yield from _stop_words_torn(settings, tokenizer, settings.stop_words)
    if vocabulary is not None:
        yield from _never_met(settings, vocabulary)


def _idle(settings: TextSettings) -> Iterator[str]:
    if settings.analyzer != "word":
        given = (("stop_words", settings.stop_words), ("token_pattern", settings.token_pattern != DEFAULT_PATTERN))
        for name in [name for name, value in given if value]:
            yield f"{name}= is about words, and analyzer={settings.analyzer!r} makes none; leave {name} out"
    elif settings.tokenizer is not None and settings.token_pattern != DEFAULT_PATTERN:
        yield "token_pattern= does nothing beside tokenizer=, which finds the words; leave one of them out"
    if settings.norm == "l1" and not settings.tfidf:
        yield "norm='l1' is of tf-idf weights, and values are counts; add tfidf=True, or leave norm out"


def _stop_words_torn(settings: TextSettings, tokenizer: Tokenizer | None, words: Sequence[str]) -> Iterator[str]:
    """Stop words that are read as other words, such as "don't" as "don"."""
    alone = replace(settings, stop_words=None, ngrams=(1, 1), stem=None)
    try:
        counter = TermCounter(alone, tokenizer=tokenizer)
        counter.add(Strings.of(words))
        found = set(counter.finish().terms.to_list()) - set(words)
    except Exception:  # noqa: BLE001 - of a tokenizer, which will tell more when it reads texts
        return
    if found:
        yield (
            f"stop_words= do not fit how texts are cut into words: they are read as {_some(sorted(found))}, which "
            "are not among them; give stop words as they come out of a text"
        )


def _never_met(settings: TextSettings, vocabulary: Strings) -> Iterator[str]:
    """Terms that are not even among the terms of a text that is the term itself."""
    # A pattern or tokenizer may look at what is around a word, and the stem of a stem may be another.
    if settings.tokenizer is not None or settings.token_pattern != DEFAULT_PATTERN or settings.stem is not None:
        lost = [term for term in vocabulary.to_list() if settings.lowercase and term != term.lower()]
    else:
        counter = TermCounter(settings, known=vocabulary)
        counter.add(vocabulary)
        counted = counter.finish()
        rows = np.repeat(np.arange(len(vocabulary)), np.diff(counted.indptr))
        met = np.zeros(len(vocabulary), bool)
        met[rows[counted.ids == rows]] = True
        lost = [vocabulary[i].decode() for i in np.flatnonzero(~met).tolist()]
    if lost:
        yield (
            f"no text can have {len(lost):,} of the {len(vocabulary):,} terms of the vocabulary, such as "
            f"{_some(lost)}: texts are lowered, stripped and cut as the other parameters say; give terms as they come "
            "out of a text"
        )


def _some(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:MOST_NAMED])) + (", ..." if len(words) > MOST_NAMED else "")
