"""Stems of words by Snowball's rules. Compiled code looks a word up; only one that was not met yet is stemmed anew."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings, TermIndex, grown

MOST_WORDS = 1 << 18  # that are remembered; then all are forgotten, so that memory does not grow with the corpus
MOST_NBYTES = 1 << 24  # of them, and of their stems
CAPACITY = 1024  # words, to begin with

MISSING = "stem= needs PyStemmer, which is not installed; pip install 'nfs-dask[languages]'"


def _stemmer_library() -> Any:
    try:
        import Stemmer
    except ImportError:
        raise InputError(MISSING) from None
    return Stemmer


def stem_function(language: str) -> Callable[[Any], Any]:
    """From a word, as a string or its UTF-8, to its stem of the same kind. For one thread at a time.

    >>> stem_function("english")("running")
    'run'
    """
    library = _stemmer_library()
    if language not in library.algorithms():
        raise InputError(f"stem={language!r}; give one of {', '.join(library.algorithms())}, or None")
    stem: Callable[[Any], Any] = library.Stemmer(language, 0).stemWord
    return stem


def stemmer_version(language: str) -> str:
    """Of the rules that are installed; refused where they do not know the language."""
    stem_function(language)
    return installed_version()


def installed_version() -> str:
    """Of the package: what the library says of itself is the same for releases with different rules."""
    return version("PyStemmer")


def other_version(settings: TextSettings) -> str | None:
    """What to tell where terms were stemmed by other rules than those installed; refused where there are none."""
    if settings.stem is None:
        return None
    here = stemmer_version(settings.stem)
    if here == settings.stem_version:
        return None
    return (
        f"the terms were stemmed by PyStemmer {settings.stem_version}, and PyStemmer {here} is here, which may stem "
        f"some words otherwise; pip install PyStemmer=={settings.stem_version}"
    )


class Stems:
    """Words that were met, with their stems: each distinct word is stemmed once."""

    def __init__(self, language: str, powers: Array) -> None:
        self._stem = stem_function(language)
        self._powers = powers
        self.clear()

    @property
    def nbytes(self) -> int:
        return self._words.nbytes + self._offsets.nbytes + self._text.nbytes

    def clear(self) -> None:
        """Forget all words."""
        self._n = 0
        self._words = TermIndex(CAPACITY)
        self._offsets, self._text = np.zeros(CAPACITY + 1, np.int64), np.empty(8 * CAPACITY, np.uint8)

    def find(self, text: Array, starts: Array, running: Array, n: int) -> tuple[Array, int]:
        """Which word of the table each of ``n`` tokens is, and the bytes of their stems with a space after each."""
        if self._n > MOST_WORDS or len(self._words.terms(self._n).text) + self._offsets[self._n] > MOST_NBYTES:
            self.clear()
        found = np.empty(n, np.int64)
        self._words.reserve(self._n, n, int(starts[n] - starts[0]))
        known = self._n
        self._n = kernels.find_words(*self._words.arrays, self._powers, text, starts, running, known, found)
        words = self._words.terms(self._n)
        stems = Strings.of(self._stem(words[i]) for i in range(known, self._n))
        self._offsets = grown(self._offsets, self._n + 1)
        self._text = grown(self._text, int(self._offsets[known] + stems.offsets[-1]))
        self._offsets[known + 1 : self._n + 1] = self._offsets[known] + stems.offsets[1:]
        self._text[self._offsets[known] : self._offsets[self._n]] = stems.text
        return found, int((self._offsets[found + 1] - self._offsets[found]).sum()) + n

    def put(self, found: Array, out: Array, starts: Array, running: Array) -> None:
        """Write the stems in place of tokens, as `kernels.split_words` writes tokens."""
        kernels.put_words(found, self._offsets, self._text, out, starts, running)
