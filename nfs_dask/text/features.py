"""What a model needs in order to read raw text as the features it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.block import Array
from nfs_dask.text.settings import TextSettings


@dataclass(frozen=True)
class TextFeatures:
    """How texts become the columns of the training data, of which a model selected k.

    A document has one text for each region. Columns ``r * n_terms .. (r + 1) * n_terms - 1`` are those of region r.
    """

    settings: TextSettings
    n_terms: int  # columns of a region: the size of the vocabulary, or 2**hashed
    n_documents: int  # of the training data
    terms: tuple[str, ...] | None  # (k,) of the selected columns, without regions; None for hashed columns
    idf: Array | None = None  # (k,) float64 of the selected columns; None without tf-idf
    regions: tuple[str, ...] = ("",)  # where the texts of a document stood; a single one may have no name
    vocabulary: str | None = None  # the folder in which all terms are looked up, where that is needed

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def needs_vocabulary(self) -> bool:
        """Whether the value of one feature depends on all terms of a document."""
        return self.settings.tfidf and self.settings.norm is not None
