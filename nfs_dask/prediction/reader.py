"""Raw text as rows of the columns a model selected: the values that the training data would have had there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.documents.in_memory import counts
from nfs_dask.models.model import Model
from nfs_dask.prediction.counted_rows import Csr, chosen, documents, renumbered, weighed
from nfs_dask.prediction.term_columns import Known, TermColumns, terms_for
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import Tokenizer
from nfs_dask.text.strings import TermCounts


@dataclass(frozen=True)
class Reader:
    """Reads texts for a model. A value that travels to workers; what it looks up is opened where it is used.

    Where values do not depend on the rest of a document, only the selected terms are counted. Else all of them are, and
    looked up in the vocabulary of the training data; if lengths matter, the rows have all columns.
    """

    model: Model
    tokenizer: Tokenizer | None = None

    @property
    def features(self) -> TextFeatures:
        features = self.model.text
        assert features is not None, "models of other data read no text"
        return features

    @cached_property
    def terms(self) -> TermColumns:
        return terms_for(self.model)

    def for_tasks(self) -> Reader:
        """A copy whose model is without provenance."""
        return replace(self, model=self.model.for_tasks())

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out where it is used."""
        return {"model": self.model, "tokenizer": self.tokenizer}

    def counter(self) -> TermCounter:
        """Counts the terms of texts, which `block` then makes rows of."""
        return TermCounter(self.features.settings, known=self.terms.counted, tokenizer=self.tokenizer)

    def blocks(self, given: Any, where: str = "document") -> Iterator[Block]:
        """Rows of texts in memory: at least one block, also of no documents.

        Parameters
        ----------
        given
            Documents, as `nfs_dask.documents.in_memory.batches` takes them.
        where
            What to call a document in messages; its number follows.
        """
        counter, first = self.counter(), 0
        for counted in counts(counter, given, self.features.regions, where):
            block = self.block(counted, first)
            first += block.n_rows
            yield block
        if not first:
            yield self.block(counter.finish())

    def block(self, counted: TermCounts, first_row: int = 0, weights: Array | None = None) -> Block:
        """Rows of counted texts, in which the regions of a document follow one another."""
        indptr, columns, values = self._chosen(counted, self.terms.look_up(counted.terms))
        codes = np.full(len(indptr) - 1, UNLABELLED, np.int8)
        return Block(indptr, columns, values, codes, self.model.n_features, weights, first_row)

    def _chosen(self, counted: TermCounts, known: Known) -> Csr:
        """The entries of documents in the selected columns; where lengths matter, in all of them."""
        features, n_regions = self.features, self.features.n_regions
        firsts = np.arange(n_regions, dtype=np.int64) * features.n_terms
        columns = np.where(known.columns >= 0, firsts[:, None] + known.columns, -1).ravel()  # region after region
        there = columns >= 0
        places = np.full(len(columns), -1, np.int64)  # in the support
        places[there] = self.model.lookup.positions(columns[there])
        wanted = there if features.lengths else places >= 0
        if known.idf is None:
            rows = documents(counted, known.ranks, wanted, n_regions)
            rows = weighed(rows, features.settings, None if features.idf is None else features.idf[places])
        else:  # whose rows are normed as wholes
            rows = documents(counted, known.ranks, there, n_regions)
            rows = weighed(rows, features.settings, np.tile(known.idf, n_regions))
            rows = rows if features.lengths else chosen(rows, wanted[rows[1]])
        return renumbered(rows, columns)


@dataclass(frozen=True)
class TextSource:
    """Texts at hand and who reads them: rows over the columns of a model, as other sources have them.

    In one block, which comes in pieces of some megabytes of text. Values of counted texts need no checks.
    """

    reader: Reader
    given: Any  # documents, as `nfs_dask.documents.in_memory` knows them; of a Dask collection a partition at a time
    where: str = "document"  # what one is called in messages

    n_blocks: ClassVar[int] = 1
    trusted: ClassVar[bool] = True
    classes: ClassVar[Array | None] = None

    @property
    def n_features(self) -> int:
        return self.reader.model.n_features

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        return chain.from_iterable(self.reader.blocks(self.given, self.where) for _ in range(start, stop))


def partition_source(reader: Reader, partition: Any, number: int) -> TextSource:
    """The texts of one partition of a Dask collection."""
    return TextSource(reader, partition, f"partition {number:,}, document")
