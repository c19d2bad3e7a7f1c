"""Texts that others may read, without the secrets that places and options can carry.

Errors, warnings and logs of the package pass through here by themselves, and so do the representations of what holds
places: `errors`, `nfs_dask/__init__`, `PlacesHidden`. What was asked for by name, such as the place of a dataset, is
given as it was said.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

HIDDEN = "***"

# Each begins where a word begins, and nowhere within, and takes in what belongs to it: texts without end are read once.
_URL = re.compile(r"(?<![\w+.-])[\w+.-]+://[^\s'\"]*")
_USER = re.compile(r"(?<=://)[^/]+@")  # of what stands before a query: s3://key:secret@bucket
_ENDS = ":;,.)]}>"  # of sentences and lists, and not of a query
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
    text = _URL.sub(lambda url: _rewritten(url[0], f"{HIDDEN}@", f"?{HIDDEN}"), text)
    text = _VALUE.sub(_without_value, text)
    return _KEY_ID.sub(HIDDEN, text)


def _without_value(found: re.Match[str]) -> str:
    return f"{found['said']}{HIDDEN}" if _SECRET.search(found["name"]) else found[0]


def _rewritten(url: str, user: str, query: str) -> str:
    """A URL with something else in the place of its users, there may be one in another, and of its query."""
    before, asked, rest = url.partition("?")
    secret = rest.rstrip(_ENDS)
    return _USER.sub(user, before) + (query + rest[len(secret) :] if secret else asked + rest)


def secrets_of(places: Iterable[str]) -> dict[str, str]:
    """The users and query strings of some URLs, and what is shown in their place: for texts that also hold data.

    >>> secrets_of(["mail.csv", "ftp://me:pass@host/mail.csv"])
    {'me:pass@': '***@'}
    """
    found: dict[str, str] = {}
    for url in itertools.chain.from_iterable(_URL.findall(place) for place in places):
        before, _, query = url.partition("?")
        found |= dict.fromkeys(_USER.findall(before), f"{HIDDEN}@")
        found |= {f"?{query}": f"?{HIDDEN}"} if query else {}
    return found


def without_secrets(place: str) -> str:
    """A place without the user and the query of its URL: where it is, for those who have credentials of their own.

    >>> without_secrets("https://me:pass@host/mail.zarr?token=abc")
    'https://host/mail.zarr'
    """
    return _URL.sub(lambda url: _rewritten(url[0], "", ""), place)


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
