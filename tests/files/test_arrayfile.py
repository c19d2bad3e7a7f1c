"""Files of named arrays: ranges of them, and every kind of damage."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import MAGIC, STRETCH, TAIL, ArrayFile, intact, write_arrays
from nfs_dask.files.folder import Folder

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
    write_arrays(folder, "file", ARRAYS, FACTS)
    return folder


def test_arrays_and_facts_come_back(folder):
    file = ArrayFile.open(folder, "file")
    assert file.facts == FACTS
    for key, array in ARRAYS.items():
        found = file.read(key)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype.newbyteorder("<")
        assert file.length(key) == len(array)
    assert "columns" in file and "rows" not in file


def test_any_range_of_an_array(folder):
    file = ArrayFile.open(folder, "file")
    edges = [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH, 3 * STRETCH + 5]
    for start in edges:
        for stop in edges:
            if start <= stop:
                np.testing.assert_array_equal(file.read("bytes", start, stop), ARRAYS["bytes"][start:stop])


def test_a_range_reads_no_more_than_the_stretches_it_touches(folder, monkeypatch):
    file = ArrayFile.open(folder, "file")
    asked = []
    read = Folder.read_array
    monkeypatch.setattr(Folder, "read_array", lambda self, *where: asked.append(where) or read(self, *where))
    file.read("bytes", STRETCH + 3, STRETCH + 4)
    assert asked == [("file", STRETCH, 2 * STRETCH)]


def test_writing_again_leaves_the_same_bytes(folder, tmp_path):
    before = (tmp_path / "file").read_bytes()
    assert write_arrays(folder, "file", ARRAYS, FACTS) == len(before)
    assert (tmp_path / "file").read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


def test_a_long_trailer(tmp_path):
    folder, facts = Folder(str(tmp_path)), {"long": "x" * (2 * TAIL)}
    write_arrays(folder, "file", {"one": np.ones(1)}, facts)
    assert ArrayFile.open(folder, "file").facts == facts


def test_a_missing_file(tmp_path):
    with pytest.raises(StoreError, match="nowhere is missing"):
        ArrayFile.open(Folder(str(tmp_path)), "nowhere")


def rewritten(path, words):
    """A file with other words in its trailer and a checksum that fits."""
    trailer = json.dumps(words).encode()
    covered = trailer + (0).to_bytes(8, "little") + len(trailer).to_bytes(8, "little")
    path.write_bytes(covered + google_crc32c.value(covered).to_bytes(8, "little") + MAGIC)


@pytest.mark.parametrize(
    "words",
    [
        {"name": "file", "arrays": [["one", "<i8", [2**50]]], "facts": {}},
        {"name": "file", "arrays": [["one", "O", [1]]], "facts": {}},
        {"name": "file", "arrays": [["one", "<i8", [-1]]], "facts": {}},
        {"name": "file", "arrays": [["one", "<i8", [0.5]]], "facts": {}},
        {"name": "file", "arrays": [["one", "<i8"]], "facts": {}},
        {"name": "other", "arrays": [], "facts": {}},
        {"name": "file", "arrays": []},
        {"name": "file", "arrays": [], "facts": 3},
        [],
    ],
)
def test_a_trailer_that_cannot_be_allocates_nothing(tmp_path, words):
    rewritten(tmp_path / "file", words)
    with pytest.raises(StoreError, match="file is truncated, damaged"):
        ArrayFile.open(Folder(str(tmp_path)), "file")


def test_an_array_that_is_not_there_is_damage(folder):
    file = ArrayFile.open(folder, "file")
    for ask in (file.read, file.array, file.length, file.dtype):
        with pytest.raises(StoreError, match="file is truncated, damaged"):
            ask("rows")
    with pytest.raises(StoreError, match="file is truncated, damaged"):
        file.read("columns", 0, 2**51)


def test_arrays_of_any_shape_come_back(tmp_path):
    arrays = {"square": np.arange(12.0).reshape(3, 4), "flat": np.ones((0, 5)), "one": np.array(7)}
    arrays["turned"] = arrays["square"].T
    write_arrays(Folder(str(tmp_path)), "file", arrays, {})
    file = ArrayFile.open(Folder(str(tmp_path)), "file")
    assert file.keys == list(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(file.array(key), array)


# Damage


def all_of(folder, name="file"):
    """All numbers and facts of a file."""
    file = ArrayFile.open(folder, name)
    return {key: file.array(key).tolist() for key in file.keys}, file.facts


def unnoticed(folder, want):
    """Whether a file still says the same; that it says anything else is an error that names it."""
    with contextlib.suppress(StoreError):
        assert all_of(folder) == want
        return True
    with pytest.raises(StoreError, match="file is truncated, damaged"):
        all_of(folder)
    return False


@pytest.fixture
def small(tmp_path):
    """A file of a few hundred bytes, and what it says."""
    folder = Folder(str(tmp_path))
    arrays = {"one": np.arange(3), "two": np.arange(17, dtype=np.uint8), "three": np.ones((2, 2))}
    write_arrays(folder, "file", arrays, {"fact": 1, "list": [1.5, "x"]})
    return folder, tmp_path / "file", all_of(folder)


def test_every_truncation_is_noticed(small):
    folder, path, _ = small
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError, match="file is truncated, damaged"):
            ArrayFile.open(folder, "file")


@pytest.mark.parametrize("more", [b"\0", b"x" * 31, b"\0" * 5000, MAGIC])
def test_every_extension_is_noticed(small, more):
    folder, path, _ = small
    whole = path.read_bytes()
    for content in (whole + more, more + whole, whole[:40] + more + whole[40:]):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="file is truncated, damaged"):
            all_of(folder)


def test_no_flipped_bit_changes_what_is_read(small):
    """Each bit of the file: an error that names it, or the same numbers where nothing but padding changed."""
    folder, path, want = small
    whole = bytearray(path.read_bytes())
    silent = 0
    for at in range(len(whole)):
        for bit in range(8):
            whole[at] ^= 1 << bit
            path.write_bytes(whole)
            silent += unnoticed(folder, want)
            whole[at] ^= 1 << bit
    assert silent == 8 * (-17 % 8)  # the padding behind `two`


@given(data=st.data())
def test_no_change_anywhere_in_a_large_file_is_silent(tmp_path_factory, data):
    folder = Folder(str(tmp_path_factory.mktemp("large")))
    write_arrays(folder, "file", ARRAYS, FACTS)
    path = Path(folder.path("file"))
    want, whole = all_of(folder), path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=40))
    path.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    unnoticed(folder, want)


def test_one_file_in_the_place_of_another_is_noticed(tmp_path):
    folder = Folder(str(tmp_path))
    for name in ("a", "b"):
        write_arrays(folder, name, {"one": np.arange(3)}, {})
    (tmp_path / "a").replace(tmp_path / "b")
    with pytest.raises(StoreError, match="b is truncated, damaged or another file"):
        ArrayFile.open(folder, "b")


def test_only_a_whole_file_is_intact(folder, tmp_path, caplog):
    assert intact(folder, "nowhere") is None
    assert intact(folder, "file").facts == FACTS
    content = bytearray((tmp_path / "file").read_bytes())
    content[STRETCH + 7] ^= 4
    (tmp_path / "file").write_bytes(content)
    assert not caplog.messages
    assert intact(folder, "file") is None
    assert "file is truncated, damaged" in caplog.text and "making it again" in caplog.text


def test_ranges_are_read_from_object_storage(s3):
    folder = Folder(s3) / "counted"
    write_arrays(folder, "file", ARRAYS, FACTS)
    file = ArrayFile.open(folder, "file")
    np.testing.assert_array_equal(file.read("columns", 100, 200), ARRAYS["columns"][100:200])
    assert len(file.read("none")) == 0
    assert file.facts == FACTS
