"""What is read of an object store is whole, and what is written small is one request, whatever happens to some."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import fsspec
import pytest

from nfs_dask.files.folder import Folder
from nfs_dask.files.remote import SMALL
from tests.helpers.unreliable_s3 import UnreliableS3, truncated, unreliable_s3

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def proxied(s3: str, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Folder, UnreliableS3]]:
    """A folder behind S3, with the proxy on the way to it."""
    with unreliable_s3(s3_server) as (url, proxy):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        yield Folder(f"{s3}/here"), proxy


@pytest.mark.parametrize("how", ["short", "cut"])
@pytest.mark.parametrize(("start", "stop"), [(None, None), (100, 5000), (9000, 99999), (-500, 9900)])
def test_an_answer_that_ends_early_is_asked_for_again(
    proxied: tuple[Folder, UnreliableS3], how: str, start: int | None, stop: int | None
) -> None:
    folder, proxy = proxied
    folder.write("x", CONTENT)
    proxy.deed = truncated(how, "/here/x", 10**9)
    assert folder.read("x", start, stop) == CONTENT[start:stop]
    assert proxy.done[how] == 1


def test_what_never_comes_whole_is_an_error_of_the_place(proxied: tuple[Folder, UnreliableS3]) -> None:
    folder, proxy = proxied
    folder.write("x", CONTENT)
    proxy.deed = truncated("short", "/here/x", 1)
    with pytest.raises(OSError, match=r"s3://.*here/x: 250 bytes came of 500"):
        folder.read("x", 0, 500)


def test_what_was_written_without_an_answer_was_written_by_this_call(proxied: tuple[Folder, UnreliableS3]) -> None:
    folder, proxy = proxied
    lost = iter([True])
    proxy.deed = lambda _number, method, _path: "lost" if method == "PUT" and next(lost, False) else None
    assert folder.write_new("claim", b"mine")
    assert proxy.done["lost"] == 1
    assert not folder.write_new("claim", b"yours")
    assert folder.read("claim") == b"mine"


@pytest.mark.parametrize(("size", "requests"), [(0, ["PUT"]), (SMALL, ["PUT"]), (SMALL + 1, ["POST", "PUT", "POST"])])
def test_small_objects_are_written_in_one_request(
    proxied: tuple[Folder, UnreliableS3], size: int, requests: list[str]
) -> None:
    folder, proxy = proxied
    seen: list[str] = []
    proxy.deed = lambda _number, method, _path: seen.append(method)
    with folder.create("x") as file:
        for at in range(0, size, 1 << 20):
            file.write(bytes(min(1 << 20, size - at)))
        assert file.tell() == size
    if size <= SMALL:
        assert [method for method in seen if method not in ("GET", "HEAD")] == requests
    assert folder.size("x") == size
    assert "Uploads" not in boto3.client("s3").list_multipart_uploads(Bucket=folder.location.split("/")[2])
