"""Why documents are taken for what they are taken for: what each selected feature contributes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.contributions import Contributions
from nfs_dask.prediction.explained_document import ExplainedDocument, Part
from nfs_dask.prediction.explained_html import STYLE, explanation_html
from nfs_dask.prediction.explained_text import explained_lines
from nfs_dask.prediction.text_marks import TextMarks

SHOWN = 10  # documents that are printed


@dataclass(frozen=True)
class Explanation:
    """What each feature contributes to the decisions about some documents: ``base`` and all of it are the decision.

    Of two classes these are contributions to what `decision_function` says, above 0 for ``classes[1]``: log odds, or
    of centers a difference of distances. Of more classes, to the score of each class. Entries are sparse: features that
    a document does not have are not there, but of centers, to which a value of 0 is one like others.
    """

    classes: Array  # (C,)
    documents: Array  # (n,) int64, their numbers in what was explained
    decision: Array  # (n,) of two classes, else (n, C): the decision function
    probabilities: Array | None  # (n, C); None of models without them
    contributions: Contributions  # whose positions are those of `features`
    features: tuple[str, ...]  # names of all features that are there
    columns: Array  # (len(features),) int64, their columns
    compared: str  # what the decision says of one class over another one, for people
    at_base: str = "without features"  # where the base is, for people
    texts: tuple[tuple[str, ...], ...] | None = None  # of each document, one for each region; None of rows of numbers
    marking: TextMarks | None = None  # finds features in texts

    @property
    def base(self) -> Array:
        """The decision about each document without the selected features, (n,), or of more classes (n, C).

        Of naive Bayes the prior, with what is not selected where that counts, and of the Bernoulli model with what the
        absence of all selected features says; of the hybrid the intercepts; of centers what is said of the mean of the
        centers: of two classes 0, midway between them.
        """
        return self.contributions.base

    @property
    def predicted(self) -> Array:
        """The class of each document, (n,)."""
        if self.decision.ndim == 1:
            return np.asarray(self.classes[(self.decision > 0).astype(np.int64)])
        return np.asarray(self.classes[self.decision.argmax(axis=1)])

    def __len__(self) -> int:
        return len(self.documents)

    def to_frame(self) -> Any:
        """A pandas DataFrame: ``document``, ``feature``, ``value``, ``contribution``, of more classes also ``class``.

        A row for each feature that a document has, of centers for each selected one; of more than two classes one for
        each class.
        """
        try:
            import pandas as pd
        except ImportError:
            raise InputError("to_frame() makes a pandas DataFrame, and pandas is not installed; install it") from None
        entries, several = self.contributions.entries, self.decision.ndim == 2
        times = len(self.classes) if several else 1
        columns = {
            "document": np.repeat(self.documents[entries.rows], times),
            "feature": np.repeat(np.array(self.features, object)[entries.positions], times),
            "value": np.repeat(entries.values, times),
        }
        if several:
            columns["class"] = np.tile(self.classes, entries.n)
        return pd.DataFrame({**columns, "contribution": self.contributions.parts.ravel()})

    def top(self, document: int, n: int = 10) -> list[Part]:
        """The n features that contribute most to the decision about a document, as (feature, value, contribution).

        Parameters
        ----------
        document
            Its number, one of `documents`.
        n
            At most so many, the largest first, whatever their sign. Above 0 speaks for ``classes[1]``; of more than two
            classes for the predicted class over the next one.
        """
        return list(self.of(document).parts[:n])

    def of(self, document: int) -> ExplainedDocument:
        """All about one document, by its number.

        Parameters
        ----------
        document
            One of `documents`.
        """
        found = np.flatnonzero(self.documents == document)
        if not len(found):
            raise InputError(f"document {document!r} is not among the {len(self):,} that were explained")
        return self._at(int(found[0]))

    def to_html(self, n: int = 10, documents: int = SHOWN) -> str:
        """The first documents as HTML with its style, which needs nothing besides.

        Parameters
        ----------
        n
            Features of each.
        documents
            At most so many.
        """
        more = f"<p>{self._not_shown(documents)}</p>" if len(self) > documents else ""
        return f"<style>\n{STYLE}</style>\n{explanation_html(self.first(documents), n)}{more}"

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values; of more than two classes what features contribute to each, as well."""
        return {"classes": self.classes.tolist(), "documents": [self._json_of(i) for i in range(len(self))]}

    def first(self, n: int | None = None) -> Iterator[ExplainedDocument]:
        """The documents one after another, or the first n of them.

        Parameters
        ----------
        n
            None: all.
        """
        return map(self._at, range(len(self) if n is None else min(n, len(self))))

    def __str__(self) -> str:
        blocks = ["\n".join(explained_lines(document)) for document in self.first(SHOWN)]
        return "\n\n".join(blocks + [self._not_shown(SHOWN)] * (len(self) > SHOWN)) or "no documents"

    def __repr__(self) -> str:
        return f"<Explanation: {len(self):,} documents, {self.contributions.entries.n:,} features in them>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def _not_shown(self, shown: int) -> str:
        return f"and {len(self) - shown:,} more documents"

    def _json_of(self, i: int) -> dict[str, Any]:
        one, several = self._at(i), self.decision.ndim == 2
        features = [part._asdict() for part in one.parts]
        if several:
            own, order = self._ordered(i)[:2]
            for feature, parts in zip(features, self.contributions.parts[own][order].tolist(), strict=True):
                feature["by_class"] = parts
        return {
            "document": one.document,
            "predicted": self.predicted[i : i + 1].tolist()[0],
            "probability": one.probability,
            "compared": one.compared,
            "for": one.sides[0],
            "against": one.sides[1],
            "total": one.total,
            "base": one.base,
            "features": features,
            **({"scores": self.decision[i], "base_by_class": self.base[i]} if several else {}),
            "texts": [
                {
                    "region": text.region,
                    "text": text.text,
                    "marks": [
                        {"start": mark.start, "stop": mark.stop, "feature": one.parts[mark.part].feature}
                        for mark in text.marks
                    ],
                }
                for text in one.texts
            ],
        }

    def _ordered(self, i: int) -> tuple[slice, Array, tuple[str, str], float, Array]:
        """Which entries a document has, in what order they contribute to which class over which, the base, and what."""
        indptr = self.contributions.entries.indptr
        own = slice(int(indptr[i]), int(indptr[i + 1]))
        sides, base, values = self._compared(i, own)
        order = np.argsort(-np.abs(values), kind="stable")
        return own, order, sides, base, values[order]

    def _at(self, i: int) -> ExplainedDocument:
        entries = self.contributions.entries
        own, order, (one, other), base, values = self._ordered(i)
        positions = entries.positions[own][order]
        parts = zip(positions.tolist(), entries.values[own][order].tolist(), values.tolist(), strict=True)
        return ExplainedDocument(
            document=int(self.documents[i]),
            predicted=self.predicted[i],
            probability=None if self.probabilities is None else float(self.probabilities[i].max()),
            compared=self.compared.format(one, other),
            sides=(one, other),
            base=base,
            at_base=self.at_base,
            parts=tuple(Part(self.features[p], value, contribution) for p, value, contribution in parts),
            texts=() if self.texts is None or self.marking is None
            else self.marking.of(self.texts[i], self.columns[positions]),
        )  # fmt: skip

    def _compared(self, i: int, own: slice) -> tuple[tuple[str, str], float, Array]:
        """Two classes, and base and contributions of a document to the first of them over the second.

        Of more classes that are the best and the next best.
        """
        base, parts, labels = self.contributions.base[i], self.contributions.parts[own], self.classes.tolist()
        if self.decision.ndim == 1:
            return (str(labels[1]), str(labels[0])), float(base), parts
        scores = self.decision[i]
        best = int(scores.argmax())
        rest = np.delete(np.arange(len(labels)), best)
        if not len(rest):
            return (str(labels[best]), "no other class"), float(base[best]), parts[:, best]
        following = int(rest[scores[rest].argmax()])
        return (
            (str(labels[best]), str(labels[following])),
            math.fsum([base[best], -base[following]]),
            parts[:, best] - parts[:, following],
        )
