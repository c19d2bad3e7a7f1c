"""No byte of what is kept changes silently: an error that names the place, or the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.store.cache import Kept
from nfs_dask.store.model_files import read_model, save_model
from nfs_dask.store.states import StoredPanels, write_manifest, write_panel, write_state

RNG = np.random.default_rng(3)
MODEL = NaiveBayesModel(
    method="multinomial",
    classes=np.array(["no", "yes"]),
    class_count=np.array([3.0, 5.0]),
    n_features=40,
    support=np.arange(0, 40, 2),
    evidence=Evidence(-12.5, 0.0, True, np.array([0.25, 0.75]), 7),
    names=tuple(f"word{i}" for i in range(20)),
    class_log_prior=np.log([0.375, 0.625]),
    alpha=1.0,
    present=np.log(RNG.random((2, 20))),
)


def plain(value: Any) -> Any:
    """Anything a reader got, as something that can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value


def kept_state(place: Path) -> Callable[[], Any]:
    kept = Kept(Folder(str(place)), "abc")
    statistics = [ClassCounts(n) for n in (2, 3, 4)]
    for number, statistic in enumerate(statistics):
        target = kept.reserve(statistic)
        assert target is not None
        arrays = {name: RNG.integers(0, 300 + number, (2, 30)) for name in ("sums", "squares")}
        write_state(target, State(arrays, {"rows": np.array([7, 9 + number])}), 30, {"statistic": statistic.describe()})
        assert kept.commit(statistic, target)

    def read() -> Any:
        found = [kept.find(statistic) for statistic in statistics]
        if None in found:
            raise StoreError(f"one of {place} is not kept")  # and would be made again
        return [(plain(one.state().arrays), plain(one.totals), one.facts) for one in found if one is not None]

    return read


def panels(place: Path) -> Callable[[], Any]:
    folder, bounds = Folder(str(place / "results")), (0, 10, 20, 30)
    checks = [
        write_panel(folder, i, {"sums": RNG.integers(0, 9, (2, 10)), "real_sums": RNG.random((2, 10))})
        for i in range(3)
    ]
    write_manifest(folder, {"rows": np.array([3, 4])}, bounds, checks, {"fingerprint": "abc"})

    def read() -> Any:
        found = StoredPanels(folder)
        return plain(found.state().arrays), plain(found.totals), found.facts, found.bounds

    return read


def model(place: Path) -> Callable[[], Any]:
    save_model(MODEL, {"k": 20, "alpha": 1.0}, place / "model")

    def read() -> Any:
        found, parameters = read_model(place / "model")
        return plain(found), parameters

    return read


KINDS = {"kept": kept_state, "panels": panels, "model": model}


def answer(read: Callable[[], Any], want: Any, place: Path) -> bool:
    """Whether everything is as before; anything else has to be an error that names a place inside."""
    try:
        found, told = read(), None
    except StoreError as error:
        found, told = None, "\n".join([str(error), *getattr(error, "__notes__", ())])
    assert str(place) in told if told is not None else found == want
    return told is None


def positions(size: int, most: int) -> list[int]:
    return sorted({*range(min(size, 4)), *range(max(0, size - 4), size), *RNG.integers(0, size, most).tolist()})


@pytest.mark.parametrize("most", [3, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_flipped_bit_is_silent(kind: str, most: int, tmp_path: Path) -> None:
    read = KINDS[kind](tmp_path)
    want, noticed = read(), 0
    for path in [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]:
        whole = bytearray(path.read_bytes())
        for at in positions(len(whole), most) if whole else []:
            bit = 1 << int(RNG.integers(8))
            whole[at] ^= bit
            path.write_bytes(whole)
            noticed += not answer(read, want, tmp_path)
            whole[at] ^= bit
        path.write_bytes(whole)
    assert noticed > 50
    assert read() == want


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_extended_and_emptied_files_are_noticed(kind: str, tmp_path: Path) -> None:
    read = KINDS[kind](tmp_path)
    want = read()
    for path in [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]:
        whole = path.read_bytes()
        for content in (b"", whole[:-1], whole[: len(whole) // 2], whole + b"\0", whole + whole, whole[1:]):
            path.write_bytes(content)
            answer(read, want, tmp_path)
        path.unlink()
        answer(read, want, tmp_path)
        path.write_bytes(whole)
    assert read() == want


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_or_folder_in_the_place_of_another_is_noticed(kind: str, tmp_path: Path) -> None:
    read = KINDS[kind](tmp_path)
    want, noticed = read(), 0
    everything = sorted(tmp_path.rglob("*"))
    for a, b in itertools.combinations(everything, 2):
        if a in b.parents or b in a.parents or (a.is_dir() != b.is_dir()) or a.stat().st_size != b.stat().st_size:
            continue
        swap(a, b, tmp_path / "aside")
        noticed += not answer(read, want, tmp_path)
        swap(a, b, tmp_path / "aside")
    assert noticed
    assert read() == want


def swap(a: Path, b: Path, aside: Path) -> None:
    a.rename(aside)
    b.rename(a)
    aside.rename(b)
