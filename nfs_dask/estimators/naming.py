"""What a fitted estimator keeps of where its features came from: their names, or the store that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.redaction import without_secrets
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import Source
from nfs_dask.text.column_names import Named, some_of
from nfs_dask.text.strings import Strings


@dataclass(frozen=True)
class GivenNames:
    """Names that came with data in memory."""

    array: Named  # (n_features,)

    def names(self, columns: Array) -> Sequence[str] | None:
        return some_of(self.array, columns)


@dataclass(frozen=True)
class StoredNames:
    """Names that are in a store, which is opened when they are asked for.

    In this process by the place that was given. What leaves it with a model is the place without secrets, which is
    opened with the credentials that are found there.
    """

    location: str
    n_features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", self.location)
        object.__setattr__(self, "location", without_secrets(self.location))

    def names(self, columns: Array) -> Sequence[str] | None:
        return self.source.names(columns)

    @cached_property
    def source(self) -> Source:
        source = open_source(getattr(self, "_place", self.location))
        if source.n_features != self.n_features:
            raise StoreError(
                f"{self.location} has {source.n_features:,} features, and the model was fitted to {self.n_features:,}: "
                "it was made anew since; fit again"
            )
        return source

    def __getstate__(self) -> dict[str, Any]:
        return {"location": self.location, "n_features": self.n_features}


KnownNames: TypeAlias = GivenNames | StoredNames


def known_names(source: Source, given: Array | None) -> KnownNames | None:
    """Who knows the names of features, without holding the documents; None where they have none.

    ``given`` are all of them, where scikit-learn keeps them already.
    """
    if source.names(np.zeros(1, np.int64)) is None:
        return None
    stored = stored_names(source)
    if stored is not None:
        return stored
    names: Named | None = source.names_in_memory if given is None else given
    if names is None:
        names = source.names(np.arange(source.n_features))
    return GivenNames(names if isinstance(names, Strings) else np.asarray(names, object))


def stored_names(source: Source) -> StoredNames | None:
    """The store that a source reads, if there is a single one; None also where names were given beside it."""
    return None if source.location is None else StoredNames(source.location, source.n_features)
