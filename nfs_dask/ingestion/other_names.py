"""Parameters that scikit-learn's vectorizers call otherwise: whoever writes theirs is told ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from nfs_dask.errors import WrongTypeError

P = ParamSpec("P")
R = TypeVar("R")

THEIRS = {
    "ngram_range": "ngrams=(1, 2), for one",
    "use_idf": "tfidf=True for weights, and tfidf=False for counts",
    "n_features": "hashed=20 for 2**20 columns",
    "decode_error": "on_error= of nfs_dask.ingest",
}


def with_hints(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which says of a parameter of scikit-learn's what it is here."""
    return hinting(THEIRS)(function)


def hinting(theirs: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function say of parameters that it does not have what to write instead."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def hinted(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in theirs.keys() & kwargs.keys():
                raise WrongTypeError(f"there is no {name}= here; write {theirs[name]}")
            return function(*args, **kwargs)

        return hinted

    return decorate
