"""Results of selection: a number of features that a rule has chosen, and the base of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nfs_dask.markup import fragment, html_table


class Chosen(int):
    """A number of features that a rule has chosen; an estimator takes it as its k.

    Attributes
    ----------
    rule : str
    why_ : str
        What speaks for it, in a sentence.
    table : list of dict
        What the rule went by, for every k.
    interval : (int, int)
        The smallest and the largest k that the rule cannot tell from this one.
    alpha : float or None
        The smoothing that goes with it, where the rule chose that too.
    """

    rule: str
    why_: str
    table: list[dict[str, Any]]
    interval: tuple[int, int]
    alpha: float | None

    def __new__(
        cls,
        k: int,
        *,
        rule: str,
        why: str,
        table: Sequence[Mapping[str, Any]],
        interval: tuple[int, int] | None = None,
        alpha: float | None = None,
    ) -> Chosen:
        chosen = super().__new__(cls, k)
        chosen.rule, chosen.why_, chosen.alpha = rule, why, alpha
        chosen.table = [dict(row) for row in table]
        chosen.interval = interval or (int(k), int(k))
        return chosen

    def __reduce__(self) -> Any:
        named: dict[str, Any] = {
            "rule": self.rule,
            "why": self.why_,
            "table": self.table,
            "interval": self.interval,
            "alpha": self.alpha,
        }
        return partial(Chosen, **named), (int(self),)

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "k": int(self),
            "rule": self.rule,
            "why": self.why_,
            "interval": list(self.interval),
            "alpha": self.alpha,
            "table": self.table,
        }


class Tabular(ABC):
    """Something that shows itself as a headline above a table."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """A description in one line."""

    @abstractmethod
    def cells(self) -> list[list[str]]:
        """The table that is printed: its head, and rows of texts."""

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([self.headline, *lines])

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return fragment(html_table(head, rows, self.headline, numbers=[True] * len(head)))
