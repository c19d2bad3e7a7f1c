"""Of accuracies beside ours: where a way is better, where level, where worse, and by how much."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.tables import markdown

SURE = 2.0  # standard errors that a difference must have
ROUNDING = 1e-9  # of a mean of accuracies

Difference = tuple[str, str, float, float]  # set, k, how far the way is above ours, the standard error of that


def summed_up(sets: dict[str, Any], ours: str, classifier: str) -> str:
    """A row for each way: of each k on how many sets ours is better, level and worse; and how far in points."""
    ways = list(dict.fromkeys(way for found in sets.values() for way in found["ways"] if way != ours))
    ks = list(dict.fromkeys(str(k) for found in sets.values() for k in found["ks"]))
    rows = [_row(way, ks, found) for way in ways if (found := _differences(sets, way, classifier))]
    numbers = [f"k = {int(k):,}" for k in ks]
    return markdown(["way", *numbers, "ours ahead, mean", "ahead at most", "behind at most"], rows)


def beside(sets: dict[str, Any], ours: str, classifiers: tuple[str, ...]) -> list[str]:
    """A table for each classifier, each with a line that says of what."""
    told = f"{ours.capitalize()} beside each way: better / level / worse on how many sets, and points"
    return [f"{told}; {name}:\n\n{summed_up(sets, ours, name)}" for name in classifiers]


def _differences(sets: dict[str, Any], way: str, classifier: str) -> list[Difference]:
    """Of each set and k where the way has an answer."""
    out = []
    for name, found in sets.items():
        for k, of in found["ways"].get(way, {"ks": {}})["ks"].items():
            if classifier in of:
                out.append((name, k, of[classifier]["above ours"], of[classifier]["error"]))
    return out


def _row(way: str, ks: list[str], found: list[Difference]) -> list[Any]:
    cells = [_counted([one for one in found if one[1] == k]) for k in ks]
    mean = -sum(apart for _, _, apart, _ in found) / len(found)
    by = sorted(found, key=lambda one: one[2])
    return [way, *cells, f"{100 * mean + 0.0:+.1f}", _extreme(by[0], -1), _extreme(by[-1], 1)]


def _counted(found: list[Difference]) -> str:
    """How often ours is better, level and worse."""
    if not found:
        return "-"
    better = sum(apart < -SURE * error - ROUNDING for _, _, apart, error in found)
    worse = sum(apart > SURE * error + ROUNDING for _, _, apart, error in found)
    return f"{better} / {len(found) - better - worse} / {worse}"


def _extreme(one: Difference, sign: int) -> str:
    """Points and where, if there is a difference of this sign."""
    name, k, apart, _ = one
    return f"{100 * abs(apart):.1f} ({name}, k = {int(k):,})" if sign * apart > ROUNDING else "nowhere"
