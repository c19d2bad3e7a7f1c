"""What a model needs in order to read raw text as the features it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.text.settings import TextSettings

SEPARATOR = ":"  # between the name of a region and a term, in the name of a column


@dataclass(frozen=True)
class TextFeatures:
    """How texts become the columns of the training data, of which a model selected k.

    A document has one text for each region. Columns ``r * n_terms .. (r + 1) * n_terms - 1`` are those of region r.
    """

    settings: TextSettings
    n_terms: int  # columns of a region: the size of the vocabulary, or 2**hashed
    n_documents: int  # of the training data
    terms: tuple[str, ...] | None  # (k,) of the selected columns, without regions; None if hashed, or too many
    idf: Array | None = None  # (k,) float64 of the selected columns; None without tf-idf
    regions: tuple[str, ...] = ("",)  # where the texts of a document stood; a single one may have no name
    vocabulary: str | None = None  # the folder in which all terms are looked up, where that is needed
    lengths: bool = False  # whether the length of each region counts: how many terms of the vocabulary it has

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def needs_vocabulary(self) -> bool:
        """Whether values depend on all terms of a document, or the selected terms are too many to be here."""
        weighed = self.settings.tfidf and (self.settings.norm is not None or self.lengths)
        return weighed or (self.settings.hashed is None and (self.lengths or self.terms is None))  # all have a hash


def column_prefix(regions: Sequence[str], region: int) -> str:
    """What the names of a region's columns begin with: nothing where there is one region only."""
    return f"{regions[region]}{SEPARATOR}" if len(regions) > 1 else ""


def check_regions(regions: Sequence[str]) -> None:
    """Refuse names of regions that could not be told from each other, or from terms, in the names of columns."""
    if len(regions) < 1 or not all(isinstance(region, str) for region in regions):
        raise InputError(f"regions={regions!r}; give one name for each region of a document")
    if len(regions) == 1:
        return  # its name appears nowhere
    for region in regions:
        if not region or SEPARATOR in region or "/" in region or not region.isprintable():
            raise InputError(
                f"a region is named {region!r}, and names of columns and folders are made of it; rename it, so that "
                f"it is not empty and has neither {SEPARATOR!r} nor '/' in it"
            )
    if len(set(regions)) < len(regions):
        raise InputError(f"two regions have the same name: {', '.join(regions)}; give each text a name of its own")


def terms_of(names: Sequence[str], columns: Array, n_terms: int, regions: Sequence[str]) -> tuple[str, ...]:
    """The terms that some columns count, from the names of these columns."""
    prefixes = [column_prefix(regions, region) for region in range(len(regions))]
    terms = []
    for name, region in zip(names, (columns // n_terms).tolist(), strict=True):
        if not name.startswith(prefixes[region]):
            raise InputError(
                f"a column of region {regions[region]!r} is named {name!r}; its name begins with {prefixes[region]!r}"
            )
        terms.append(name.removeprefix(prefixes[region]))
    return tuple(terms)
