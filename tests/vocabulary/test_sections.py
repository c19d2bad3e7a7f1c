"""Files of named arrays: ranges of them, and every kind of damage."""

from __future__ import annotations

import json
import os
import zlib

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder
from nfs_dask.vocabulary.sections import STRETCH, TAIL, Sections, write_sections

RANDOM = np.random.default_rng(4)
ARRAYS = {
    "bytes": RANDOM.integers(0, 256, 3 * STRETCH + 5, dtype=np.uint8),
    "none": np.zeros(0, np.int64),
    "columns": RANDOM.integers(0, 2**31, STRETCH // 4 + 1, dtype=np.int32),
    "weights": RANDOM.random(77),
    "big": np.arange(10, dtype=">i8"),
}
FACTS = {"n": 3, "text": "ä\0", "list": [1.5, None, True]}


@pytest.fixture
def folder(tmp_path):
    folder = Folder(str(tmp_path))
    write_sections(folder, "file", ARRAYS, FACTS)
    return folder


def test_arrays_and_facts_come_back(folder):
    sections = Sections.open(folder, "file")
    assert sections.facts == FACTS
    for key, array in ARRAYS.items():
        found = sections.read(key)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype.newbyteorder("<")
        assert sections.length(key) == len(array)
    assert "columns" in sections and "rows" not in sections


def test_any_range_of_an_array(folder):
    sections = Sections.open(folder, "file")
    edges = [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH, 3 * STRETCH + 5]
    for start in edges:
        for stop in edges:
            if start <= stop:
                np.testing.assert_array_equal(sections.read("bytes", start, stop), ARRAYS["bytes"][start:stop])


def test_a_range_reads_no_more_than_the_stretches_it_touches(folder, monkeypatch):
    sections = Sections.open(folder, "file")
    asked = []
    read = Folder.read
    monkeypatch.setattr(Folder, "read", lambda self, *where: asked.append(where) or read(self, *where))
    sections.read("bytes", STRETCH + 3, STRETCH + 4)
    assert asked == [("file", STRETCH, 2 * STRETCH)]


def test_writing_again_leaves_the_same_bytes(folder, tmp_path):
    before = (tmp_path / "file").read_bytes()
    assert write_sections(folder, "file", ARRAYS, FACTS) == len(before)
    assert (tmp_path / "file").read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


def test_a_long_trailer(tmp_path):
    folder, facts = Folder(str(tmp_path)), {"long": "x" * (2 * TAIL)}
    write_sections(folder, "file", {"one": np.ones(1)}, facts)
    assert Sections.open(folder, "file").facts == facts


def test_a_missing_file(tmp_path):
    with pytest.raises(StoreError, match="nowhere is missing"):
        Sections.open(Folder(str(tmp_path)), "nowhere")


def test_every_truncation_is_noticed(tmp_path):
    folder = Folder(str(tmp_path))
    write_sections(folder, "file", {"one": np.arange(3)}, {})
    whole = (tmp_path / "file").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "file").write_bytes(whole[:size])
        with pytest.raises(StoreError, match="file is truncated, damaged"):
            Sections.open(folder, "file")


def test_every_damaged_byte_is_noticed(tmp_path):
    folder = Folder(str(tmp_path))
    write_sections(folder, "file", {"one": np.arange(3), "two": np.arange(16, dtype=np.uint8)}, {"fact": 1})
    whole = bytearray((tmp_path / "file").read_bytes())
    for at in range(len(whole)):
        whole[at] ^= 64
        (tmp_path / "file").write_bytes(whole)
        with pytest.raises(StoreError, match="file is truncated, damaged"):
            sections = Sections.open(folder, "file")
            sections.read("one"), sections.read("two")
        whole[at] ^= 64


def test_a_trailer_that_says_too_much_allocates_nothing(tmp_path):
    at = {"offset": 0, "dtype": "<i8", "n": 2**50, "crc32c": ""}
    trailer = json.dumps({"sections": {"one": at}, "facts": {}}).encode()
    ending = len(trailer).to_bytes(8, "little") + zlib.crc32(trailer).to_bytes(8, "little") + b"NFSSEC01"
    (tmp_path / "file").write_bytes(trailer + ending)
    sections = Sections.open(Folder(str(tmp_path)), "file")
    with pytest.raises(StoreError, match="file is truncated, damaged"):
        sections.read("one")
    with pytest.raises(StoreError, match="file is truncated, damaged"):
        sections.read("one", 0, 2**51)


def test_ranges_are_read_from_object_storage(s3):
    folder = Folder(s3) / "counted"
    write_sections(folder, "file", ARRAYS, FACTS)
    sections = Sections.open(folder, "file")
    np.testing.assert_array_equal(sections.read("columns", 100, 200), ARRAYS["columns"][100:200])
    assert len(sections.read("none")) == 0
    assert sections.facts == FACTS
