"""Grids of parameters of which a diagonal runs by default."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def each_once(*axes: Iterable[Any]) -> list[Any]:
    """All combinations; those beyond the ones that have each value of each axis at least once are slow."""
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    chosen = {tuple(i % len(axis) for axis in values) for i in range(longest)}
    grid = [(places, [axis[i] for axis, i in zip(values, places, strict=True)]) for places in _places(values)]
    return [pytest.param(*one, marks=() if places in chosen else pytest.mark.slow) for places, one in grid]


def _places(values: list[list[Any]]) -> Iterable[tuple[int, ...]]:
    return itertools.product(*(range(len(axis)) for axis in values))
