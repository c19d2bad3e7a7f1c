"""What a fitted classifier shows of itself in a notebook, above scikit-learn's own picture of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.markup import escaped, fragment, html_table, shortened_name
from nfs_dask.models.certificate_text import verdict_of
from nfs_dask.models.model import Model

SHOWN = 5  # features of each class
MOST_CLASSES = 6


class NotebookMixin:
    """A line about the choice of features, and those that speak for each class most."""

    model_: Model

    def _html_repr(self) -> str:
        diagram: str = super()._html_repr()  # type: ignore[misc]
        return f"{_fitted(self)}\n{diagram}" if hasattr(self, "model_") else diagram


def _fitted(estimator: Any) -> str:
    model = estimator.model_
    names = getattr(estimator, "_names", None)
    said = f"{model.method}: {len(model.support):,} of {model.n_features:,} features; {verdict_of(model)}"
    largest = np.sort(np.argsort(-model.class_count, kind="stable")[:MOST_CLASSES])
    tops = model.top_features(SHOWN, None if names is None else names.names)
    rows = [
        [shortened_name(name, 60), shortened_name(label, 60), f"{weight:+.3f}"]
        for label in model.classes[largest].tolist()
        for name, weight in tops[label]
    ]
    of = "" if len(largest) == model.n_classes else f", of {len(largest)} of {model.n_classes:,} classes"
    table = html_table(
        ["feature", "speaks for", "weight"],
        rows,
        f"Features that speak for a class most{of}",
        numbers=[False, False, True],
    )
    return fragment(f"<p>{escaped(said)}</p>", table)
