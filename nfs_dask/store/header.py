"""What a store says about itself: one block of JSON in the root's attributes, from which every shape follows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_args

import numpy as np

from nfs_dask.arrays.block import Array, Kind
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import json_object, with_seal, without_seal
from nfs_dask.store.layout import (
    INDEX,
    OWN,
    WEIGHT,
    Json,
    Layout,
    Numbers,
    Texts,
    check_label_name,
    check_numbers,
    column_metadata,
    consolidated,
    group_metadata,
)
from nfs_dask.store.plain_values import categories_at, plain_array
from nfs_dask.store.row_columns import RowColumn
from nfs_dask.store.text_facts import TextFacts

FORMAT = 2  # 1 had values as narrow as one byte, and row pointers always of 64 bits
MODEL = "model.json"  # of a saved model
ROOT = "zarr.json"
INDEX_NAMES = 1 << 21  # up to here AnnData's index holds names; it takes 8 s and 2 GB to open one of 12 million
RECORD = 24  # bytes of one receipt at rest: a digest and a size

_VALUES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float32", "float64")
NARROW = 2**31 - 1  # the largest number of a column or an entry that 32 bits hold
_CLASS_TYPES = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True, slots=True)
class Header:
    """Facts about one generation of a store."""

    generation: int
    n_rows: int
    n_features: int
    nnz: int
    kind: Kind
    value_type: str
    index_type: str  # of columns
    n_blocks: int
    block_entries: int  # of the largest block
    block_nbytes: int  # of the largest block in memory
    read_nbytes: int  # on disk, of what a pass reads
    label: str | None  # name of the label column
    class_type: str | None  # "str", "int", "float" or "bool"
    classes: tuple[Any, ...]  # as the codes number them: sorted, then those that were appended
    weight_type: str | None
    names_nbytes: int | None  # UTF-8 bytes of all names; None: there are no names
    text_ids: bool  # whether AnnData's index of the rows holds strings
    fingerprint: str
    layout: Layout
    text: TextFacts | None = None  # of rows that were texts
    pointer_type: str = "int64"  # of row pointers; the same as that of columns, but in stores of format 1
    narrow_type: str = ""  # the smallest type that holds all values: what a pass of ours sees; else the stored one
    editions: tuple[tuple[str, int], ...] = ()  # of arrays that were written anew in a wider type, by name
    annotations: tuple[RowColumn, ...] = ()  # columns of the table of rows that came with them
    named: bool = False  # whether some rows came with names, which are AnnData's index then
    checks: str | None = None  # the digest of what has the checksums of all chunks

    def to_json(self) -> Json:
        plain = asdict(replace(self, text=None))
        del plain["text"]  # as in stores from before there was one
        text = {} if self.text is None else {"text": self.text.to_json()}
        lists = {"classes": list(self.classes), "editions": dict(self.editions)}
        return with_seal({"format": FORMAT, **plain, **lists, **text})

    @classmethod
    def from_json(cls, found: Json, where: str) -> Header:
        version = found.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise StoreError(
                f"{where} is a store of format {version}, and this nfs-dask knows formats up to {FORMAT}; "
                "install the nfs-dask that wrote it, or a later one"
            )
        try:
            if type(version) is not int or version < 1:
                raise ValueError(f"format {version!r}")
            found = without_seal(found, since="pointer_type")
            if version == 1:
                found = {"pointer_type": "int64", "narrow_type": found["value_type"], "editions": {}, **found}
            found = {"annotations": [], "named": False, "checks": None, **found}  # from before there were any
            text = found.get("text")
            values = {field.name: found[field.name] for field in fields(cls) if field.name != "text"}
            values |= {"layout": Layout(**found["layout"]), "classes": tuple(found["classes"])}
            values["editions"] = tuple(sorted(found["editions"].items()))
            values["annotations"] = tuple(RowColumn.from_json(column) for column in found["annotations"])
            values["text"] = None if text is None else TextFacts.from_json(text)
            header = cls(**values)
            header.check(where)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{where}: its header is damaged ({error!r}); restore {ROOT} from a copy, or ingest again"
            ) from None
        return header

    def check(self, where: str) -> None:
        """Refuse what no writer of ours says. Nothing has been allocated by any of it yet."""
        counts = [self.generation, self.n_rows, self.n_features, self.nnz, self.n_blocks]
        counts += [self.block_entries, self.block_nbytes, self.read_nbytes, self.names_nbytes or 0]
        known = (
            all(type(count) is int and 0 <= count < 2**62 for count in counts)
            and self.n_rows > 0
            and self.n_features > 0
            and self.n_blocks <= self.nnz // self.layout.block + self.n_rows // self.layout.row_shard + 2
            and self.block_entries <= self.nnz
            and self.kind in get_args(Kind)
            and self.value_type in _VALUES
            and self.narrow_type in _VALUES
            and np.can_cast(self.narrow_type, self.value_type)
            and self._numbered_as_known()
            and all(type(edition) is int and 0 < edition < 2**31 for _, edition in self.editions)
            and self.weight_type in (None, "int64", "float64")
            and isinstance(self.fingerprint, str)
            and isinstance(self.checks, str | None)
            and type(self.named) is type(self.text_ids) is bool
            and (self.text is None or self.text.n_features == self.n_features)
        )
        if not known:
            raise StoreError(f"{where}: its header says what cannot be; restore {ROOT} from a copy, or ingest again")
        self._check_classes(where)
        self.check_columns()
        for numbers in self.numbers():
            check_numbers(numbers, where)

    def _numbered_as_known(self) -> bool:
        """Whether columns and row pointers are of types that some format has, and wide enough."""
        if (self.index_type, self.pointer_type) == ("int32", "int64"):
            return self.n_features <= NARROW + 1
        known = self.index_type == self.pointer_type in ("int32", "int64")
        return known and (self.index_type == "int64" or index_type(self.n_features, self.nnz) == "int32")

    def _check_classes(self, where: str) -> None:
        if self.label is None:
            return
        check_label_name(self.label)
        kind = _CLASS_TYPES.get(str(self.class_type))
        if kind is None or not all(type(value) is kind for value in self.classes):
            raise StoreError(f"{where}: its classes are not of the type the header says; restore {ROOT} from a copy")

    def check_columns(self) -> None:
        """Refuse two columns of obs with one name."""
        for column in self._length_columns:
            check_label_name(column)
            if column == self.label:
                raise InputError(f"the label column {column!r} has the name of another column; choose another name")
        names = [*self.own_columns, *(one.name for one in self.annotations)]
        if len(set(names)) < len(names):
            raise InputError(f"two columns of rows have one name, among {', '.join(names)}; rename one")

    @property
    def own_columns(self) -> list[str]:
        """Names of the columns of obs that are ours: labels, weights, lengths."""
        own = [self.label, WEIGHT if self.weight_type else None, *self._length_columns]
        return [name for name in own if name is not None]

    # The arrays that follow from it.

    @property
    def data(self) -> Numbers:
        return self._per_entry("X/data", self.value_type)

    @property
    def indices(self) -> Numbers:
        return self._per_entry("X/indices", self.index_type)

    @property
    def indptr(self) -> Numbers:
        return self._per_row("X/indptr", self.pointer_type, self.n_rows + 1)

    @property
    def codes(self) -> Numbers | None:
        return None if self.label is None else self._per_row(f"obs/{self.label}/codes", "int32", self.n_rows)

    @property
    def weights(self) -> Numbers | None:
        return None if self.weight_type is None else self._per_row(f"obs/{WEIGHT}", self.weight_type, self.n_rows)

    @property
    def lengths(self) -> list[Numbers]:
        """The length of each region in each row, where rows are counts of several."""
        return [self._per_row(f"obs/{column}", "int64", self.n_rows) for column in self._length_columns]

    @property
    def _length_columns(self) -> tuple[str, ...]:
        return () if self.text is None else self.text.length_columns

    @property
    def row_columns(self) -> dict[str, Numbers]:
        """What has a value for each row besides X, by the name that the survey has for it."""
        found = {"codes": self.codes, "weights": self.weights}
        columns = {name: numbers for name, numbers in found.items() if numbers is not None}
        return columns | {f"lengths-{region}": numbers for region, numbers in enumerate(self.lengths)}

    @property
    def frequencies(self) -> Numbers | None:
        """In how many documents each term of the vocabulary was."""
        if self.text is None or not self.text.frequencies:
            return None
        return self._per_row(f"{OWN}/frequencies", "int64", self.text.n_terms)

    @property
    def sorted_terms(self) -> tuple[Numbers, Numbers, Numbers] | None:
        """A copy of the terms that is sorted, as offsets and bytes, and the column of each; where columns are not."""
        if self.text is None or self.text.sorted_nbytes is None:
            return None
        offsets = self._per_row(f"{OWN}/sorted/offsets", "int64", self.text.n_terms + 1)
        columns = self._per_row(f"{OWN}/sorted/columns", "int64", self.text.n_terms)
        return offsets, self._bytes(f"{OWN}/sorted/bytes", self.text.sorted_nbytes), columns

    @property
    def cuts(self) -> Numbers:
        return self._per_row(f"{OWN}/cuts", "int64", self.n_blocks)

    @property
    def name_offsets(self) -> Numbers:
        return self._per_row(f"{OWN}/names/offsets", "int64", self.n_features + 1)

    @property
    def name_bytes(self) -> Numbers:
        return self._bytes(f"{OWN}/names/bytes", self.names_nbytes or 0)

    @property
    def receipts(self) -> Numbers:
        length = RECORD * sum(numbers.n_shards for numbers in self.recorded())
        return Numbers(
            f"{OWN}/receipts/{self.generation}", "uint8", length, self.layout.row_chunk, self.layout.row_shard
        )

    @property
    def _checks(self) -> tuple[str, str] | None:
        return None if self.checks is None else (f"{OWN}/receipts/{self.generation}.json", self.checks)

    @property
    def row_ids(self) -> Numbers | Texts:
        if self.text_ids:
            return Texts(f"obs/{INDEX}", self.n_rows, self.layout.row_chunk, self._checks)
        return self._per_row(f"obs/{INDEX}", "int64", self.n_rows)

    @property
    def column_ids(self) -> Numbers | Texts:
        if self.n_features <= INDEX_NAMES:
            return Texts(f"var/{INDEX}", self.n_features, self.layout.row_chunk)
        return self._per_row(f"var/{INDEX}", "int64", self.n_features)

    @property
    def categories(self) -> Numbers | Texts | None:
        if self.label is None:
            return None
        return categories_at(f"obs/{self.label}/categories", self.class_type, self.classes)

    @property
    def annotation_numbers(self) -> dict[str, Numbers]:
        """Numbers and codes of columns that came with the rows, by the name of the column."""
        found = {one.name: one.numbers(self.n_rows, self.layout) for one in self.annotations}
        editions = dict(self.editions)
        return {
            name: replace(numbers, edition=editions.get(numbers.name, 0), checks=self._checks)
            for name, numbers in found.items()
            if numbers is not None
        }

    @property
    def annotation_texts(self) -> dict[str, Texts]:
        found = {one.name: one.texts(self.n_rows, self.layout) for one in self.annotations}
        return {name: replace(texts, checks=self._checks) for name, texts in found.items() if texts is not None}

    @property
    def category_arrays(self) -> list[tuple[Numbers | Texts, tuple[Any, ...]]]:
        """Arrays of categories and what they hold: the classes, and those of columns that came with the rows."""
        found = [(one.category_array(), one.categories) for one in self.annotations]
        return [(array, values) for array, values in [(self.categories, self.classes), *found] if array is not None]

    def _per_entry(self, name: str, dtype: str) -> Numbers:
        edition = dict(self.editions).get(name, 0)
        return Numbers(name, dtype, self.nnz, self.layout.chunk, self.layout.shard, edition, self._checks)

    def _per_row(self, name: str, dtype: str, length: int) -> Numbers:
        edition = dict(self.editions).get(name, 0)
        return Numbers(name, dtype, length, self.layout.row_chunk, self.layout.row_shard, edition, self._checks)

    def _bytes(self, name: str, length: int) -> Numbers:
        return Numbers(name, "uint8", length, self.layout.chunk, self.layout.shard, checks=self._checks)

    def content(self) -> list[Numbers]:
        """The arrays whose values are the dataset."""
        columns = [column for column in (self.codes, self.weights) if column is not None]
        return [self.data, self.indices, self.indptr, *columns]  # lengths follow from these

    def typed(self) -> list[Numbers]:
        """The arrays that an append may need in a wider type."""
        return [*self.content(), *self.annotation_numbers.values()]

    def widened_from(self, old: Header) -> Header:
        """The header with a new edition of each array that an older generation has in another type."""
        before, editions = {numbers.name: numbers for numbers in old.typed()}, dict(self.editions)
        for numbers in self.typed():
            if numbers.name in before and numbers.dtype != before[numbers.name].dtype:
                editions[numbers.name] = before[numbers.name].edition + 1
        return replace(self, editions=tuple(sorted(editions.items())))

    def recorded(self) -> list[Numbers]:
        """The arrays with receipts, in the order of these."""
        names = [] if self.names_nbytes is None else [self.name_offsets, self.name_bytes]
        frequencies = [] if self.frequencies is None else [self.frequencies]
        return [*self.typed(), self.cuts, *names, *self.lengths, *frequencies, *(self.sorted_terms or ())]

    def numbers(self) -> list[Numbers]:
        extra = [array for array in self._unrecorded if isinstance(array, Numbers)]
        return [*self.recorded(), self.receipts, *extra]

    def texts(self) -> list[Texts]:
        return [array for array in self._unrecorded if isinstance(array, Texts)]

    @property
    def _unrecorded(self) -> list[Numbers | Texts]:
        """The arrays without receipts, which have their checksums."""
        categories = [array for array, _ in self.category_arrays]
        return [self.row_ids, self.column_ids, *categories, *self.annotation_texts.values()]

    def class_array(self) -> Array:
        """The classes as the codes number them."""
        return plain_array(self.class_type, self.classes)

    def nodes(self) -> dict[str, Json]:
        """Zarr metadata of all that AnnData may see, by path."""
        empty = {name: group_metadata("dict", "0.1.0") for name in ("layers", "obsm", "obsp", "uns", "varm", "varp")}
        columns = [*self.own_columns, *(one.name for one in self.annotations)]
        nodes = empty | {
            "X": group_metadata("csr_matrix", "0.1.0", shape=[self.n_rows, self.n_features]),
            "obs": group_metadata("dataframe", "0.2.0", _index=INDEX, **{"column-order": columns}),
            "var": group_metadata("dataframe", "0.2.0", _index=INDEX, **{"column-order": []}),
        }
        for part in (self.data, self.indices, self.indptr):
            nodes[part.name] = part.metadata()
        arrays = [self.row_ids, self.column_ids, self.weights, self.codes, *self.lengths]
        arrays += [*self.annotation_numbers.values(), *self.annotation_texts.values()]
        for column in [*arrays, *(array for array, _ in self.category_arrays)]:
            if column is not None:
                nodes[column.name] = column_metadata(column)
        if self.label is not None:
            nodes[f"obs/{self.label}"] = group_metadata("categorical", "0.2.0", ordered=False)
        for one in self.annotations:
            nodes |= one.group()
        return nodes

    def own_nodes(self) -> dict[str, Json]:
        """Zarr metadata of what is ours alone, by path."""
        arrays = [numbers for numbers in [*self.recorded(), self.receipts] if numbers.name.startswith(f"{OWN}/")]
        group: Json = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        return {OWN: group} | {numbers.name: numbers.metadata() for numbers in arrays}

    def root(self) -> bytes:
        """The content of the root's metadata: the one object whose appearance makes a generation."""
        group = group_metadata("anndata", "0.1.0", **{OWN: self.to_json()})
        return json.dumps(consolidated(group, self.nodes()), indent=1, allow_nan=False).encode()

    def with_fingerprint(self, fingerprint: str) -> Header:
        return replace(self, fingerprint=fingerprint)

    def arrays(self) -> list[Numbers | Texts]:
        return [*self.numbers(), *self.texts()]

    def bound(self) -> list[Numbers | Texts]:
        """The arrays with checksums of all chunks, which the header names."""
        return [*self.recorded(), *self.row_texts()]

    def row_texts(self) -> list[Texts]:
        """The arrays of strings that have a value for each row and no other copy."""
        ids = [self.row_ids] if self.named and isinstance(self.row_ids, Texts) else []
        return [*ids, *self.annotation_texts.values()]


def index_type(n_features: int, nnz: int) -> str:
    """The type of columns and row pointers alike, as scipy has it: others fail on matrices that mix two."""
    return "int32" if n_features <= NARROW + 1 and nnz <= NARROW else "int64"


def read_header(folder: Folder) -> Header:
    """The header of a store of ours."""
    if not folder.exists(ROOT):
        raise StoreError(
            f"{folder.location} is not a store: there is no {ROOT} in it; give the place that ingest wrote"
        )
    header = find_header(json_object(folder, ROOT), folder.location)
    if header is None:
        raise StoreError(
            f"{folder.location} is a Zarr group, but not one that nfs-dask wrote; ingest it into a new store first"
        )
    return header


def find_header(root: Json, where: str) -> Header | None:
    """The header in the root's metadata; None where the store is somebody else's."""
    attributes = root.get("attributes")
    found = attributes.get(OWN) if isinstance(attributes, dict) else None
    return Header.from_json(found, where) if isinstance(found, dict) else None
