"""Raw text as rows of the columns a model selected: the values that the training data would have had there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.documents.at_hand import batches
from nfs_dask.models.model import Model
from nfs_dask.prediction.counted_rows import Csr, chosen, documents, renumbered, weighed
from nfs_dask.prediction.term_columns import Known, TermColumns, terms_for
from nfs_dask.text.counted import TermCounts
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import Tokenizer
from nfs_dask.text.strings import Strings


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

    def blocks(self, given: Any, where: str = "document") -> Iterator[Block]:
        """Rows of texts in memory: at least one block, also of no documents.

        Parameters
        ----------
        given
            Documents, as `batches` takes them.
        where
            What to call a document in messages; its number follows.
        """
        return self.blocks_of(batches(given, self.features.regions, where))

    def blocks_of(self, parts: Iterable[Strings]) -> Iterator[Block]:
        """Rows of texts that come in parts; in each, the regions of a document follow one another."""
        counter = TermCounter(self.features.settings, known=self.terms.counted, tokenizer=self.tokenizer)
        first = 0
        for texts in parts:
            counter.add(texts)
            block = self._block(counter.finish(), first)
            first += block.n_rows
            yield block
        if not first:
            yield self._block(counter.finish(), first)

    def _block(self, counted: TermCounts, first_row: int) -> Block:
        indptr, positions, values = self._selected(counted, self.terms.look_up(counted.terms))
        codes = np.full(len(indptr) - 1, UNLABELLED, np.int8)
        columns = positions if self.features.lengths else self.model.support[positions]
        return Block(indptr, columns, values, codes, self.model.n_features, first_row=first_row)

    def _selected(self, counted: TermCounts, known: Known) -> Csr:
        """The entries of documents in the wanted columns, as `_places` numbers them."""
        settings, n_regions = self.features.settings, self.features.n_regions
        places = self._places(known.columns)
        if known.idf is None:
            rows = documents(counted, known.ranks, places >= 0, n_regions)
            return weighed(renumbered(rows, places), settings, self.features.idf)
        rows = documents(counted, known.ranks, np.tile(known.columns >= 0, n_regions), n_regions)
        rows = weighed(rows, settings, np.tile(known.idf, n_regions))
        return renumbered(chosen(rows, places[rows[1]] >= 0), places)

    def _places(self, columns: Array) -> Array:
        """Where some columns of each region are in the support, region after region; -1 for those not selected.

        Where lengths matter, all are wanted, and keep their numbers.
        """
        features = self.features
        firsts = np.arange(features.n_regions, dtype=np.int64) * features.n_terms
        everywhere = np.where(columns >= 0, firsts[:, None] + columns, -1).ravel()
        if features.lengths:
            return everywhere
        places = np.full(len(everywhere), -1, np.int64)
        inside = everywhere >= 0
        places[inside] = self.model.lookup.positions(everywhere[inside])
        return places
