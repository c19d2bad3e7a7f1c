"""Texts that others may read, without the secrets that places and options can carry.

Errors, warnings and logs of the package pass through here by themselves, and so do the representations of what holds
places: `errors`, `nfs_dask/__init__`, `PlacesHidden`. What was asked for by name, such as the place of a dataset, is
given as it was said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

HIDDEN = "***"

# Each begins where a word begins, and nowhere within: texts without end are read once.
_USER = re.compile(r"(?P<before>(?<![\w+.-])[a-zA-Z][\w+.-]*://)(?P<secret>[^\s/'\"]+@)")  # s3://key:secret@bucket
_QUERY = re.compile(  # https://host/x?sig=abc, without what ends a sentence
    r"(?P<before>(?<![\w+.-])[a-zA-Z][\w+.-]*://[^\s?'\"]+)(?P<secret>\?[^\s'\"#]*[^\s'\"#:;,.)])"
)
_VALUE = re.compile(
    r"""(?P<said>(?<![\w-])(?P<name>[\w-]+)['"]?\s{0,9}[=:]\s{0,9})"""
    r"""(?:(?:Bearer|Basic)\s+)?(?:'[^']*'|"[^"]*"|[^\s,;&)}\]'"]+)"""
)
_SECRET = re.compile(
    "secret|passw|passphrase|token$|credential|signature|authorization|(access|account|api|private)_?key|^sas", re.I
)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")


def redacted(text: str, *places: str) -> str:
    """A text without users and query strings of URLs, and without the values of options that are called secrets.

    Those of ``places`` are hidden in parts of their URLs as well, which libraries have in their messages.

    >>> redacted("s3://me:pass@bucket/x and https://host/x?sig=abc with {'secret': 'x', 'region': 'eu'}")
    "s3://***@bucket/x and https://host/x?*** with {'secret': ***, 'region': 'eu'}"
    """
    for secret, shown in secrets_of(places).items():
        text = text.replace(secret, shown)
    text = _USER.sub(rf"\g<before>{HIDDEN}@", text)
    text = _QUERY.sub(rf"\g<before>?{HIDDEN}", text)
    text = _VALUE.sub(_without_value, text)
    return _KEY_ID.sub(HIDDEN, text)


def _without_value(found: re.Match[str]) -> str:
    return f"{found['said']}{HIDDEN}" if _SECRET.search(found["name"]) else found[0]


def secrets_of(places: Iterable[str]) -> dict[str, str]:
    """The users and query strings of some URLs, and what is shown in their place: for texts that also hold data.

    >>> secrets_of(["mail.csv", "ftp://me:pass@host/mail.csv"])
    {'me:pass@': '***@'}
    """
    found: dict[str, str] = {}
    for place in places:
        found |= {user["secret"]: f"{HIDDEN}@" for user in _USER.finditer(place)}
        found |= {query["secret"]: f"?{HIDDEN}" for query in _QUERY.finditer(place)}
    return found


def without_secrets(place: str) -> str:
    """A place without the user and the query of its URL: where it is, for those who have credentials of their own.

    >>> without_secrets("https://me:pass@host/mail.zarr?token=abc")
    'https://host/mail.zarr'
    """
    return _QUERY.sub(r"\g<before>", _USER.sub(r"\g<before>", place))


class HidingSecrets(logging.Filter):
    """Lets every record pass, without secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redacted(record.getMessage()), ()
        return True


class PlacesHidden:
    """Base of dataclasses that hold places: they are written as dataclasses are, without the secrets."""

    def __repr__(self) -> str:
        values: Any = self
        shown = ", ".join(f"{one.name}={getattr(values, one.name)!r}" for one in fields(values) if one.repr)
        return redacted(f"{type(self).__qualname__}({shown})")
