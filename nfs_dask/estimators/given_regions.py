"""Regions of documents as users give them: a number, slices, or a matrix for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfs_dask.containers import unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.errors import InputError
from nfs_dask.estimators.inputs import numeric
from nfs_dask.prediction.column_selection import side_by_side
from nfs_dask.store.text_facts import TextFacts


def holds_matrices(X: Any) -> bool:
    """Whether X is a list of matrices, one for each region, rather than one matrix or documents."""
    return isinstance(X, (list, tuple)) and any(isinstance(one, Dataset) or _is_matrix(one) for one in X)


def joined_regions(matrices: Sequence[Any]) -> Any:
    """The matrices of all regions as one, region after region."""
    if any(isinstance(one, Dataset) for one in matrices):
        raise InputError(
            "a list of regions holds a Dataset; give matrices, or one Dataset of a store with all regions side by "
            "side, such as nfs_dask.ingest(..., regions=[...]) makes"
        )
    wrong = [type(one).__name__ for one in matrices if not _is_matrix(one)]
    if wrong:
        raise InputError(f"a list of regions holds a {wrong[0]} beside matrices; give one matrix for each region")
    matrices = [unwrapped(one) for one in matrices]
    widths = [int(one.shape[1]) for one in matrices]
    if len(set(widths)) > 1:
        raise InputError(
            f"the regions have {_listed(widths)} columns; make them over one vocabulary, so that the same column of "
            "each is the same word"
        )
    return side_by_side([numeric(one) for one in matrices])


def number_of_regions(regions: Any, n_features: int, n_matrices: int | None, text: TextFacts | None) -> int:
    """How many regions of equal width the columns are.

    Parameters
    ----------
    regions
        What the user says: a number, slices, or None to go by the data.
    n_features
        Columns of all regions together.
    n_matrices
        How many matrices were given, of a region each; None: a single one of all of them.
    text
        What the store says of its texts, if it was made of any.
    """
    found = n_matrices if text is None else text.n_regions
    if regions is None:
        return 1 if found is None else found
    wanted = _given(regions, n_features)
    if found is not None and wanted != found:
        data = f"{found} matrices" if text is None else f"texts of {found} region(s), {', '.join(text.regions)}"
        raise InputError(f"regions={regions!r}, and X has {data}; leave regions out, or give data of such regions")
    if n_features % wanted:
        raise InputError(
            f"regions={regions!r}, and X has {n_features:,} columns, which are not {wanted} equal parts; give each "
            "region the columns of one vocabulary, also of words that it never has"
        )
    return wanted


def _given(regions: Any, n_features: int) -> int:
    if isinstance(regions, (int, np.integer)) and not isinstance(regions, bool):
        if regions >= 1:
            return int(regions)
    elif isinstance(regions, (list, tuple)) and regions and all(isinstance(one, slice) for one in regions):
        _check_slices(regions, n_features)
        return len(regions)
    raise InputError(
        f"regions={regions!r}; give a number of 1 or more, slices such as [slice(0, 100), slice(100, 200)], or None to "
        "go by the data"
    )


def _check_slices(slices: Sequence[slice], n_features: int) -> None:
    """Refuse slices that are not all columns, cut into equal parts in their order."""
    width = n_features // len(slices)
    for region, one in enumerate(slices):
        first, stop = one.start or 0, n_features if one.stop is None else one.stop
        if (first, stop, one.step or 1) != (region * width, (region + 1) * width, 1):
            raise InputError(
                f"region {region} is {one}, and X has {n_features:,} columns; regions lie side by side in their order, "
                f"are equally wide and together have all columns: give {_even(len(slices), n_features)}, and leave "
                "other columns out of X"
            )


def _even(n_regions: int, n_features: int) -> str:
    """What slices would do."""
    width = n_features // n_regions
    return f"slice(0, {width}), slice({width}, {2 * width}), ..." if n_regions > 1 else f"slice(0, {n_features})"


def _is_matrix(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2


def _listed(widths: Sequence[int]) -> str:
    return f"{', '.join(f'{width:,}' for width in widths[:-1])} and {widths[-1]:,}"
