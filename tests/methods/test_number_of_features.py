from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from nfs_dask.errors import DataWarning, InputError
from nfs_dask.methods.number_of_features import number_to_keep


@pytest.mark.parametrize(
    ("k", "kept"),
    [
        (1, 1),
        (50, 50),
        (np.int64(7), 7),
        (0.1, 5),
        (0.99, 49),
        (1e-9, 1),
        (np.float32(0.5), 25),
        (Fraction(1, 5), 10),
        ("all", 50),
    ],
)
def test_what_k_means(k: Any, kept: int) -> None:
    assert number_to_keep(k, 50) == kept


def test_more_than_there_are() -> None:
    with pytest.warns(DataWarning, match="more than the 50 features"):
        assert number_to_keep(51, 50) == 50


@pytest.mark.parametrize("k", [0, -3, 0.0, -0.5, 1.5, float("nan"), float("inf"), True, None, "most", [3]])
def test_refused(k: Any) -> None:
    with pytest.raises(InputError, match="k="):
        number_to_keep(k, 50)


def test_one_point_zero_is_refused_in_favour_of_all() -> None:
    with pytest.raises(InputError, match='write k="all"'):
        number_to_keep(1.0, 50)
