"""Kept statistics are found by what they are, and never get in the way of a pass."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.store.cache import Kept
from nfs_dask.store.states import StoredPanels, write_state
from nfs_dask.testing import assert_same

COUNTS = ClassCounts(3)
BOTH = ClassCounts(3, with_documents=True)


@pytest.fixture(params=["local", "s3"])
def kept(request: pytest.FixtureRequest) -> Kept:
    place = request.getfixturevalue("tmp_path" if request.param == "local" else "s3")
    return Kept(Folder(f"{place}/kept"), "abc")


def state(number: int = 1) -> State:
    return State({"sums": np.full((3, 4), number)}, {"rows": np.array([1, 2, number])})


def keep(kept: Kept, statistic: ClassCounts = COUNTS, number: int = 1) -> Folder:
    target = kept.reserve(statistic)
    assert target is not None
    write_state(target, state(number), 4, {})
    kept.commit(statistic, target)
    return target


def found(kept: Kept, statistic: ClassCounts = COUNTS) -> StoredPanels:
    panels = kept.find(statistic)
    assert panels is not None
    return panels


def test_found_by_description_and_fingerprint(kept: Kept) -> None:
    assert kept.find(COUNTS) is None
    assert kept.descriptions() == []
    keep(kept, BOTH)
    assert_same(found(kept, BOTH).state(), state(), exact=True)
    assert_same(found(kept, COUNTS).state(), state(), exact=True)  # counts with documents hold counts
    assert found(kept, ClassCounts(3, False, True)) is not None
    for other in (replace(BOTH, threshold=1.0), replace(BOTH, n_classes=4), ClassCounts(3, False, True, 1.0)):
        assert kept.find(other) is None
    assert replace(kept, fingerprint="other").find(BOTH) is None
    assert kept.descriptions() == [BOTH.describe()]
    assert replace(kept, fingerprint="other").descriptions() == []


def test_counts_do_not_hold_documents(kept: Kept) -> None:
    keep(kept, COUNTS)
    assert kept.find(BOTH) is None


def test_nothing_counts_before_it_is_committed(kept: Kept) -> None:
    target = kept.reserve(COUNTS)
    assert target is not None
    assert kept.find(COUNTS) is None
    write_state(target, state(), 4, {})
    assert kept.find(COUNTS) is None
    kept.commit(COUNTS, target)
    assert kept.find(COUNTS) is not None


def test_two_writers_at_once_have_folders_of_their_own(kept: Kept) -> None:
    with ThreadPoolExecutor(4) as pool:
        targets = list(pool.map(lambda n: keep(kept, number=n), range(8)))
    assert len({target.location for target in targets}) == 8
    number = int(found(kept).totals["rows"][2])
    assert_same(found(kept).state(), state(number), exact=True)
    keep(kept, number=99)  # the first one stays: whoever reads it goes on reading it
    assert found(kept).totals["rows"][2] == number


# Damage


def pointer(kept: Kept) -> str:
    (name,) = (name for name in kept.folder.names() if name.endswith(".json"))
    return name


OUTSIDE = ["../elsewhere", "/etc", "", ".", "..", "a" * 32 + "-" + "0" * 8 + "/..", "G" * 32 + "-00000000", 7, None, []]


@pytest.mark.parametrize("folder", OUTSIDE)
def test_a_pointer_names_a_folder_beside_it_and_nothing_else(tmp_path: Path, folder: Any) -> None:
    kept = Kept(Folder(str(tmp_path / "kept")), "abc")
    keep(kept)
    write_state(Folder(str(tmp_path / "elsewhere")), state(), 4, {})
    kept.folder.write(pointer(kept), json.dumps({"folder": folder, "statistic": COUNTS.describe()}).encode())
    for look in (lambda: kept.find(COUNTS), kept.descriptions):
        with pytest.raises(StoreError, match=rf"kept/{pointer(kept)} is damaged; delete it and run again"):
            look()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'"text"', b"[" * 100_000, b" " * (2 << 20)])
def test_a_pointer_that_is_none(tmp_path: Path, content: bytes) -> None:
    kept = Kept(Folder(str(tmp_path)), "abc")
    keep(kept)
    kept.folder.write(pointer(kept), content)
    with pytest.raises(StoreError, match="is damaged; delete it and run again"):
        kept.find(COUNTS)


def test_a_pointer_to_something_that_is_gone(kept: Kept) -> None:
    keep(kept).remove()
    with pytest.raises(StoreError, match="points at nothing; delete it and run again"):
        kept.find(COUNTS)
    kept.folder.delete(pointer(kept))
    keep(kept)
    assert_same(found(kept).state(), state(), exact=True)


def test_other_files_beside_are_no_pointers(kept: Kept) -> None:
    keep(kept)
    kept.folder.write("notes.txt", b"mine")
    assert kept.descriptions() == [COUNTS.describe()]
    assert_same(found(kept).state(), state(), exact=True)


# Places that cannot be written


@pytest.mark.parametrize("place", ["/dev/null/kept", "/proc/kept", "http://127.0.0.1:9/kept"])
@pytest.mark.parametrize("panels", [1, 3])
def test_a_pass_does_without_a_place_to_keep_things(place: str, panels: int) -> None:
    corpus = GeneratedCorpus(200, 100, 3, words_per_document=5, block_rows=50)
    kept = Kept(Folder(place), "abc")
    assert kept.reserve(COUNTS) is None
    if place.startswith("/"):
        result = SerialEngine(panels=panels).reduce(COUNTS, corpus, kept=kept, beside=Folder(place))
        assert_same(result.state, SerialEngine().reduce(COUNTS, corpus).state, exact=True)


def test_a_full_disk_does_not_lose_the_result_of_a_pass(tmp_path: Path, full_disk: Any, caplog: Any) -> None:
    corpus = GeneratedCorpus(200, 2000, 3, words_per_document=5, block_rows=50)
    kept = Kept(Folder(str(tmp_path)), "abc")
    with full_disk(300):
        result = SerialEngine().reduce(COUNTS, corpus, kept=kept)
    assert_same(result.state, SerialEngine().reduce(COUNTS, corpus).state, exact=True)
    assert "not kept" in caplog.text and "too large" in caplog.text
    assert kept.find(COUNTS) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("panels", [1, 3])
def test_a_pass_that_fails_keeps_nothing(tmp_path: Path, panels: int) -> None:
    class Broken(GeneratedCorpus):
        def blocks(self, start: int, stop: int) -> Any:
            raise OSError("the disk has had enough")

    corpus = Broken(200, 100, 3, words_per_document=5, block_rows=50)
    with pytest.raises(OSError, match="enough"):
        SerialEngine(panels=panels).reduce(COUNTS, corpus, kept=Kept(Folder(str(tmp_path)), "abc"))
    assert list(tmp_path.iterdir()) == []


def test_a_pointer_whose_checksum_goes_by_another_name_is_damaged(tmp_path: Path) -> None:
    kept = Kept(Folder(f"{tmp_path}/kept"), "abc")
    keep(kept)
    path = tmp_path / "kept" / pointer(kept)
    path.write_bytes(path.read_bytes().replace(b'"crc32c"', b'"crc32b"').replace(b'"n_classes": 3', b'"n_classes": 2'))
    for look in (kept.descriptions, lambda: kept.find(COUNTS)):
        with pytest.raises(StoreError, match=r"is damaged; delete it"):
            look()
