"""What is wrong with the certificates of this machine, or soon will be."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOON = dt.timedelta(days=30)


class Trouble(NamedTuple):
    """Something about certificates. What is grave keeps others from answering."""

    grave: bool
    text: str


def troubles_of(security: Any) -> list[Trouble]:
    """What is wrong with the files of a ``distributed.Security``, as its client uses them."""
    files = security.get_tls_config_for_role("client")
    authority, certificate, key = files["ca_file"], files["cert"], files["key"] or files["cert"]
    if not authority or not certificate:
        return []
    return [*_of_certificates(authority, certificate), *_of_key(key)]


def _of_certificates(authority: str, certificate: str) -> Iterator[Trouble]:
    try:
        from cryptography import x509
    except ImportError:
        yield Trouble(False, "dates of certificates were not looked at; run: pip install 'nfs-dask[tls]'")
        return
    try:
        authorities, chain = (x509.load_pem_x509_certificates(_content(one)) for one in (authority, certificate))
    except (OSError, ValueError) as error:
        yield Trouble(True, f"a certificate cannot be read ({error})")
        return
    yield from _of_dates(authorities, f"the authority {_name(authority)}")
    yield from _of_dates(chain[:1], f"the certificate {_name(certificate)}")
    if not any(_vouches(one, chain[0]) for one in (*chain[1:], *authorities)):
        yield Trouble(True, f"the certificate {_name(certificate)} is not of the authority {_name(authority)}")


def _of_dates(certificates: Sequence[Any], name: str) -> Iterator[Trouble]:
    now = dt.datetime.now(dt.UTC)
    until = max(one.not_valid_after_utc for one in certificates)
    since = min(one.not_valid_before_utc for one in certificates)
    if until < now:
        yield Trouble(True, f"{name} has expired on {until:%Y-%m-%d}; make new ones, for all machines")
    elif since > now:
        yield Trouble(True, f"{name} is valid from {since:%Y-%m-%d} on; look at the clock of this machine")
    elif until < now + SOON:
        yield Trouble(False, f"{name} expires on {until:%Y-%m-%d}; make new ones, for all machines")


def _of_key(key: str) -> Iterator[Trouble]:
    if "\n" not in key and os.path.exists(key) and os.stat(key).st_mode & 0o077:
        yield Trouble(False, f"the key {key} can be read by others than you; chmod 600 {key}")


def _vouches(authority: Any, certificate: Any) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # noqa: BLE001 - a signature may be wrong in many ways
        return False
    return True


def _content(file: str) -> bytes:
    """A certificate, or what a file of it holds."""
    return file.encode() if "\n" in file else Path(file).read_bytes()


def _name(file: str) -> str:
    return "in memory" if "\n" in file else file
