"""The terms of a vocabulary at rest, sorted by name, with their columns and document frequencies.

A store has them among its own arrays. A model that needs them has a copy, in a folder of its own:

    checks.json                  checksums of the values of all chunks; terms.json and the model have its digest
    terms.json                   how many there are, and how their arrays are cut; written last
    names/, firsts/              all terms, and the first one of each chunk, as offsets and bytes
    frequencies, columns         of each column, and of each term; columns only where they are not in order
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import json_object, sealed
from nfs_dask.store.header import ROOT, Header, read_header
from nfs_dask.store.layout import Json, Numbers, check_numbers
from nfs_dask.store.shards import ArrayWriter, ShardReader, write_checks
from nfs_dask.store.stored_strings import StringsReader, StringsWriter
from nfs_dask.text.features import column_prefix
from nfs_dask.text.ordering import take
from nfs_dask.text.strings import Strings

MANIFEST = "terms.json"
CHECKS = "checks.json"
KIND = "nfs-dask terms"
FORMAT = 1
PIECE = 1 << 19  # terms handled together; whole chunks of a copy
_CHUNK = 1 << 14  # terms of a copy: few enough that looking up a handful reads little
_SHARD = 1 << 20
_BYTES_CHUNK, _BYTES_SHARD = 1 << 18, 1 << 24


@dataclass(frozen=True)
class StoredTerms:
    """Where the arrays are, and how large. Where columns are hashes of terms there are frequencies only."""

    folder: Folder
    n_terms: int
    n_documents: int
    frequencies: Numbers  # by column
    names: tuple[Numbers, Numbers] | None  # offsets and bytes
    columns: Numbers | None = None  # of each name; None: names are in the order of columns
    prefix: str = ""  # of each name
    firsts: tuple[Numbers, Numbers] | None = None  # the first name of each chunk, where they are kept
    bits: int | None = None  # of a column that is a hash of terms

    @property
    def chunk(self) -> int:
        """Terms that are read together."""
        return self.frequencies.chunk

    @classmethod
    def of(cls, location: str) -> StoredTerms:
        """Those of a store, or a copy of them."""
        folder = Folder.of(location)
        return cls.open(folder) if folder.exists(MANIFEST) else cls.of_store(folder, read_header(folder))

    @classmethod
    def of_store(cls, folder: Folder, header: Header) -> StoredTerms:
        """The vocabulary of a store that was made of texts."""
        text, frequencies = header.text, header.frequencies
        if text is None or frequencies is None:
            raise StoreError(f"{folder.location} holds no vocabulary of texts; ingest texts into a new store")
        if header.sorted_terms is not None:
            offsets, content, columns = header.sorted_terms
            return cls(folder, text.n_terms, text.n_documents, frequencies, (offsets, content), columns)
        if text.settings.hashed is not None:
            return cls(folder, text.n_terms, text.n_documents, frequencies, None, bits=text.settings.hashed)
        if header.names_nbytes is None:
            raise StoreError(f"{folder.location} has no names of terms; ingest texts into a new store")
        names, prefix = (header.name_offsets, header.name_bytes), column_prefix(text.regions, 0)
        return cls(folder, text.n_terms, text.n_documents, frequencies, names, prefix=prefix)

    @classmethod
    def open(cls, folder: Folder) -> StoredTerms:
        """A copy that `copy` made. Anything that is not one is refused."""
        found = json_object(folder, MANIFEST)
        where = folder.path(MANIFEST)
        if found.get("kind") != KIND or found.get("format") != FORMAT:
            raise StoreError(f"{where} is not a vocabulary of ours, or one of a later version; save the model again")
        try:
            terms = _Sizes.from_json(found).terms(folder)
        except (KeyError, ValueError) as error:
            raise StoreError(f"{where} is damaged ({type(error).__name__}: {error}); save the model again") from None
        for numbers in terms.arrays():
            check_numbers(numbers, folder.location)
        return terms

    def arrays(self) -> list[Numbers]:
        columns = [] if self.columns is None else [self.columns]
        return [self.frequencies, *columns, *(self.names or ()), *(self.firsts or ())]

    @property
    def digest(self) -> str | None:
        """Of all that a copy holds."""
        return None if self.frequencies.checks is None else self.frequencies.checks[1]

    def verify(self) -> None:
        """Read all of it once; damage is reported by the name of the object."""
        for numbers in self.arrays():
            reader = ShardReader(self.folder, numbers)
            for start in range(0, numbers.length, numbers.shard):
                reader.read(start, min(start + numbers.shard, numbers.length))

    def reader(self) -> StringsReader | None:
        """Reads names, with their prefix; None where there are none."""
        return None if self.names is None else StringsReader(self.folder, *self.names)

    def copy(self, folder: Folder) -> StoredTerms:
        """Write the same into a folder of its own, some terms at a time."""
        sizes = _Sizes(self.n_terms, self.n_documents, self.columns is None, self.bits)
        target, checks = sizes.terms(folder), {}
        for mine, copied in ((self.frequencies, target.frequencies), (self.columns, target.columns)):
            if mine is not None and copied is not None:
                checks[copied.name] = _copy_numbers(ShardReader(self.folder, mine), folder, copied)
        reader = self.reader()
        if reader is not None and target.names is not None and target.firsts is not None:
            with ExitStack() as stack:
                names = stack.enter_context(StringsWriter(folder, *target.names))
                firsts = stack.enter_context(StringsWriter(folder, *target.firsts))
                for start, stop in _pieces(self.n_terms):
                    piece = without_prefix(reader.read(start, stop), len(self.prefix.encode()))
                    names.add(piece)
                    firsts.add(take(piece, np.arange(0, len(piece), target.chunk)))
            for strings, (offsets, text) in ((names, target.names), (firsts, target.firsts)):
                checks |= {offsets.name: _checks(strings.offsets), text.name: _checks(strings.text)}
            sizes = replace(sizes, names_nbytes=names.nbytes, firsts_nbytes=firsts.nbytes)
        sizes = replace(sizes, checks=write_checks(folder, CHECKS, checks)[1])
        target = sizes.terms(folder)
        _write_metadata(target, sizes)
        return target


@dataclass(frozen=True)
class _Sizes:
    """What the manifest of a copy says; its arrays follow from it."""

    n_terms: int
    n_documents: int
    ordered: bool  # whether names are in the order of columns
    bits: int | None = None  # of a column that is a hash, and has no name
    names_nbytes: int = 0
    firsts_nbytes: int = 0  # of the first name of each chunk
    checks: str | None = None  # the digest of what has the checksums of all chunks

    @classmethod
    def from_json(cls, found: Json) -> _Sizes:
        values = {field.name: found[field.name] for field in fields(cls) if field.name != "checks"}
        values["checks"] = found.get("checks")  # copies from before there were any have none
        sizes = cls(**values)
        numbers = [sizes.n_terms, sizes.n_documents, sizes.names_nbytes, sizes.firsts_nbytes, sizes.bits or 0]
        if (
            not all(type(n) is int and 0 <= n < 2**62 for n in numbers)
            or type(sizes.ordered) is not bool
            or not isinstance(sizes.checks, str | None)
        ):
            raise ValueError(f"sizes {values}")
        if sizes.n_terms < 1 or (sizes.bits is not None and sizes.n_terms != 2 ** min(sizes.bits, 62)):
            raise ValueError(f"{sizes.n_terms} terms")
        return sizes

    def terms(self, folder: Folder) -> StoredTerms:
        """The copy in a folder."""
        checks = None if self.checks is None else (CHECKS, self.checks)

        def strings(name: str, length: int, nbytes: int) -> tuple[Numbers, Numbers]:
            offsets = Numbers(f"{name}/offsets", "int64", length + 1, _CHUNK, _SHARD, checks=checks)
            return offsets, Numbers(f"{name}/bytes", "uint8", nbytes, _BYTES_CHUNK, _BYTES_SHARD, checks=checks)

        named = self.bits is None
        return StoredTerms(
            folder,
            self.n_terms,
            self.n_documents,
            Numbers("frequencies", "int64", self.n_terms, _CHUNK, _SHARD, checks=checks),
            strings("names", self.n_terms, self.names_nbytes) if named else None,
            None if self.ordered else Numbers("columns", "int64", self.n_terms, _CHUNK, _SHARD, checks=checks),
            firsts=strings("firsts", -(-self.n_terms // _CHUNK), self.firsts_nbytes) if named else None,
            bits=self.bits,
        )


def without_prefix(strings: Strings, nbytes: int) -> Strings:
    """The strings without their first bytes."""
    if not nbytes:
        return strings
    if np.any(np.diff(strings.offsets) < nbytes):
        raise StoreError("a column of a region has a name without that of the region; the store is damaged")
    return strings.beyond(nbytes)


def _copy_numbers(reader: ShardReader, folder: Folder, target: Numbers) -> list[int]:
    with ArrayWriter(folder, target) as writer:
        for start, stop in _pieces(target.length):
            writer.add(reader.read(start, stop))
    return _checks(writer)


def _checks(writer: ArrayWriter) -> list[int]:
    return [check for receipt in writer.receipts for check in receipt.checks]


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + PIECE, length)) for start in range(0, length, PIECE))


def _write_metadata(terms: StoredTerms, sizes: _Sizes) -> None:
    """Zarr's metadata of every array, and then the manifest that makes them count."""
    group: Json = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    nodes: dict[str, Any] = {f"{numbers.name}/{ROOT}": numbers.metadata() for numbers in terms.arrays()}
    folders = {numbers.name.rpartition("/")[0] for numbers in terms.arrays()}
    nodes |= {f"{name}/{ROOT}" if name else ROOT: group for name in folders}
    for name, metadata in nodes.items():
        terms.folder.write(name, json.dumps(metadata).encode())
    terms.folder.write(MANIFEST, sealed({"kind": KIND, "format": FORMAT, **asdict(sizes)}))


def checked_numbers(reader: ShardReader, start: int, stop: int, below: int) -> Array:
    """Values ``start .. stop - 1`` of an array; refuses those that are not ``0 .. below - 1``."""
    values = reader.read(start, stop)
    if len(values) and not (int(values.min()) >= 0 and int(values.max()) < below):
        where = reader.folder.path(reader.numbers.name)
        raise StoreError(f"{where} is damaged: a value is not from 0 to {below - 1}; restore it from a copy")
    return values
