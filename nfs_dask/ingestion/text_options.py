"""What a user says of texts, as settings that tasks and stores keep."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, warn
from nfs_dask.ingestion.contradictions import contradictions
from nfs_dask.ingestion.stop_lists import stop_words_of
from nfs_dask.text.settings import Filters, TextSettings, Tokenizer
from nfs_dask.text.stemming import stemmer_version
from nfs_dask.text.strings import Strings


@dataclass(frozen=True)
class TermParameters:
    """The parameters of `ingest` that say how texts become terms, and which of them columns, as they were given."""

    analyzer: Any = TextSettings.analyzer
    ngrams: Any = TextSettings.ngrams
    lowercase: bool = TextSettings.lowercase
    strip_accents: Any = TextSettings.strip_accents
    token_pattern: str = TextSettings.token_pattern
    tokenizer: Tokenizer | None = None
    stop_words: str | Iterable[str] | None = None
    stem: str | None = TextSettings.stem
    min_df: int | float = Filters.min_df
    max_df: int | float = Filters.max_df
    max_features: int | None = Filters.max_features
    vocabulary: Iterable[str] | Mapping[str, int] | None = None
    hashed: int | None = TextSettings.hashed
    binary: bool = TextSettings.binary
    tfidf: bool = TextSettings.tfidf
    sublinear_tf: bool = TextSettings.sublinear_tf
    norm: Any = TextSettings.norm


@dataclass(frozen=True)
class TextOptions:
    """How terms are made, which of them are kept, and who splits texts into tokens."""

    settings: TextSettings
    filters: Filters
    vocabulary: tuple[Strings, Array] | None  # terms sorted, and the column of each; None: those found
    tokenizer: Tokenizer | None

    @property
    def shippable_tokenizer(self) -> str | None:
        """Where workers can import the tokenizer from; None where they cannot, or there is none."""
        return None if self.tokenizer is None else importable_name(self.tokenizer)


def make_terms(asked: TermParameters) -> TextOptions:
    """What was said of terms, checked before anything is read; warns of contradictions."""
    tokenizer = asked.tokenizer
    if tokenizer is not None and not callable(tokenizer):
        raise InputError(f"tokenizer={tokenizer!r}; give a function from a text to a list of tokens")
    if tokenizer is not None and asked.analyzer != "word":
        raise InputError(f"tokenizer= makes words, and analyzer={asked.analyzer!r} takes none; leave one out")
    taken = {field.name for field in fields(asked)}
    given = {field.name: _plain(getattr(asked, field.name)) for field in fields(TextSettings) if field.name in taken}
    if isinstance(asked.ngrams, (list, tuple, np.ndarray)):
        given["ngrams"] = tuple(map(_plain, asked.ngrams))
    given["stop_words"] = None if isinstance(asked.stop_words, str) else read_stop_words(asked.stop_words)
    given["tokenizer"] = None if tokenizer is None else qualified_name(tokenizer)
    made = TextSettings(**given)
    made.check()
    if isinstance(asked.stop_words, str):
        made = replace(made, stop_words=stop_words_of(asked.stop_words, made))
    if made.stem is not None:
        made = replace(made, stem_version=stemmer_version(made.stem))
    filters = Filters(_plain(asked.min_df), _plain(asked.max_df), _plain(asked.max_features))
    filters.check()
    fixed = None if asked.vocabulary is None else read_vocabulary(asked.vocabulary)
    for name, decides in (("vocabulary", fixed is not None), ("hashed", made.hashed is not None)):
        if decides and filters != Filters():
            raise InputError(
                f"{name}= says which columns there are, and min_df, max_df and max_features choose among those found; "
                "give one or the other"
            )
    if fixed is not None and made.hashed is not None:
        raise InputError("vocabulary= and hashed= both say what the columns are; give one of them")
    for message in contradictions(made, tokenizer, None if fixed is None else fixed[0]):
        warn(message)
    return TextOptions(made, filters, fixed, tokenizer)


def _plain(value: Any) -> Any:
    """A number, string or truth value of numpy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def read_stop_words(stop_words: Any) -> tuple[str, ...] | None:
    """Words that are left out, sorted."""
    if stop_words is None:
        return None
    words = list(stop_words) if isinstance(stop_words, Iterable) else [stop_words]
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"stop_words={stop_words!r}; give a language such as 'english', a list of words, or None")
    return tuple(sorted(set(words)))


def read_vocabulary(vocabulary: Any) -> tuple[Strings, Array]:
    """A user's vocabulary, sorted, with the column of each term: its number in a mapping, else its position.

    >>> terms, columns = read_vocabulary(["good", "bad"])
    >>> terms.to_list(), columns.tolist()
    (['bad', 'good'], [1, 0])
    """
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise InputError(f"vocabulary={vocabulary!r}; give a list of terms, or a mapping of terms to columns")
    if isinstance(vocabulary, (set, frozenset)):
        vocabulary = sorted(vocabulary)
    terms = list(vocabulary)
    columns = list(vocabulary.values()) if isinstance(vocabulary, Mapping) else list(range(len(terms)))
    if not terms:
        raise InputError("the vocabulary is empty; give at least one term, or None for the terms that are found")
    if not all(isinstance(term, str) for term in terms):
        raise InputError("a vocabulary holds strings; give a list of them, or a mapping of them to columns")
    if broken := [term for term in terms if not _is_unicode(term)]:
        raise InputError(f"the vocabulary has the term {broken[0]!r}, which UTF-8 cannot hold; leave it out")
    if len(set(terms)) < len(terms):
        twice = Counter(terms).most_common(1)[0][0]
        raise InputError(f"the vocabulary has the term {twice!r} more than once; give each once")
    if sorted(columns) != list(range(len(terms))):
        raise InputError(f"the columns of the vocabulary are not the numbers 0 to {len(terms) - 1}, each once")
    order = sorted(range(len(terms)), key=lambda i: terms[i].encode())
    return Strings.of(terms[i] for i in order), np.array([int(columns[i]) for i in order], np.int64)


def _is_unicode(text: str) -> bool:
    """Whether no half of a character stands alone."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def qualified_name(function: Callable[..., Any]) -> str:
    """What a callable is called where it was defined."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}:{name}"


def importable_name(function: Callable[..., Any]) -> str | None:
    """Where others can import this very function from; None for lambdas, closures and those of a script."""
    name = qualified_name(function)
    module, _, path = name.partition(":")
    if module == "__main__":
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return name if found is function else None
