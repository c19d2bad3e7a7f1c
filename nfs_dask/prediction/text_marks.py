"""Where the selected terms of a model stand in a document, in the texts as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.prediction.explained_document import Mark, MarkedText
from nfs_dask.prediction.reader import Reader
from nfs_dask.text.strings import Strings
from nfs_dask.text.term_spans import TermSpan, term_spans

MOST_TERMS = 1 << 22  # of a text, each of which takes Python some microseconds


@dataclass(frozen=True)
class TextMarks:
    """Finds the marks of documents."""

    reader: Reader

    def of(self, texts: Sequence[str], columns: Array) -> tuple[MarkedText, ...]:
        """The texts of a document, one for each region, and in them the terms of some columns, by their positions."""
        spans = [self._spans(text) for text in texts]
        found = self._columns_of({span.term for own in spans if isinstance(own, list) for span in own})
        places = {column: part for part, column in enumerate(columns.tolist())}
        marked = []
        for region, (text, own) in enumerate(zip(texts, spans, strict=True)):
            name, first = self.reader.features.regions[region], region * self.reader.features.n_terms
            if isinstance(own, str):
                marked.append(MarkedText(name, text, unmarked=own))
                continue
            parts = {term: places.get(first + column, -1) for term, column in found.items()}
            marks = [Mark(parts[span.term], span.start, span.stop) for span in own if parts.get(span.term, -1) >= 0]
            marked.append(MarkedText(name, text, tuple(marks)))
        return tuple(marked)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out where it is used."""
        return {"reader": self.reader}

    def _spans(self, text: str) -> list[TermSpan] | str:
        """The places of all terms, or why there are none."""
        settings = self.reader.features.settings
        shortest, longest = settings.ngrams
        if len(text) * (longest - shortest + 1) > MOST_TERMS:
            return f"a text of {len(text):,} characters is too long to be marked"
        spans = term_spans(text, settings, self.reader.tokenizer)
        return "the tokens of the tokenizer are not in the text as they are" if spans is None else spans

    def _columns_of(self, terms: set[str]) -> dict[str, int]:
        """The columns of some terms within a region, of those that have one."""
        if self._selected is not None:
            return {term: self._selected[term] for term in terms if term in self._selected}
        listed = sorted(terms)
        known = self.reader.terms.look_up(Strings.of(listed))
        columns = known.columns[known.ranks].tolist() if listed else []
        return {term: column for term, column in zip(listed, columns, strict=True) if column >= 0}

    @cached_property
    def _selected(self) -> dict[str, int] | None:
        """Columns of the selected terms, where the model knows these."""
        features = self.reader.features
        if features.settings.hashed is not None or features.terms is None:
            return None
        columns = np.asarray(self.reader.model.support) % features.n_terms
        return dict(zip(features.terms, columns.tolist(), strict=True))
