"""Bytes of other encodings as UTF-8, in which what could not be decoded stays visible to the check of the documents."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Final

from nfs_dask.errors import InputError

MARK: Final = "nfs_dask.mark"  # the name of an error handler of codecs
BOM: Final = b"\xef\xbb\xbf"


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Put half a surrogate pair in the place of a byte that means nothing: UTF-8 cannot hold one, so it is found."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return chr(0xDC00 + error.object[error.start]), max(error.end, error.start + 1)


codecs.register_error(MARK, _mark)


def check_encoding(encoding: str) -> None:
    """Refuse names that no codec has which can say what it does not understand."""
    try:
        b"\xff".decode(encoding, MARK)
    except (LookupError, UnicodeError, TypeError, ValueError):  # no such name, no text, no name at all
        raise InputError(
            f"encoding={encoding!r} cannot be read; give the name of a text encoding that Python knows, such as "
            "'utf-8', 'latin-1' or 'cp1252'"
        ) from None


def is_utf8(encoding: str) -> bool:
    """Whether text in this encoding is UTF-8 as it stands; a mark of byte order at the start of a file aside."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def keeps_ascii(encoding: str) -> bool:
    """Whether line ends, commas and quotes are bytes as in ASCII that stand for nothing else, wherever they are."""
    if codecs.lookup(encoding).name.startswith("iso2022"):  # an escape sequence changes what follows, over line ends
        return False
    ascii_bytes = bytes(range(128))
    return ascii_bytes.decode(encoding, "replace") == ascii_bytes.decode("ascii")


def to_utf8(content: bytes, encoding: str) -> bytes:
    """A whole document; bytes that are not valid in ``encoding`` become bytes that are not valid UTF-8."""
    if not is_utf8(encoding):
        content = content.decode(encoding, MARK).encode("utf-8", "surrogatepass")
    return content.removeprefix(BOM)


def in_utf8(chunks: Iterable[bytes], encoding: str, at_start: bool = True) -> Iterator[bytes]:
    """Consecutive bytes of a file as `to_utf8` has them; ``at_start``: where a mark of byte order may be."""
    if not is_utf8(encoding):
        chunks = _decoded(chunks, encoding)
    return _without_bom(chunks) if at_start else iter(chunks)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(MARK)
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    chunks = iter(chunks)
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= len(BOM):
            break
    yield first.removeprefix(BOM)
    yield from chunks


def explain_undecodable(text: bytes, encoding: str) -> str:
    """Which byte of a document is not valid."""
    if not is_utf8(encoding):
        for char in text.decode("utf-8", "surrogatepass" if _is_marked(text) else "replace"):
            if 0xDC00 <= ord(char) <= 0xDCFF:
                return f"the byte 0x{ord(char) - 0xDC00:02x} is not valid {encoding}"
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return (
            f"the byte 0x{text[error.start]:02x} at position {error.start} is not valid UTF-8; "
            "if the text has another encoding, name it with encoding="
        )
    raise AssertionError("the text is valid")


def _is_marked(text: bytes) -> bool:
    try:
        text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
