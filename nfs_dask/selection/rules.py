"""Rules that choose a number of features from what a path says of each.

References: NFS section 3.6, the elbow heuristic; docs/mathematics.md 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.path_table import Path
from nfs_dask.units import several

BEND = 0.05  # of all gain; a curve that is nowhere so far above its chord has no elbow to speak of


def elbow(path: Path) -> Chosen:
    """The k where the curve of gains, over log k, is farthest above the line between its ends.

    Gains grow ever more slowly, and over millions of features nearly all of them bring next to nothing: over k itself
    the elbow would move with the number of features that happen to be there. Over log k it asks when another doubling
    stops being worth what it was. Where that is at no k, since gains grow ever faster with log k, as they may over
    millions of features that all say a little, it goes by k itself.
    """
    ks, gains = path.ks, np.asarray(path.value, np.float64)
    finite = np.isfinite(gains)
    if finite.sum() < 3:
        raise InputError(
            f'choose("elbow") looks at a curve, and this path has {int(finite.sum())} values of k with a finite gain; '
            "make it with at least three, such as ks=None for many"
        )
    ks, gains = ks[finite], gains[finite]
    span = gains[-1] - gains[0]
    height = (gains - gains[0]) / span if span > 0 else np.zeros(len(gains))
    above, over = height - np.log(ks / ks[0]) / np.log(ks[-1] / ks[0]), "log k"
    best = int(np.argmax(above))
    if span > 0 and best in (0, len(ks) - 1):
        above, over = height - (ks - ks[0]) / (ks[-1] - ks[0]), "k, as over log k it has no elbow,"
        best = int(np.argmax(above))
    near = np.flatnonzero(above >= above[best] - 0.01)
    table = _records(ks, gain=gains, share=gains / gains[-1] if gains[-1] else gains, above_chord=above)
    k, share = int(ks[best]), gains[best] / gains[-1] if gains[-1] else 1.0
    why = (
        f"{several(k, 'feature has', 'features have')} {share:.1%} of the gain of {int(ks[-1]):,}; here the curve over "
        f"{over} is farthest above the line between its ends"
    )
    why += ", so that each further doubling brings less than the average one" if over == "log k" else ""
    if over != "log k" or above[best] < BEND:
        why += (
            '. But it hardly bends: gains grow evenly with log k or faster, and another rule says more, such as "near"'
        )
    return Chosen(k, rule="elbow", why=why, table=table, interval=(int(ks[near[0]]), int(ks[near[-1]])))


def smallest_error(ks: Array, errors: Array, what: str) -> Chosen:
    """The k of smallest predicted error; of equal ones the smallest."""
    best = int(np.argmin(errors))
    near = np.flatnonzero(errors <= errors[best] + 0.001)
    k = int(ks[best])
    why = (
        f"{k:,} features have the smallest {what}, {errors[best]:.4f}; "
        f"from {int(ks[near[0]]):,} to {int(ks[near[-1]]):,} features it is larger by 0.001 at most"
    )
    table = _records(ks, error=errors)
    return Chosen(k, rule="error", why=why, table=table, interval=(int(ks[near[0]]), int(ks[near[-1]])))


def _records(ks: Array, **columns: Array) -> list[dict[str, Any]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [{"k": int(k), **dict(zip(columns, row, strict=True))} for k, row in zip(ks.tolist(), rows, strict=True)]
