"""Sizes and durations in and out of the words people use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import InputError
from nfs_dask.units import GiB, KiB, MiB, format_bytes, format_seconds, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("17", 17),
        ("17 B", 17),
        ("1kB", 1000),
        ("1k", 1000),
        ("1KiB", KiB),
        ("512MiB", 512 * MiB),
        ("512 mib", 512 * MiB),
        (" 2GiB ", 2 * GiB),
        ("1.5 GB", 1_500_000_000),
        ("3TiB", 3 * 1024 * GiB),
        (4096, 4096),
    ],
)
def test_sizes_are_read_as_people_write_them(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "lots", "-1", "1e9", "12 XB", "1,5 GB", "GiB", "1 GiB extra"])
def test_a_size_that_is_not_one_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="512MiB"):
        parse_bytes(text)


@given(st.integers(min_value=0, max_value=2**55))
def test_a_size_survives_being_written_and_read(n):
    assert parse_bytes(format_bytes(n)) == pytest.approx(n, rel=0.06, abs=1)


@given(st.integers(min_value=0, max_value=999 * 2**50))
def test_a_written_size_is_short(n):
    assert len(format_bytes(n)) <= len("1000.0 PiB")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (1.7e-5, "<0.01 s"),
        (0.01, "0.01 s"),
        (3, "3 s"),
        (61.4, "61 s"),
        (150, "2 min"),
        (3599, "1 h 00 min"),
        (3660, "1 h 01 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_durations_at_the_precision_a_person_wants(seconds, expected):
    assert format_seconds(seconds) == expected
