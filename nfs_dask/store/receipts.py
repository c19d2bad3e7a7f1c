"""Receipts of all shards of a generation, the fingerprint made of them, and the check against what is there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import json_object
from nfs_dask.store.cache import Kept
from nfs_dask.store.header import RECORD, ROOT, Header, read_header
from nfs_dask.store.layout import OWN, Json, Numbers
from nfs_dask.store.shards import (
    DIGEST_NBYTES,
    Receipt,
    ShardReader,
    checks_of,
    read_checks,
    write_checks,
    write_numbers,
)
from nfs_dask.store.string_arrays import check_texts

TaskMap = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
Receipts = dict[str, list[Receipt]]  # name of an array to the receipts of its shards


def serial_map(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The plain loop: what every other ``map`` must equal."""
    return [function(item) for item in items]


def write_receipts(folder: Folder, header: Header, receipts: Receipts) -> Header:
    """Write them all; the header that names the checksums, of all arrays but those begun before there were any."""
    records = b"".join(
        receipt.digest + receipt.nbytes.to_bytes(RECORD - DIGEST_NBYTES, "little")
        for numbers in header.recorded()
        for receipt in receipts[numbers.name]
    )
    write_numbers(folder, header.receipts, [np.frombuffer(records, np.uint8)])
    checks = {array.name: [check for one in receipts[array.name] for check in one.checks] for array in header.bound()}
    whole = {array.name: checks[array.name] for array in header.bound() if len(checks[array.name]) == array.n_chunks}
    return replace(header, checks=write_checks(folder, f"{header.receipts.name}.json", whole)[1])


def read_receipts(folder: Folder, header: Header) -> Receipts:
    records = ShardReader(folder, header.receipts).read(0, header.receipts.length).tobytes()
    parts = (records[i : i + RECORD] for i in range(0, len(records), RECORD))
    found = {numbers.name: [_receipt(next(parts)) for _ in range(numbers.n_shards)] for numbers in header.recorded()}
    found |= {
        texts.name: [Receipt(b"", 0)] * -(-texts.length // header.layout.row_shard) for texts in header.row_texts()
    }
    for array in header.bound():
        checks = checks_of(folder, array)
        chunks = (array.shard if isinstance(array, Numbers) else header.layout.row_shard) // array.chunk
        found[array.name] = [
            replace(receipt, checks=() if checks is None else tuple(checks[shard * chunks :][:chunks].tolist()))
            for shard, receipt in enumerate(found[array.name])
        ]
    return found


def fingerprint(header: Header, receipts: Receipts) -> str:
    """Of the values, shapes, types and classes: equal for equal data in one layout, however many tasks wrote them."""
    digest = hashlib.blake2b(digest_size=DIGEST_NBYTES)
    shape = [header.n_rows, header.n_features, header.label, header.class_type, header.classes]
    digest.update(json.dumps(shape).encode())
    for numbers in header.content():
        digest.update(json.dumps([numbers.name, numbers.dtype, numbers.length, numbers.shard]).encode())
        for receipt in receipts[numbers.name]:
            digest.update(receipt.digest)
    return digest.hexdigest()


def total_nbytes(receipts: Receipts, arrays: Iterable[Numbers]) -> int:
    return sum(receipt.nbytes for numbers in arrays for receipt in receipts[numbers.name])


@dataclass(frozen=True, slots=True)
class _Check:
    """One shard to be read, and compared where a digest of it was kept; its checksums are checked in any case."""

    location: str
    numbers: Numbers
    shard: int
    digest: bytes | None


def verify(location: str | os.PathLike[str], *, map: TaskMap = serial_map) -> None:  # noqa: A002
    """Read a whole store and raise a StoreError that names the first object that is not what was written.

    ``map(function, items)`` runs the reading of shards somewhere else. One chunk is held at a time.
    """
    folder = Folder.of(location)
    header = read_header(folder)
    read_checks.cache_clear()  # it may have gone since
    receipts = read_receipts(folder, header)
    if fingerprint(header, receipts) != header.fingerprint:
        raise StoreError(
            f"{folder.path(header.receipts.name)} does not belong to this generation; the store is damaged"
        )
    checks = [
        _Check(folder.location, numbers, shard, receipt.digest)
        for numbers in header.recorded()
        for shard, receipt in enumerate(receipts[numbers.name])
    ]
    unrecorded = [numbers for numbers in header.numbers() if numbers.name not in receipts]
    checks += [
        _Check(folder.location, numbers, shard, None) for numbers in unrecorded for shard in range(numbers.n_shards)
    ]
    for problem in map(_check_shard, checks):
        if problem is not None:
            raise StoreError(problem)
    for texts in header.texts():
        check_texts(folder, texts)
    for path, node in (header.nodes() | header.own_nodes()).items():
        _check_metadata(folder, f"{path}/{ROOT}", node)
    _check_metadata(folder, ROOT, json.loads(header.root()))
    Kept(folder / OWN / "statistics", header.fingerprint).verify()


def _check_metadata(folder: Folder, name: str, written: Json) -> None:
    """Refuse metadata that say anything else than was written; what others have added is theirs."""
    found = json_object(folder, name)
    if isinstance(listed := found.get("consolidated_metadata"), dict) and "consolidated_metadata" in written:
        ours = written["consolidated_metadata"]["metadata"]
        nodes = {path: node for path, node in dict(listed.get("metadata", {})).items() if path in ours}
        found["consolidated_metadata"] = {**listed, "metadata": nodes}
    if _without_header(found) != _without_header(json.loads(json.dumps(written))):
        raise StoreError(
            f"{folder.path(name)} is damaged: it does not say what was written; restore it from a copy, or ingest again"
        )


def _without_header(metadata: Json) -> Json:
    """Metadata without our header, which carries a checksum of its own, and says other things in older formats."""
    attributes = metadata.get("attributes")
    if not isinstance(attributes, dict):
        return metadata
    return {**metadata, "attributes": {key: value for key, value in attributes.items() if key != OWN}}


def _check_shard(check: _Check) -> str | None:
    numbers, folder = check.numbers, Folder(check.location)
    reader = ShardReader(folder, numbers)
    digest = hashlib.blake2b(digest_size=DIGEST_NBYTES)
    start, stop = check.shard * numbers.shard, min((check.shard + 1) * numbers.shard, numbers.length)
    try:
        for first in range(start, stop, numbers.chunk):
            digest.update(reader.read(first, min(first + numbers.chunk, stop)).data)
    except StoreError as error:
        return str(error)
    if check.digest is None or digest.digest() == check.digest:
        return None
    name = folder.path(numbers.object_name(check.shard))
    return f"{name} is not what was written: its values have another digest; restore it from a copy, or ingest again"


def _receipt(record: bytes) -> Receipt:
    return Receipt(record[:DIGEST_NBYTES], int.from_bytes(record[DIGEST_NBYTES:], "little"))
