"""Folders on a local disk and behind a real S3 protocol behave alike, whatever the names."""

from __future__ import annotations

import errno
import functools
import gc
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder, is_url
from tests.helpers.grids import each_once

TEN = b"0123456789"
ODD_NAMES = ["a b", "ü☃", "a#b", "a%20b", "a?b", "a[1]", "a*", "a&b+c", "~x", "[!a]b", "a{1}", "a;b=c"]


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest) -> Folder:
    if request.param == "local":
        return Folder(f"{request.getfixturevalue('tmp_path')}/here")
    return Folder(f"{request.getfixturevalue('s3')}/here")


# Reading


@pytest.mark.parametrize("content", [TEN, b""])
def test_ranges_are_those_of_python(folder: Folder, content: bytes) -> None:
    folder.write("x", content)
    for start in (None, 0, 1, 5, 9, 10, 11, 99, -1, -10, -99):
        for stop in (None, 0, 1, 5, 10, 99):
            want = content[start or 0 : stop] if (start or 0) >= 0 else content[max(0, len(content) + start) : stop]  # type: ignore[operator]
            assert folder.read("x", start, stop) == want, (start, stop)
            assert folder.read_array("x", start, stop).tobytes() == want, (start, stop)
    assert folder.size("x") == len(content)


@pytest.mark.parametrize("name", ["nothing", "deep/down/nothing", "x/below-an-object"])
def test_what_is_missing_is_named(folder: Folder, name: str) -> None:
    folder.write("x", TEN)
    for arguments in ((), (2, 5), (-5,), (5, 5)):
        with pytest.raises(StoreError) as caught:
            folder.read(name, *arguments)
        assert str(caught.value) == f"{folder.path(name)} is missing"
    with pytest.raises(StoreError, match="is missing"):
        folder.size(name)
    assert not folder.exists(name)


# Writing


def test_written_and_listed_and_deleted(folder: Folder) -> None:
    assert folder.names() == []
    assert folder.nbytes() == 0
    folder.write("b", TEN)
    folder.write("a", b"old")
    folder.write("a", b"new")
    folder.write("deep/down/c", b"1234")
    assert folder.names() == ["a", "b", "deep"]
    assert (folder / "deep").names() == ["down"]
    assert folder.nbytes() == 17
    assert Folder(folder.path("b")).nbytes() == 10
    assert folder.read("a") == b"new"
    folder.delete("a")
    folder.delete("a")
    assert folder.names() == ["b", "deep"]
    (folder / "deep").remove()
    (folder / "deep").remove()
    assert folder.names() == ["b"]
    folder.remove()
    assert folder.names() == []
    assert not folder.exists("b")


def test_removing_takes_no_neighbours(folder: Folder) -> None:
    for name in ("run", "run1", "run-2", "ru", "run.json"):
        (folder / name).write("x", TEN)
    (folder / "run").remove()
    assert folder.names() == ["ru", "run-2", "run.json", "run1"]


@pytest.mark.parametrize("size", [0, 10, 6 << 20])
def test_a_created_object_appears_at_the_end(folder: Folder, size: int) -> None:
    with folder.create("x") as file:
        file.write(bytes(size))
        assert not folder.exists("x")
    assert folder.size("x") == size
    assert folder.names() == ["x"]


@pytest.mark.parametrize(("error", "size"), each_once([KeyError, KeyboardInterrupt, OSError], [0, 10, 6 << 20]))
def test_a_creation_that_fails_leaves_nothing(folder: Folder, size: int, error: type[BaseException]) -> None:
    folder.write("x", TEN)
    with pytest.raises(error, match="enough"), folder.create("x") as file:
        file.write(bytes(size))
        raise error("enough")
    gc.collect()  # a file that is still open may try to upload as it goes
    assert folder.read("x") == TEN
    assert folder.names() == ["x"]
    if folder.remote:
        bucket = folder.location.split("/")[2]
        assert "Uploads" not in boto3.client("s3").list_multipart_uploads(Bucket=bucket)


def test_readers_see_whole_objects_only(folder: Folder) -> None:
    versions = [bytes([i]) * 300_000 for i in range(12)]
    folder.write("x", versions[0])
    seen, stop = set(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(folder.read("x"))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(look) for _ in range(2)]
        for i, version in enumerate(versions):
            if i % 2:
                folder.write("x", version)
                continue
            with folder.create("x") as file:
                for first in range(0, len(version), 50_000):
                    file.write(version[first : first + 50_000])
        stop.set()
        for reader in readers:
            reader.result()
    assert seen <= set(versions)


def test_one_of_many_writes_a_new_object(folder: Folder) -> None:
    with ThreadPoolExecutor(8) as pool:
        wins = list(pool.map(lambda i: folder.write_new("claim", bytes([i]) * 1000), range(16)))
    assert sum(wins) == 1
    assert folder.read("claim") == bytes([wins.index(True)]) * 1000
    assert not folder.write_new("claim", b"late")
    assert folder.names() == ["claim"]
    folder.delete("claim")
    assert folder.write_new("claim", b"again")
    assert (folder / "deep").write_new("er/claim", b"first")
    assert folder.read("deep/er/claim") == b"first"


