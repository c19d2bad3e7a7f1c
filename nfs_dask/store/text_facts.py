"""What a store says about the texts that its rows were made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from nfs_dask.errors import InputError
from nfs_dask.store.layout import Json
from nfs_dask.text.features import check_regions
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.stemming import other_version

MOST_LISTED = 20  # problems and the like, that the reports of an ingest and of appends to it list together


@dataclass(frozen=True, slots=True)
class TextFacts:
    """How texts became rows. Column c is term ``c % n_terms`` of region ``c // n_terms``."""

    settings: TextSettings
    n_documents: int  # of the ingest that made the vocabulary, and that its document frequencies are of
    n_terms: int  # of the vocabulary; with hashing the columns of one region
    regions: tuple[str, ...] = ("",)  # one name for each; a single one may be empty
    report: Json = field(default_factory=dict)  # what the ingest, and appends after it, met
    frequencies: bool = False  # whether document frequencies are stored; the writer knows
    sorted_nbytes: int | None = None  # UTF-8 bytes of the sorted copy of terms; None: columns are in order. As above

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def n_features(self) -> int:
        return self.n_regions * self.n_terms

    @property
    def length_columns(self) -> tuple[str, ...]:
        """Names of the columns of ``obs`` with the length of each region: where there are several, of counts."""
        return tuple(f"length_{region}" for region in self.regions) if self.n_regions > 1 and self.counts else ()

    @property
    def counts(self) -> bool:
        """Whether values count terms, or tell whether they are there."""
        return not self.settings.tfidf

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Json) -> TextFacts:
        """Anything but what `to_json` makes raises KeyError, TypeError or InputError."""
        values = {field.name: found[field.name] for field in fields(cls)}
        values |= {"settings": TextSettings.from_json(found["settings"]), "regions": tuple(found["regions"])}
        facts = cls(**values)
        facts.check()
        return facts

    def check(self) -> None:
        """Refuse what no ingest says."""
        self.settings.check()
        check_regions(self.regions)
        hashed = self.settings.hashed
        sizes = [self.n_documents, self.n_terms, self.sorted_nbytes or 0]
        if not all(type(size) is int and 0 <= size < 2**62 for size in sizes) or self.n_terms < 1:
            raise InputError(f"{self.n_terms!r} terms of {self.n_documents!r} documents; give whole numbers")
        if hashed is not None and self.n_terms != 2**hashed:
            raise InputError(f"{self.n_terms} columns for hashes of {hashed} bits; give {2**hashed}")
        if not isinstance(self.report, dict) or type(self.frequencies) is not bool:
            raise InputError("the report of an ingest is a dictionary that JSON can hold")

    def appended(self, more: TextFacts | None) -> TextFacts:
        """With what appended documents add: their report. Frequencies, and so idf, stay those of the first ingest."""
        return self if more is None else replace(self, report=joined_reports(self.report, more.report))


def check_same_text(old: TextFacts | None, new: TextFacts | None, where: str) -> None:
    """Refuse texts that were read by other settings than those of the store."""
    if new is None:
        return
    if old is None:
        raise InputError(
            f"{where} was not made of texts; append rows with the same columns to it, or ingest texts into a new store"
        )
    ours, theirs = ({**asdict(facts.settings), "regions": facts.regions} for facts in (old, new))
    if ours["stem"] == theirs["stem"] and ours["stem_version"] != theirs["stem_version"]:
        raise InputError(f"in {where} {other_version(old.settings)}; or ingest everything into a new store")
    for name, value in ours.items():
        if theirs[name] != value:
            raise InputError(
                f"the texts in {where} were read with {name}={value!r}, those to append with {theirs[name]!r}; "
                f"append with {name}={value!r}, or ingest everything into a new store"
            )


def joined_reports(old: Json, new: Json) -> Json:
    """One report for two ingests: numbers add up, lists go on up to 20 items, and of all else the newer stands.

    What only one of them has stays as it is.
    """
    return old | {key: _joined(old[key], value) if key in old else value for key, value in new.items()}


def _joined(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return joined_reports(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return (old + new)[:MOST_LISTED]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new))
    return old + new if numbers else new
