"""What an ingest has seen: how many documents, what was wrong with some, and what became of the terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nfs_dask.documents.document_source import Batch, DocumentProblem

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

    def note(self, batch: Batch) -> None:
        self.seen += batch.seen
        self.empty += batch.empty
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
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "documents_seen": self.seen,
            "empty": self.empty,
            "left_out": dict(self.left_out),
            "examples": [asdict(problem) for problem in self.examples],
            "collisions": self.collisions,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Seen:
        examples = [DocumentProblem(**problem) for problem in found["examples"]]
        left_out = Counter(found["left_out"])
        return cls(found["documents_seen"], found["empty"], left_out, examples, found["collisions"])

    def __str__(self) -> str:
        """What was left out, for people."""
        first = "; ".join(f"{p.where}: {p.what}" for p in self.examples[:3])
        return (
            f"{self.left_out.total():,} of {self.seen:,} documents were left out: {in_words(self.left_out)}. "
            f"The first: {first}"
        )


def in_words(left_out: Mapping[str, int]) -> str:
    """How many documents were left out for which reason."""
    return ", ".join(f"{n:,} {_WORDS.get(kind, kind)}" for kind, n in sorted(left_out.items()))
