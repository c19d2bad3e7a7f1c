"""How the tests of folders, archives, memory and Dask collections take their documents."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Taken:
    texts: list[Any] = field(default_factory=list)  # str, or a tuple of one for each region
    labels: list[Any] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)  # kind and where
    whats: list[str] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)  # documents of each
    seen: int = 0
    empty: int = 0


def take(source: Any) -> Taken:
    """All documents, of a copy of the source as workers get it where they get one."""
    taken = Taken()
    if source.delayed is None:
        numbers: list[Any] = list(range(source.n_pieces))
    else:
        assert len(source.delayed) == source.n_pieces
        numbers = [value.compute(scheduler="threads") for value in source.delayed]
        source.delayed = None
    if not source.in_memory:
        source = pickle.loads(pickle.dumps(source))
    for number in numbers:
        taken.pieces.append(0)
        for batch in source.batches(number):
            regions = [strings.to_list() for strings in batch.texts]
            assert len(regions) == source.columns.n_regions
            assert batch.seen == batch.n_documents + len(batch.skipped) and len(batch.problems) == len(batch.skipped)
            assert source.labelled == (batch.labels is not None) and source.weighted == (batch.weights is not None)
            taken.texts += regions[0] if len(regions) == 1 else list(zip(*regions, strict=True))
            taken.labels += [] if batch.labels is None else list(batch.labels)
            taken.weights += [] if batch.weights is None else batch.weights.tolist()
            taken.problems += [(problem.kind, problem.where) for problem in batch.problems]
            taken.whats += [problem.what for problem in batch.problems]
            taken.pieces[-1] += batch.n_documents
            taken.seen += batch.seen
            taken.empty += batch.empty
    return taken
