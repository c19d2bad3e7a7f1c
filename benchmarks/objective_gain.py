"""What features gain: the log likelihood of sparse multinomial naive Bayes above that of no features."""

from __future__ import annotations

from typing import Any

import numpy as np


def gain(f: np.ndarray, support: np.ndarray) -> float:
    """How much a support adds to the log likelihood of no features, in nats; ``f`` are smoothed totals, (C, m)."""
    f = f[:, support]
    shares, together = f / f.sum(axis=0), f.sum(axis=1) / f.sum()
    return float((f * np.log(shares / together[:, None])).sum())


def gain_of_bound(f: np.ndarray, model: Any) -> float:
    """The most that any choice of as many features adds."""
    g = f.sum(axis=0)
    return float(model.upper_bound_ - (g * np.log(g / g.sum())).sum())