@pytest.mark.parametrize("how", ["refused", "missing"])
def test_one_of_many_writes_a_new_object_where_there_are_no_links(how: str, tmp_path: Path, monkeypatch: Any) -> None:
    if how == "missing":
        monkeypatch.delattr(os, "link")
    else:

        def refuse(*_: Any) -> None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

        monkeypatch.setattr(os, "link", refuse)
    test_one_of_many_writes_a_new_object(Folder(str(tmp_path / "plain")))
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Folder(str(tmp_path / "plain")).write_new("other", b"lost")
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == ["claim", "deep"]


def test_a_file_where_the_folder_should_be_is_no_lost_race(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = Folder(f"{tmp_path}/file")
    with pytest.raises(OSError, match="file"):
        folder.write_new("claim", b"")
    with pytest.raises(OSError, match="file"):
        folder.write("claim", b"")


def test_a_place_is_writable_when_a_write_succeeds(folder: Folder) -> None:
    assert folder.writable()
    assert folder.names() == []
    for place in ("/dev/null/x", "/proc/x", "http://127.0.0.1:9"):
        assert not Folder(place).writable()


# Names


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_odd_names(folder: Folder, odd: str) -> None:
    neighbour = folder / "a1"
    neighbour.write("mine", TEN)
    (folder / "a b c").write("mine", TEN)
    inside = folder / odd
    inside.write(odd, TEN)
    assert inside.write_new("claim", b"c")
    with inside.create("made") as file:
        file.write(b"m")
    assert inside.names() == sorted([odd, "claim", "made"])
    assert inside.read(odd, 2, 4) == b"23"
    assert inside.size(odd) == 10
    assert inside.nbytes() == 12
    assert sorted(folder.names()) == sorted(["a1", "a b c", odd])
    inside.delete(odd)
    assert inside.names() == ["claim", "made"]
    inside.remove()  # a name is never a pattern
    assert folder.names() == ["a b c", "a1"]
    assert neighbour.read("mine") == TEN


def test_locations() -> None:
    assert Folder.of("file:///data/a b").location == "/data/a b"
    assert Folder.of("/data/x/").location == "/data/x"
    assert Folder.of(Path("/data") / "x").location == "/data/x"
    assert Folder.of("s3://bucket/x").location == "s3://bucket/x"
    assert Path(Folder.of("here").location) == Path.cwd() / "here"
    assert (Folder("/") / "x").location == "/x"
    assert Folder("s3://bucket/x/").path("y") == "s3://bucket/x/y"
    assert [is_url(text) for text in ("s3://b", "file:///b", "/a/b", "a:b")] == [True, False, False, False]


# File systems that cannot do all of it


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """A folder behind plain HTTP: it can be read, and nothing else."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_web_is_read_only(web: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(TEN)
    folder = Folder(web)
    assert folder.read("x") == TEN
    with pytest.raises(StoreError, match="is missing"):
        folder.read("y")
    for write in (folder.write, folder.write_new):
        with pytest.raises(OSError, match=web):
            write("y", b"")
    with pytest.raises(OSError, match=web), folder.create("y"):
        pass


def test_missing_credentials_are_an_error_of_the_place(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    for act in (lambda f: f.write("x", b""), lambda f: f.read("x"), lambda f: f.exists("x"), lambda f: f.names()):
        with pytest.raises(OSError, match=f"{s3}.*credentials"):
            act(Folder(s3))


def test_a_protocol_nobody_knows_is_named() -> None:
    with pytest.raises(InputError, match="zork://somewhere cannot be used"):
        Folder("zork://somewhere").exists("x")


def test_the_file_without_room_is_named_and_nothing_is_left(tmp_path: Path, full_disk: Any) -> None:
    folder = Folder(str(tmp_path))
    for write in (folder.write, folder.write_new):
        with full_disk(1000), pytest.raises(OSError, match=f"too large: '{tmp_path}/x'"):
            write("x", bytes(5000))
    assert folder.names() == []


def test_a_place_that_nobody_answers_for_is_named() -> None:
    with pytest.raises(OSError, match=r"^http://127\.0\.0\.1:9/s: Cannot connect"):
        Folder("http://127.0.0.1:9/s").names()


def test_home_is_found_and_nowhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Folder.of("~/data").location == str(tmp_path / "data")
    with pytest.raises(InputError, match="empty"):
        Folder.of("")


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(tmp_path: Path) -> None:
    """The old one or the new one, and never as much of one as the other has."""
    folder, contents, stop = Folder(str(tmp_path)), [b"a" * 10, b"b" * 2000], threading.Event()
    folder.write("it", contents[0])

    def replace() -> None:
        while not stop.is_set():
            for content in contents:
                folder.scratch.write("it", content)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        assert {folder.read("it", 0, 1 << 16) for _ in range(3000)} <= set(contents)
    finally:
        stop.set()
        writer.join()
