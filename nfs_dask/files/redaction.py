"""Texts that are written down where others may read them, without the secrets that places and options can carry."""

from __future__ import annotations

import re

HIDDEN = "***"

# Each begins where a word begins, and nowhere within: texts without end are read once.
_USER = re.compile(r"(?P<scheme>(?<![\w+.-])[a-zA-Z][\w+.-]*://)[^\s/@'\"]+@")  # s3://key:secret@bucket
_QUERY = re.compile(r"(?P<url>(?<![\w+.-])[a-zA-Z][\w+.-]*://[^\s?'\"]+)\?[^\s'\"#]+")  # ...?X-Amz-Signature=...
_VALUE = re.compile(
    r"""(?P<said>(?<![\w-])(?P<name>[\w-]+)['"]?\s{0,9}[=:]\s{0,9})(?:Bearer\s+)?(?:'[^']*'|"[^"]*"|[^\s,;&)}\]'"]+)"""
)
_SECRET = re.compile("secret|passw|passphrase|token$|credential|signature|access_?key|account_?key|api_?key|^sas", re.I)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")


def redacted(text: str) -> str:
    """A text without users and query strings of URLs, and without the values of options that are called secrets.

    >>> redacted("s3://me:pass@bucket/x and https://host/x?sig=abc with {'secret': 'x', 'region': 'eu'}")
    "s3://***@bucket/x and https://host/x?*** with {'secret': ***, 'region': 'eu'}"
    """
    text = _USER.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _QUERY.sub(rf"\g<url>?{HIDDEN}", text)
    text = _VALUE.sub(_without_value, text)
    return _KEY_ID.sub(HIDDEN, text)


def _without_value(found: re.Match[str]) -> str:
    return f"{found['said']}{HIDDEN}" if _SECRET.search(found["name"]) else found[0]
