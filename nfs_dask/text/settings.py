"""What of a text becomes a feature, in scikit-learn's words, checked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from nfs_dask.errors import InputError

Analyzer = Literal["word", "char", "char_wb"]
Accents = Literal["ascii", "unicode"]
Norm = Literal["l1", "l2"]
Tokenizer: TypeAlias = Callable[[str], Iterable[str]]

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
MOST_HASHED = 28  # bits: stores name each of the columns, and models hold numbers for each
MOST_NGRAM = 64
ADDED = ("stem", "stem_version")  # fields that files of earlier versions lack: what they stand for was not there


@dataclass(frozen=True)
class TextSettings:
    """How documents become terms, and terms become values. Terms are as scikit-learn's vectorizers make them."""

    analyzer: Analyzer = "word"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: Accents | None = None
    token_pattern: str = DEFAULT_PATTERN
    tokenizer: str | None = None  # qualified name of a callable, which is never stored
    stop_words: tuple[str, ...] | None = None  # sorted
    binary: bool = False
    tfidf: bool = False
    sublinear_tf: bool = False
    norm: Norm | None = "l2"  # of tf-idf rows
    hashed: int | None = None  # bits of the column number; None: a column for each term
    stem: str | None = None  # a language of Snowball's: words are stemmed after stop words were left out
    stem_version: str | None = None  # of PyStemmer, whose rules change now and then

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> TextSettings:
        """From a file: anything but what `to_json` makes raises KeyError, TypeError or InputError."""
        values = {field.name: found[field.name] for field in fields(cls) if field.name not in ADDED}
        values |= {name: found.get(name) for name in ADDED}
        values["ngrams"] = tuple(values["ngrams"])
        values["stop_words"] = None if values["stop_words"] is None else tuple(values["stop_words"])
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse what no text can be read by."""
        for name, allowed in (("analyzer", get_args(Analyzer)), ("strip_accents", (None, *get_args(Accents)))):
            if getattr(self, name) not in allowed:
                other = "; a function that makes words is a tokenizer=" if callable(getattr(self, name)) else ""
                raise InputError(f"{name}={getattr(self, name)!r}; give one of {', '.join(map(repr, allowed))}{other}")
        if self.norm not in (None, *get_args(Norm)):
            raise InputError(f"norm={self.norm!r}; give 'l2', 'l1' or None")
        self._check_ngrams()
        self._check_pattern()
        self._check_stem()
        if self.stop_words is not None and not all(isinstance(word, str) for word in self.stop_words):
            raise InputError("stop_words are strings; give a list of them, a language such as 'english', or None")
        if self.hashed is not None and not (type(self.hashed) is int and 1 <= self.hashed <= MOST_HASHED):
            raise InputError(
                f"hashed={self.hashed!r}; give the bits of a column number, 1 to {MOST_HASHED}, or None: terms that "
                "are found get columns of their own, however many they are"
            )
        if self.sublinear_tf and not self.tfidf:
            raise InputError("sublinear_tf=True is a part of tf-idf; add tfidf=True")

    def _check_ngrams(self) -> None:
        pair = self.ngrams
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(type(n) is int for n in pair)):
            raise InputError(f"ngrams={pair!r}; give the shortest and the longest, such as (1, 2)")
        if not 1 <= pair[0] <= pair[1] <= MOST_NGRAM:
            raise InputError(f"ngrams={pair!r}; the shortest is 1 or more, the longest no shorter, and at most 64")

    def _check_stem(self) -> None:
        if not all(isinstance(value, str | None) for value in (self.stem, self.stem_version)):
            raise InputError(f"stem={self.stem!r}; give a language such as 'english' or 'german', or None")
        if self.stem is not None and self.analyzer != "word":
            raise InputError(f"stem= is about words, and analyzer={self.analyzer!r} makes none; leave one of them out")

    def _check_pattern(self) -> None:
        if not isinstance(self.token_pattern, str):
            raise InputError(f"token_pattern={self.token_pattern!r}; give a regular expression as a string")
        try:
            groups = re.compile(self.token_pattern).groups
        except re.error as error:
            raise InputError(f"token_pattern={self.token_pattern!r} is no regular expression: {error}") from None
        if groups > 1:
            raise InputError(f"token_pattern={self.token_pattern!r} has {groups} groups; at most one may be captured")


@dataclass(frozen=True)
class Filters:
    """Which terms of a corpus become columns."""

    min_df: int | float = 1  # documents, or a share of them
    max_df: int | float = 1.0
    max_features: int | None = None  # the most frequent ones, ties to the lower column

    def check(self) -> None:
        """Refuse what keeps nothing or means nothing."""
        for name, value in (("min_df", self.min_df), ("max_df", self.max_df)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not ((whole and value >= 0) or (isinstance(value, float) and 0.0 <= value <= 1.0)):
                raise InputError(f"{name}={value!r}; give a number of documents, or a share from 0.0 to 1.0")
        most = self.max_features
        if most is not None and not (type(most) is int and most >= 1):
            raise InputError(f"max_features={most!r}; give 1 or more, or None for all")

    def document_range(self, n_documents: int) -> tuple[float, float]:
        """Fewest and most documents of a term that is kept."""
        low = self.min_df if isinstance(self.min_df, int) else self.min_df * n_documents
        high = self.max_df if isinstance(self.max_df, int) else self.max_df * n_documents
        if high < low:
            raise InputError(
                f"max_df={self.max_df!r} is less than min_df={self.min_df!r} of {n_documents:,} documents; "
                "no term would be left"
            )
        return low, high
