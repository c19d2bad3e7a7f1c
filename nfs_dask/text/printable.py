"""Texts of others, such that they can be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with whatever could move a terminal's cursor or change its colours written out.

    Labels and names come from data, and data may hold anything.

    >>> print(printable("spam\x1b[31m"))
    spam\x1b[31m
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
