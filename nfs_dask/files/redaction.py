"""Texts that are written down where others may read them, without the secrets that places and options can carry."""

from __future__ import annotations

import re

HIDDEN = "***"

_USER = re.compile(r"(?P<scheme>\b[a-zA-Z][\w+.-]*://)[^\s/@'\"]+@")  # s3://key:secret@bucket
_QUERY = re.compile(r"(?P<url>\b[a-zA-Z][\w+.-]*://[^\s?'\"]+)\?[^\s'\"#]*")  # ...?X-Amz-Signature=...
_SECRET = re.compile(
    r"""(?ix)
    (?P<name> ['"]? [\w-]* (?: secret | passw(?:or)?d | passphrase | token | credential s? | signature
        | access_?key | account_?key | api_?key | sas ) [\w-]* ['"]? \s* [=:] \s* )
    (?: bearer \s+ )? (?: '[^']*' | "[^"]*" | [^\s,;&)}\]'"]+ )
    """
)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")


def redacted(text: str) -> str:
    """A text without users and query strings of URLs, and without the values of options that are called secrets.

    >>> redacted("s3://me:pass@bucket/x and https://host/x?sig=abc, with {'secret': 'x', 'region': 'eu'}")
    "s3://***@bucket/x and https://host/x?***, with {'secret': ***, 'region': 'eu'}"
    """
    text = _USER.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _QUERY.sub(rf"\g<url>?{HIDDEN}", text)
    text = _SECRET.sub(rf"\g<name>{HIDDEN}", text)
    return _KEY_ID.sub(HIDDEN, text)
