"""JSON objects that carry a checksum of themselves, so that a changed digit or letter is noticed when they are read.

The checksum is of what the object says, not of its bytes: whoever formats it otherwise leaves it valid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import google_crc32c

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder

SEAL = "crc32c"  # the key of the checksum
MOST_JSON = 256 << 20  # bytes


def with_seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """An object, as JSON has it, with its checksum."""
    plain = json.loads(json.dumps(dict(content)))  # as it will be read: tuples are lists, keys are strings
    plain.pop(SEAL, None)
    return {**plain, SEAL: _seal(plain)}


def without_seal(found: Mapping[str, Any], *, since: str | None = None) -> dict[str, Any]:
    """The object without its checksum; a ValueError where it is not the one that was written.

    One without a checksum is from before there were any, unless it has ``since``, a key that came later than they.
    """
    plain = dict(found)
    seal = plain.pop(SEAL, None)
    if seal is None and since in plain:
        raise ValueError("its checksum is missing")
    if seal is not None and seal != _seal(plain):
        raise ValueError("its checksum does not fit its content")
    return plain


def sealed(content: Mapping[str, Any]) -> bytes:
    """A file of one object with its checksum."""
    return json.dumps(with_seal(content)).encode()


def unsealed(content: bytes, *, since: str | None = None) -> dict[str, Any]:
    """The object of such a file; a ValueError where it holds none, or not the one that was written."""
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return without_seal(found, since=since)


def _seal(plain: dict[str, Any]) -> str:
    return f"{google_crc32c.value(json.dumps(plain, sort_keys=True).encode()):08x}"


def json_object(folder: Folder, name: str) -> dict[str, Any]:
    """A JSON object of the store; metadata only, so it is read whole."""
    content = folder.read(name, 0, MOST_JSON + 1)
    if len(content) > MOST_JSON:
        raise StoreError(f"{folder.path(name)} is larger than any metadata of a store; restore it from a copy")
    try:
        return unsealed(content)
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{folder.path(name)} is damaged: it is not a JSON object of a store ({error}); restore it from a copy, or "
            "ingest again"
        ) from None
