"""Classes of hardly any documents, which are mostly labels that somebody mistyped."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from nfs_dask.errors import DataWarning, warn
from nfs_dask.models.model import Model

RARE = 0.01  # of the documents that a class would have if all had as many
MOST_SHOWN = 5
ALIKE = 0.8  # of `difflib.SequenceMatcher.ratio`


def warn_of_rare_classes(model: Model) -> None:
    """Name the classes of hardly any documents, and what they may be misspellings of.

    Not of two classes: one of them is rare in many good data, and speaks beside the other all the same.
    """
    counts, labels = model.class_count[model.seen], model.classes[model.seen].tolist()
    if len(labels) < 3:
        return
    rare = counts < RARE * counts.mean()
    if not rare.any():
        return
    common = [label for label, few in zip(labels, rare, strict=True) if not few]
    shown = [f"{labels[i]!r} ({counts[i]:,.12g}{_alike(labels[i], common)})" for i in np.flatnonzero(rare)[:MOST_SHOWN]]
    more = f", and {int(rare.sum()) - MOST_SHOWN:,} more" if rare.sum() > MOST_SHOWN else ""
    warn(
        f"of {counts.sum():,.12g} documents, classes have hardly any: {', '.join(shown)}{more}; correct labels that "
        "are misspelled, or leave such documents out, and fit again",
        DataWarning,
    )


def _alike(label: object, common: Sequence[object]) -> str:
    """What a label may be a misspelling of, in words."""
    if not isinstance(label, str):
        return ""
    plain = {str(other).strip().casefold(): other for other in common}
    found = get_close_matches(label.strip().casefold(), plain, n=1, cutoff=ALIKE)
    return f", spelled nearly like {plain[found[0]]!r}" if found else ""
