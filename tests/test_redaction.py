"""What may be written down where others read it."""

from __future__ import annotations

import pytest

from nfs_dask.redaction import redacted


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIAABCDEFGHIJKLMNOP:hunter2@bucket/mail.zarr",
        "https://host/blob?sv=2024&sig=hunter2%3D is not there",
        "storage_options={'key': 'me', 'secret': 'hunter2'}",
        "{'aws_secret_access_key': 'hunter2', 'region': 'eu'}",
        'connection {"account_key": "hunter2"}',
        "password=hunter2; try again",
        "Authorization token: Bearer hunter2",
        "tls://user:hunter2@10.0.0.1:8786",
    ],
)
def test_secrets_are_hidden(text: str) -> None:
    assert "hunter2" in text
    assert "hunter2" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "nfs-dask fit s3://bucket/mail.zarr spam.model -k 100 --resume s3://bucket/run",
        "/data/mail.zarr holds 12 tokens of 3 classes",
        "the disk has had enough",
        "tls://10.0.0.1:8786 cannot be reached; start workers at host:8787?",
        "--tokenizer words --ngrams 1,2",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text
