"""What a figure or a table is here: a module of this folder, whose name is its id.

A module has

    TITLE                            what it shows, in a line
    run(settings) -> dict            the numbers, as JSON has them (arrays of numpy are welcome too)
    table(values) -> str             these numbers as Markdown
    draw(values) -> Figure           these numbers as a picture; a table needs none
    EXPECTED                         how long the full form takes, where what is published is another or a part
    summary(values) -> str           a shorter table for `docs/papers.md`, where the whole one is long

``run`` alone computes: tables and pictures are made of what it returned, also long after. Sets that are not there are
left out, by way of `Settings.each` or by raising `Missing`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from benchmarks.papers import results

PAPERS = {
    "nfs": "Naive feature selection (Askari, d'Aspremont and El Ghaoui)",
    "sc": "Sparse centroids (Calafiore and Fracastoro 2019)",
    "hyb": "Hybrid generative/discriminative classifiers (Raina, Shen, Ng and McCallum 2003)",
    "err": "Error estimates of multinomial naive Bayes for feature selection",
}


NO_TIME = "there was no time left for it"


class Missing(Exception):
    """Data that an experiment needs are not there; says which and why."""


class Unfinished(Exception):
    """The time that was given is over; what was found so far is kept."""


@dataclass(frozen=True)
class Settings:
    """What all experiments are told."""

    data: Path  # real sets, by name
    generated: Path = Path("benchmark-data")  # what stands in for large ones, written when it is not there yet
    quick: bool = False  # few splits, capped sets
    seed: int = 0
    results_folder: Path | None = None  # what other experiments found
    progress: Path | None = None  # where parts of a long run are kept until all are there
    until: float = float("inf")  # of `monotonic`: no part begins later
    partly: bool = False  # parts that did not begin are left out then, instead of `Unfinished`
    budget: float | None = None  # minutes of processor, after which a slow way to choose is ended

    def either(self, quick: Any, full: Any) -> Any:
        return quick if self.quick else full

    def each(self, names: Iterable[str], function: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        """What a function says about each name, or why it cannot: ``{"skipped": reason}``.

        Each answer is kept as it comes, so that a long run may be done in pieces.
        """
        return {name: self._one(name, function) for name in names}

    def _one(self, name: str, function: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        file = self.progress and self.progress / f"{re.sub('[^A-Za-z0-9]+', '-', name)}.json"
        if file and file.exists():
            return results.read(file)
        if monotonic() > self.until:
            if self.partly:
                return {"skipped": NO_TIME}
            raise Unfinished(name)
        found = results.plain(answer(function, name))
        if file:
            results.write(file, found)
        return found


def answer(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    try:
        return function(*arguments)
    except Missing as why:
        return {"skipped": str(why)}


def there(values: dict[str, Any]) -> dict[str, Any]:
    """Of `Settings.each`, the parts that were not skipped."""
    return {name: part for name, part in values.items() if "skipped" not in part}


def left_out(values: dict[str, Any]) -> str:
    """Of `Settings.each`, the parts that were skipped and why, a line each."""
    return "".join(f"\n{name}: {part['skipped']}" for name, part in values.items() if "skipped" in part)


def experiments() -> dict[str, ModuleType]:
    """All there are, by id: the modules that are named like a paper and what it shows."""
    names = sorted(file.stem for file in Path(__file__).parent.glob("*.py"))
    ours = [name for name in names if re.fullmatch(rf"({'|'.join(PAPERS)})_\w+", name)]
    return {name.replace("_", "-"): importlib.import_module(f"benchmarks.papers.{name}") for name in ours}
