"""Names that matrices of terms carry with them: scipy and Dask have no place for the names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from nfs_dask.arrays.block import Array
from nfs_dask.containers import NAMES, library_of, text_names
from nfs_dask.text.strings import Strings

Named: TypeAlias = Strings | Sequence[str] | Array  # one name for each column


def with_names(matrix: Any, names: Named | None) -> Any:
    """A matrix of scipy or Dask that knows what its columns are called; others as they are.

    What is made of it by other libraries, be it of some of its rows, no longer does.
    """
    if names is not None and library_of(matrix) in ("scipy", "dask"):
        setattr(matrix, NAMES, names)
    return matrix


def names_with(matrix: Any) -> Named | None:
    """Names that a matrix carries, or those of the columns of a frame if they are texts; None where there are none."""
    names: Named | None = vars(matrix).get(NAMES) if library_of(matrix) in ("scipy", "sparse", "dask") else None
    if names is not None and len(names) == matrix.shape[1]:
        return names
    return text_names(matrix)


def some_of(names: Named, columns: Array) -> list[str]:
    """The names of some columns."""
    if isinstance(names, Strings):
        return [names[column].decode() for column in columns.tolist()]
    return [str(names[column]) for column in columns.tolist()]
