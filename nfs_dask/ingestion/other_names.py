"""Parameters that scikit-learn's vectorizers call otherwise: whoever writes theirs is told ours."""

from __future__ import annotations

from collections.abc import Callable
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

    @wraps(function)
    def hinting(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in THEIRS.keys() & kwargs.keys():
            raise WrongTypeError(f"there is no {name}= here; write {THEIRS[name]}")
        return function(*args, **kwargs)

    return hinting
