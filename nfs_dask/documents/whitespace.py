"""Texts of nothing but white space, found without making Python's strings of them."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only
from nfs_dask.text.strings import Strings


def blank(strings: Strings) -> Array:
    """Which strings have nothing but white space, as ``str.isspace`` sees it."""
    found = np.zeros(len(strings), bool)
    _find_blank(read_only(strings.offsets), read_only(strings.text), found)
    return found


@kernel
def _find_blank(offsets, text, found):
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        while at < end:
            a = text[at]
            if a == 32 or 9 <= a <= 13 or 28 <= a <= 31:
                at += 1
                continue
            if a < 0xC2 or at + 1 >= end:
                break
            b = text[at + 1]
            if a == 0xC2 and (b == 0x85 or b == 0xA0):
                at += 2
                continue
            if at + 2 >= end:
                break
            c = text[at + 2]
            spaces = a == 0xE2 and b == 0x80 and (0x80 <= c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF)
            medium = a == 0xE2 and b == 0x81 and c == 0x9F
            ogham = a == 0xE1 and b == 0x9A and c == 0x80
            ideographic = a == 0xE3 and b == 0x80 and c == 0x80
            if not (spaces or medium or ogham or ideographic):
                break
            at += 3
        found[i] = at >= end
