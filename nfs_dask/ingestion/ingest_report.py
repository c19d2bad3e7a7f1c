"""What an ingest has seen: how many documents, what was wrong with some, and what became of the terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nfs_dask.documents.document_source import Batch, DocumentProblem
from nfs_dask.sources.conditions import Condition

EXAMPLES = 20  # problems that are named one by one

_WORDS = {
    "undecodable": "not valid text in the encoding",
    "missing": "without a text",
    "label": "without a label",
    "weight": "without a usable weight",
    "broken": "broken",
}


@dataclass
class Seen:
    """Documents of some pieces. Adding up is all it takes to have those of all."""

    seen: int = 0
    empty: int = 0  # documents of nothing but white space
    left_out: Counter[str] = field(default_factory=Counter)  # by kind of problem
    examples: list[DocumentProblem] = field(default_factory=list)
    collisions: int = 0  # terms told apart whose hashes were equal
    chosen: int = 0  # documents that were asked for and were not bad
    found: list[tuple[str, ...]] = field(default_factory=list)  # for each condition, values of its column

    def note(self, batch: Batch) -> None:
        self.seen += batch.seen
        self.empty += batch.empty
        self.chosen += batch.n_documents
        self.found = _merged(self.found, batch.found)
        for problem in batch.problems:
            self.left_out[problem.kind] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(problem)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.seen + other.seen,
            self.empty + other.empty,
            self.left_out + other.left_out,
            [*self.examples, *other.examples][:EXAMPLES],
            self.collisions + other.collisions,
            self.chosen + other.chosen,
            _merged(self.found, other.found),
        )

    @property
    def passed_over(self) -> int:
        """Documents that were not asked for."""
        return self.seen - self.chosen - self.left_out.total()

    def check(self, where: Sequence[Condition]) -> None:
        """Refuse conditions that no document meets."""
        if self.seen:
            for one, there in zip(where, self.found, strict=True):
                one.check(there, "the documents")

    def to_json(self) -> dict[str, Any]:
        return {
            "documents_seen": self.seen,
            "empty": self.empty,
            "left_out": dict(self.left_out),
            "examples": [asdict(problem) for problem in self.examples],
            "collisions": self.collisions,
            **({"passed_over": self.passed_over} if self.found else {}),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Seen:
        examples = [DocumentProblem(**problem) for problem in found["examples"]]
        left_out = Counter(found["left_out"])
        seen = cls(found["documents_seen"], found["empty"], left_out, examples, found["collisions"])
        seen.chosen = seen.seen - left_out.total() - found.get("passed_over", 0)
        return seen

    def __str__(self) -> str:
        """What was left out, for people."""
        first = "; ".join(f"{p.where}: {p.what}" for p in self.examples[:3])
        return (
            f"{self.left_out.total():,} of {self.seen:,} documents were left out: {in_words(self.left_out)}. "
            f"The first: {first}"
        )


def _merged(one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Values of columns among some documents and some others; each has few."""
    if not one or not other:
        return list(one or other)
    return [tuple(dict.fromkeys([*left, *right])) for left, right in zip(one, other, strict=True)]


def in_words(left_out: Mapping[str, int]) -> str:
    """How many documents were left out for which reason."""
    return ", ".join(f"{n:,} {_WORDS.get(kind, kind)}" for kind, n in sorted(left_out.items()))
