"""Sizes, durations and counts as people write and read them. Inside the package they are plain integers and floats."""

from __future__ import annotations

import re

from nfs_dask.errors import InputError

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtp]?)(i?)b?\s*", re.IGNORECASE)


def parse_bytes(text: str | int) -> int:
    """Bytes in ``"2GiB"``, ``"500 MB"`` or a plain number.

    >>> parse_bytes("1KiB"), parse_bytes("1.5kB"), parse_bytes(7)
    (1024, 1500, 7)
    """
    if isinstance(text, int):
        return text
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"size {text!r} is not understood; write a number and a unit, such as 512MiB or 2GB")
    number, prefix, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[prefix.lower()])


_BANDWIDTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:bit|bps)(?:/s|ps)?\s*", re.IGNORECASE)


def parse_bandwidth(text: str | float) -> float:
    """Bits per second in ``"10Gbit"``, ``"100 Mbit/s"`` or a plain number.

    >>> parse_bandwidth("10Gbit"), parse_bandwidth("2.5 Gbit/s"), parse_bandwidth(1e9)
    (10000000000.0, 2500000000.0, 1000000000.0)
    """
    if isinstance(text, int | float):
        return float(text)
    match = _BANDWIDTH.fullmatch(text)
    speed = 0.0 if match is None else float(match[1]) * 1000.0 ** _POWERS[match[2].lower()]
    if speed <= 0:
        raise InputError(
            f"network {text!r} is not understood; write bits per second with a unit, such as 10Gbit or 100Mbit"
        )
    return speed


def format_bytes(n: float) -> str:
    """Bytes in the unit that leaves at most four digits.

    >>> format_bytes(512), format_bytes(3 * 2**20), format_bytes(1.5 * 2**40)
    ('512 B', '3.0 MiB', '1.5 TiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(n) < 1000:
            return f"{n:.0f} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:,.1f} PiB"


def format_at_least(n: float) -> str:
    """A number of bytes to ask for: in readable units as ever, but never rounded down.

    >>> format_at_least(2**30), format_at_least(1.01 * 2**30)
    ('1.0 GiB', '1.1 GiB')
    """
    text = format_bytes(n)
    return text if parse_bytes(text.replace(",", "")) >= n else format_bytes(1.05 * n)


def format_seconds(s: float) -> str:
    """A duration at the precision a person wants.

    >>> format_seconds(0.25), format_seconds(42), format_seconds(3660)
    ('0.25 s', '42 s', '1 h 01 min')
    """
    if s < 0.01:
        return "<0.01 s"
    if s < 10:
        return f"{s:.2g} s"
    if s < 120:
        return f"{s:.0f} s"
    minutes = round(s / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def several(n: float, one: str, many: str) -> str:
    """A number of things in words.

    >>> several(1, "value", "values"), several(2.05, "read", "reads"), several(1200, "row", "rows")
    ('1 value', '2.05 reads', '1,200 rows')
    """
    number = f"{n:,}" if isinstance(n, int) else f"{n:g}"
    return f"{number} {one if n == 1 else many}"
