"""URLs that were signed beforehand, and what they are without the signature: the same object, however often signed."""

from __future__ import annotations

import re
from urllib.parse import unquote

_SIGNATURE = re.compile(r"sig|signature|x-(amz|goog)-signature", re.I)
_SIGNING = re.compile(  # what object stores and their networks ask for beside it
    r"x-(amz|goog)-.*|sig|signature|expires|policy|key-pair-id|awsaccesskeyid|googleaccessid"
    r"|s[eprtv]|spr|sip|srt|ss|sks|skv|skt|ske|skoid|sktid",
    re.I,
)


def unsigned(url: str) -> str:
    """A URL without what signs it; one that is not signed as it is, since its query may say which object it is.

    >>> unsigned("https://host/mail.csv?version=3&X-Amz-Date=20260101&X-Amz-Signature=ab")
    'https://host/mail.csv?version=3'
    """
    place, _, query = url.partition("?")
    names = {one: unquote(one.partition("=")[0]) for one in query.split("&")}
    if not any(map(_SIGNATURE.fullmatch, names.values())):
        return url
    rest = "&".join(one for one, name in names.items() if not _SIGNING.fullmatch(name))
    return f"{place}?{rest}" if rest else place
