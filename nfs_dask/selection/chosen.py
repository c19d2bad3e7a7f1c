"""A number of features that a rule has chosen, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
        return _remade, (int(self), self.rule, self.why_, self.table, self.interval, self.alpha)

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


def _remade(
    k: int, rule: str, why: str, table: list[dict[str, Any]], interval: tuple[int, int], alpha: float | None
) -> Chosen:
    return Chosen(k, rule=rule, why=why, table=table, interval=interval, alpha=alpha)
