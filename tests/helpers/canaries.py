"""Secrets that must turn up nowhere, and where to look for them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

PASSWORD = "canary-hunter2-password"
TOKEN = "canary-hunter2-token"
ENVIRONMENT = {  # that keys are read from
    "AWS_ACCESS_KEY_ID": "canary-hunter2-key-id",
    "AWS_SECRET_ACCESS_KEY": "canary-hunter2-secret-key",
    "AWS_SESSION_TOKEN": "canary-hunter2-session",
    "FSSPEC_FTP_PASSWORD": "canary-hunter2-ftp",
    "FSSPEC_S3_KEY": "canary-hunter2-fsspec-key",
    "FSSPEC_S3_SECRET": "canary-hunter2-fsspec-secret",
}
_BASIC = base64.b64encode(f"me:{PASSWORD}".encode())  # as HTTP sends it
_ALL = re.compile(rb"canary.{0,3}hunter2[\w-]*|" + re.escape(_BASIC), re.I)
_ZSTD = b"\x28\xb5\x2f\xfd"


def in_user(place: str) -> str:
    """A URL of memory with a user and a password."""
    return f"memory://me:{PASSWORD}@disk/{place}"


def in_query(place: str) -> str:
    """One with a token, as URLs that were signed beforehand have them."""
    return f"memory://disk/{place}?token={TOKEN}&X-Amz-Signature={quote(TOKEN)}"


def found_in(content: str | bytes) -> list[str]:
    """What a text or a file gives away, with what stands before it; also within what is compressed in it."""
    raw = content.encode() if isinstance(content, str) else content
    return [
        part[max(0, hit.start() - 80) : hit.end()].decode(errors="replace")
        for part in (raw, *_unpacked(raw))
        for hit in _ALL.finditer(part)
    ]


def found_in_files(folder: Path) -> dict[str, list[str]]:
    """The same of every file below a folder, hidden ones as well, and of their names."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return _those_with_some({str(path): found_in(str(path)) + found_in(content) for path, content in files.items()})


def found_in_memory() -> dict[str, list[str]]:
    """The same of what lies in fsspec's memory, whose names are what was typed."""
    from fsspec.implementations.memory import MemoryFileSystem

    return _those_with_some({name: found_in(file.getvalue()) for name, file in MemoryFileSystem.store.items()})


def found_in_environment(variables: Mapping[str, str]) -> dict[str, list[str]]:
    """The same of the environment of a process, but for keys under the names that users gave them; also in base64."""
    given = {name: value for name, value in variables.items() if ENVIRONMENT.get(name) != value}
    return _those_with_some(
        {name: found_in(f"{name}={value}") + found_in(_decoded(value)) for name, value in given.items()}
    )


def _decoded(value: str) -> bytes:
    """What is in base64, as Dask hands its configuration on."""
    try:
        return base64.b64decode(value, altchars=b"-_", validate=True)
    except ValueError:
        return b""


def _those_with_some(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: hits for name, hits in found.items() if hits}


def _unpacked(content: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    for at in re.finditer(re.escape(_ZSTD), content):
        with pa.CompressedInputStream(pa.BufferReader(content[at.start() :]), "zstd") as stream:
            unpacked = b""
            try:
                while chunk := stream.read(1 << 16):
                    unpacked += chunk
            except OSError:  # something else follows
                pass
            yield unpacked
