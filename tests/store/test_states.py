"""Finished states at rest: the same numbers come back, and damage is reported by name."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import sealed
from nfs_dask.statistics.statistic import State
from nfs_dask.store import states
from nfs_dask.store.states import MANIFEST, StoredPanels, write_manifest, write_panel, write_state
from nfs_dask.testing import assert_same

TOTALS = {
    "rows": np.array([3, 2**62, -1]),
    "weight": np.array([0.1, 1 / 3, 1e300]),
    "mass": np.array([7]),
}


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest) -> Folder:
    if request.param == "local":
        return Folder(f"{request.getfixturevalue('tmp_path')}/state")
    return Folder(f"{request.getfixturevalue('s3')}/state")


def example(n_features: int = 30) -> State:
    rng = np.random.default_rng(0)
    arrays = {"sums": rng.integers(-5, 300, (3, n_features)), "real_sums": rng.random((3, n_features))}
    return State(arrays, TOTALS)


# Round trips


def test_a_state_comes_back(folder: Folder) -> None:
    write_state(folder, example(), 30, {"fingerprint": "abc"})
    stored = StoredPanels(folder)
    assert_same(stored.state(), example(), exact=True)
    assert stored.bounds == (0, 30)
    assert stored.facts == {"fingerprint": "abc"}


@given(
    arrays_of.arrays(
        np.int64,
        st.tuples(st.integers(1, 3), st.integers(1, 9)),
        elements=st.one_of(
            st.integers(-3, 300), st.sampled_from([2**b for b in (7, 8, 15, 16, 31, 32, 53, 63)]).map(lambda v: v - 1)
        ),
    )
)
def test_whole_numbers_are_exact_however_narrow_they_lie(tmp_path_factory: Any, array: np.ndarray) -> None:
    folder = Folder(str(tmp_path_factory.mktemp("state")))
    for signed in (array, -array - 1):
        write_state(folder / str(signed[0, 0]), State({"sums": signed}, {}), array.shape[1], {})
        back = StoredPanels(folder / str(signed[0, 0])).state().arrays["sums"]
        assert back.dtype == np.int64
        np.testing.assert_array_equal(back, signed)


def test_floats_keep_their_bits(tmp_path: Path) -> None:
    odd = np.array([[-0.0, np.nextafter(0, 1), 1 / 3, np.finfo(float).max, np.pi, 0.0]])
    write_state(Folder(str(tmp_path)), State({"real_sums": odd}, TOTALS), 6, {})
    stored = StoredPanels(Folder(str(tmp_path)))
    assert stored.arrays(0)["real_sums"].tobytes() == odd.tobytes()
    for name, total in TOTALS.items():
        assert stored.totals[name].dtype == total.dtype
        assert stored.totals[name].tobytes() == total.tobytes()


def test_small_counts_take_a_byte(tmp_path: Path) -> None:
    for high, name in ((255, "uint8"), (65535, "uint16"), (2**32, "int64")):
        write_panel(Folder(str(tmp_path / name)), 0, {"sums": np.array([[0, high]])})
        assert zarr.open_array(tmp_path / name / "panel-00000" / "sums").dtype == name


@pytest.mark.parametrize("width", [1, 2, 5000])
def test_arrays_larger_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(states, "CHUNK_NBYTES", 1000)
    for array in (np.zeros((1, width), int), np.arange(3 * width).reshape(3, width), np.zeros((2, width))):
        folder = Folder(str(tmp_path / f"{array.shape}{array.dtype}"))
        for _ in range(2):  # a task that runs twice
            write_state(folder, State({"sums": array}, {}), width, {})
            np.testing.assert_array_equal(StoredPanels(folder).arrays(0)["sums"], array)


def test_panels_may_hold_different_arrays(folder: Folder) -> None:
    panels: list[dict[str, Any]] = [
        {"sums": np.array([[1, 2]])},
        {"sums": np.array([[3]]), "real_sums": np.array([[0.5]])},
        {"real_sums": np.array([[0.25, 0.75]])},
        {},
    ]
    for i, arrays in enumerate(panels):
        write_panel(folder, i, arrays)
    assert StoredPanels.find(folder) is None  # not before the manifest
    write_manifest(folder, TOTALS, (0, 2, 3, 5, 6), [sorted(arrays) for arrays in panels], {})
    stored = StoredPanels.find(folder)
    assert stored is not None
    assert len(stored) == 4
    whole = stored.state().arrays
    np.testing.assert_array_equal(whole["sums"], [[1, 2, 3, 0, 0, 0]])
    np.testing.assert_array_equal(whole["real_sums"], [[0, 0, 0.5, 0.25, 0.75, 0]])
    np.testing.assert_array_equal(stored.columns(np.array([4, 0, 2]))["sums"], [[0, 1, 3]])
    np.testing.assert_array_equal(stored.columns(np.array([4, 0, 2]))["real_sums"], [[0.75, 0, 0.5]])


def test_writing_a_panel_again_disturbs_no_reader(tmp_path: Path) -> None:
    folder, state = Folder(str(tmp_path)), example()
    write_state(folder, state, 30, {})
    stop, errors = threading.Event(), []

    def write_on() -> None:
        while not stop.is_set():
            try:
                write_panel(folder, 0, state.arrays)
            except Exception as error:
                errors.append(error)

    writers = [threading.Thread(target=write_on) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(60):
            assert_same(StoredPanels(folder).state(), state, exact=True)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors


# Damage


def objects(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and path.name != "zarr.json")


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    write_state(Folder(str(tmp_path)), State({"sums": np.array([[1, 2, 300], [4, 5, 6]])}, {}), 3, {})
    (shard,) = (path for path in objects(tmp_path) if path.name != MANIFEST)
    content = shard.read_bytes()
    damaged = [content[:n] for n in (0, 1, len(content) // 2, len(content) - 1)]
    damaged += [content[:i] + bytes([content[i] ^ 0xFF]) + content[i + 1 :] for i in range(len(content))]
    for changed in damaged:
        shard.write_bytes(changed)
        with pytest.raises(StoreError, match="panel-00000/sums is damaged"):
            StoredPanels(Folder(str(tmp_path))).arrays(0)


def test_what_is_missing_does_not_read_as_zeros(folder: Folder) -> None:
    write_state(folder, example(), 30, {})
    stored = StoredPanels(folder)
    (folder / "panel-00000").delete("sums/c/0/0")
    with pytest.raises(StoreError, match="panel-00000/sums/c/0/0 is missing"):
        stored.arrays(0)
    (folder / "panel-00000").delete("sums/zarr.json")
    with pytest.raises(StoreError, match="panel-00000/sums/zarr.json is missing"):
        stored.arrays(0)
    (folder / "panel-00000").remove()
    with pytest.raises(StoreError, match="panel-00000"):
        stored.arrays(0)
    folder.delete(MANIFEST)
    with pytest.raises(StoreError, match=r"states\.json is missing"):
        StoredPanels(folder)


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no object": lambda m: [],
    "a number": lambda m: 3,
    "no format": lambda m: {k: v for k, v in m.items() if k != "format"},
    "no bounds": lambda m: {k: v for k, v in m.items() if k != "bounds"},
    "one bound": lambda m: m | {"bounds": [0]},
    "no bound": lambda m: m | {"bounds": []},
    "bounds that decrease": lambda m: m | {"bounds": [0, -30]},
    "bounds from 1": lambda m: m | {"bounds": [1, 30]},
    "bounds of text": lambda m: m | {"bounds": ["0", "30"]},
    "bounds of floats": lambda m: m | {"bounds": [0, 30.5]},
    "bounds of nothing": lambda m: m | {"bounds": None},
    "more panels": lambda m: m | {"panels": [["sums"], ["sums"]]},
    "no panels": lambda m: m | {"panels": []},
    "a way out": lambda m: m | {"panels": [["../../../elsewhere"]]},
    "an absolute way out": lambda m: m | {"panels": [["/etc"]]},
    "names of numbers": lambda m: m | {"panels": [[7]]},
    "names of nothing": lambda m: m | {"panels": [None]},
    "objects as totals": lambda m: m | {"totals": {"rows": {"dtype": "|O", "values": [1]}}},
    "wide text as totals": lambda m: m | {"totals": {"rows": {"dtype": "<U999999999", "values": ["a"] * 99}}},
    "totals of no type": lambda m: m | {"totals": {"rows": {"dtype": "what", "values": [1]}}},
    "totals that overflow": lambda m: m | {"totals": {"rows": {"dtype": "<i8", "values": [2**70]}}},
    "ragged totals": lambda m: m | {"totals": {"rows": {"dtype": "<i8", "values": [[1], [1, 2]]}}},
    "a list of totals": lambda m: m | {"totals": [1]},
    "facts of nothing": lambda m: m | {"facts": None},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_manifests_are_refused(tmp_path: Path, what: str) -> None:
    write_state(Folder(str(tmp_path)), example(), 30, {})
    manifest = json.loads((tmp_path / MANIFEST).read_bytes())
    hostile = HOSTILE[what](manifest)
    (tmp_path / MANIFEST).write_bytes(sealed(hostile) if isinstance(hostile, dict) else json.dumps(hostile).encode())
    with pytest.raises(StoreError, match=r"states\.json is damaged .*delete it and run again"):
        StoredPanels(Folder(str(tmp_path)))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_a_manifest_that_is_no_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(StoreError, match=r"states\.json is damaged"):
        StoredPanels(Folder(str(tmp_path)))


def test_a_state_from_the_future_and_one_too_large(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"format": 99}')
    with pytest.raises(StoreError, match="holds states of format 99, this version reads 1"):
        StoredPanels(Folder(str(tmp_path)))
    with open(tmp_path / MANIFEST, "wb") as file:
        file.truncate(1 << 40)  # sparse: takes no space
    with pytest.raises(StoreError, match="larger than any state"):
        StoredPanels(Folder(str(tmp_path)))


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [3, 31]},
        {"shape": [10**12, 30]},  # would be 30 TB of zeros
        {"shape": [30]},
        {"shape": [3, 30, 0]},
        {"shape": "large"},
        {"data_type": "bool"},
        {"data_type": "string"},
        {"codecs": []},
        {"node_type": "group"},
        {"zarr_format": 4},
    ],
)
def test_hostile_arrays_are_refused_before_they_are_allocated(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_state(Folder(str(tmp_path)), example(), 30, {})
    path = tmp_path / "panel-00000" / "sums" / "zarr.json"
    metadata = json.loads(path.read_text()) | changes
    if len(metadata["shape"]) == 2:  # one chunk, so that it looks like one of ours
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = metadata["shape"]
        for codec in metadata["codecs"]:
            codec["configuration"]["chunk_shape"] = metadata["shape"]
    path.write_text(json.dumps(metadata))
    with pytest.raises(StoreError, match="panel-00000/sums is damaged"):
        StoredPanels(Folder(str(tmp_path))).arrays(0)


def test_what_lay_there_is_replaced(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    for array in (np.array([[1, 2, 3]]), np.array([[1, 2]]), np.array([[1, 2, 3000]]), np.array([[0.5]])):
        write_state(folder, State({"sums": array}, {}), array.shape[1], {})
        np.testing.assert_array_equal(StoredPanels(folder).arrays(0)["sums"], array)
    (tmp_path / "panel-00000" / "sums" / "c" / "0" / "0").write_bytes(b"half")
    write_panel(folder, 0, {"sums": np.array([[0.5]])})
    np.testing.assert_array_equal(StoredPanels(folder).arrays(0)["sums"], [[0.5]])
