"""Where in a text its terms stand: the settings that compiled code counts by, applied to one text, token by token.

For a few texts that people look at. Every term is found as often as `counting` counts it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nfs_dask.text.settings import TextSettings, Tokenizer
from nfs_dask.text.stemming import stem_function
from nfs_dask.text.unicode import fold_text


class TermSpan(NamedTuple):
    """A term, and the stretch of the text as it was given that it was made of."""

    term: str
    start: int
    stop: int


class _Token(NamedTuple):
    """A stretch of folded text, and the string that it became."""

    text: str
    start: int
    stop: int


def term_spans(text: str, settings: TextSettings, tokenizer: Tokenizer | None = None) -> list[TermSpan] | None:
    """All terms of a text in the order in which they are made; None where a tokenizer's tokens are not in the text.

    Parameters
    ----------
    text
        As it was given.
    settings
        Of the data that the terms are of.
    tokenizer
        The one that the settings name, if they do. Its tokens are looked for, one after the other, in the folded text.
    """
    folded, origins = _folded(text, settings)
    if settings.analyzer == "char":
        found: Iterable[_Token] | None = _characters(folded, settings.ngrams)
    elif settings.analyzer == "char_wb":
        found = _characters_of_words(folded, settings.ngrams)
    else:
        found = _words(folded, settings, tokenizer)
    if found is None:
        return None
    return [TermSpan(one.text, *_stretch(text, origins, one)) for one in found]


def _folded(text: str, settings: TextSettings) -> tuple[str, list[int]]:
    """The folded text, and which character of the text each of its characters comes from; at the end, their number.

    Folding looks at one character at a time, but for a final sigma, which is one character like any sigma.
    """
    folded = fold_text(text, settings.lowercase, settings.strip_accents)
    if folded == text:
        return text, list(range(len(text) + 1))
    widths = [len(fold_text(character, settings.lowercase, settings.strip_accents)) for character in text]
    origins = [i for i, width in enumerate(widths) for _ in range(width)]
    assert len(origins) == len(folded), "folding is by characters"
    return folded, [*origins, len(text)]


def _stretch(text: str, origins: Sequence[int], token: _Token) -> tuple[int, int]:
    """Where a stretch of folded text stood; with the accents that were written after its last character."""
    if token.start >= token.stop:
        return origins[token.start], origins[token.start]
    start, stop = origins[token.start], origins[token.stop - 1] + 1
    while stop < origins[token.stop] and unicodedata.combining(text[stop]):
        stop += 1
    return start, stop


def _words(folded: str, settings: TextSettings, tokenizer: Tokenizer | None) -> Iterator[_Token] | None:
    """N-grams of tokens, the short ones first. A stretch has the stop words between its tokens, and words unstemmed."""
    tokens = _found_in(folded, tokenizer(folded)) if tokenizer is not None else _matched(folded, settings.token_pattern)
    if tokens is None:
        return None
    left_out = frozenset(settings.stop_words or ())
    kept = [token for token in tokens if token.text not in left_out]
    if settings.stem is not None:
        stem = stem_function(settings.stem)
        kept = [token._replace(text=stem(token.text)) for token in kept]
    shortest, longest = settings.ngrams
    return (
        _Token(" ".join(token.text for token in kept[i : i + n]), kept[i].start, kept[i + n - 1].stop)
        for n in range(shortest, min(longest, len(kept)) + 1)
        for i in range(len(kept) - n + 1)
    )


def _matched(folded: str, pattern: str) -> list[_Token]:
    """What ``findall`` of the pattern gives: its group where it has one, which may be nothing."""
    compiled = re.compile(pattern)
    group = compiled.groups
    return [
        _Token(match[group] or "", *(match.span(group) if match[group] is not None else (match.start(),) * 2))
        for match in compiled.finditer(folded)
    ]


def _found_in(folded: str, tokens: Iterable[str]) -> list[_Token] | None:
    """Tokens in their places, each after the last one: as words by themselves if they are there, else within one."""
    found: list[_Token] = []
    end = 0
    for token in tokens:
        start = _place_of(token, folded, end)
        if start < 0:
            return None
        end = start + len(token)
        found.append(_Token(token, start, end))
    return found


def _place_of(token: str, folded: str, first: int) -> int:
    before = r"(?<!\w)" if re.match(r"\w", token) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", token) else ""
    alone = re.compile(before + re.escape(token) + after).search(folded, first)
    return folded.find(token, first) if alone is None else alone.start()


def _characters(folded: str, ngrams: tuple[int, int]) -> Iterator[_Token]:
    """N-grams of characters, where a run of white space is one space."""
    places, joined = [], []
    for run in re.finditer(r"\s\s+|.", folded, re.DOTALL):
        joined.append(" " if len(run[0]) > 1 else run[0])
        places.append(run.span())
    shortest, longest = ngrams
    for n in range(shortest, min(longest, len(joined)) + 1):
        for i in range(len(joined) - n + 1):
            yield _Token("".join(joined[i : i + n]), places[i][0], places[i + n - 1][1])


def _characters_of_words(folded: str, ngrams: tuple[int, int]) -> Iterator[_Token]:
    """N-grams of characters of words with a space on either side; one no longer than n is a term once, itself."""
    shortest, longest = ngrams
    for word in re.finditer(r"\S+", folded):
        padded, first = f" {word[0]} ", word.start() - 1
        for n in range(shortest, longest + 1):
            for i in range(max(1, len(padded) - n + 1)):
                inside = (max(first + i, word.start()), min(first + i + n, word.end()))
                yield _Token(padded[i : i + n], *inside)
            if n >= len(padded):
                break
