"""A vocabulary that was given: its terms in ascending order, each with the number of its column.

    offsets, text                terms, ascending
    columns                      of each
    df                           of each, where it is known from before
    by_offsets, by_text          terms in the order of their columns, where that is another

Merging with it keeps these terms and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.files.arrayfile import ArrayFile, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.ranges import Sample, read_strings, sample_terms, terms_nbytes, thinned
from nfs_dask.text.ordering import take
from nfs_dask.text.strings import Strings


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is known of a vocabulary that was written."""

    name: str
    n_terms: int
    in_order: bool  # whether columns have the order of names
    terms_nbytes: int  # what the terms take where they are merged
    samples: tuple[Sample, ...]


def write_fixed(folder: Folder, name: str, terms: Strings, columns: Array, df: Array | None = None) -> Fixed:
    """Write distinct terms in ascending order, with their columns, which are the numbers from 0 on in any order.

    ``df`` are the document frequencies that tf-idf goes by where it was fitted before; None: those of the documents
    that are counted.
    """
    in_order = bool(np.all(columns[1:] > columns[:-1]))
    arrays = _strings("", terms) | {"columns": columns.astype(np.int64)}
    if df is not None:
        arrays["df"] = df.astype(np.int64)
    if not in_order:
        arrays |= _strings("by_", take(terms, np.argsort(columns)))
    samples = sample_terms(terms)
    write_arrays(folder, name, arrays, {"samples": [sample.to_json() for sample in samples]})
    return Fixed(name, len(terms), in_order, terms_nbytes(terms), thinned(samples))


def read_columns_names(file: ArrayFile, start: int, stop: int) -> Strings:
    """Terms of columns ``start .. stop - 1``."""
    return read_strings(file, start, stop, "by_" if "by_offsets" in file else "")


def _strings(key: str, strings: Strings) -> dict[str, Array]:
    start, stop = int(strings.offsets[0]), int(strings.offsets[-1])
    return {f"{key}offsets": strings.offsets - start, f"{key}text": strings.text[start:stop]}
