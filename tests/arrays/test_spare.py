"""Memory is used again once there is no view of it left, and never before."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nfs_dask.arrays import spare as module
from nfs_dask.arrays.spare import LEAST, MOST_KEPT, give_back, spare


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kept", {})


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_an_array_takes_the_place_of_one_that_is_gone() -> None:
    first = spare((3, LEAST), np.float32)
    assert (first.shape, first.dtype, first.flags.writeable) == ((3, LEAST), np.float32, True)
    place = address(first)
    del first
    assert address(spare((LEAST, 2), np.float32)) == place


@pytest.mark.parametrize("view", [np.ravel, np.transpose, lambda a: a[1:, 5:].view(np.uint8), lambda a: a[:1].data])
def test_no_view_is_ever_overwritten(view) -> None:
    array = spare((4, LEAST), np.float64)
    array[:] = 1.0
    kept = view(array)
    before = np.array(kept)
    del array
    spare((4, LEAST), np.float64)[:] = 2.0
    np.testing.assert_array_equal(np.array(kept), before)


def test_small_arrays_and_those_of_other_sizes_are_their_own() -> None:
    tiny = spare((LEAST // 8 - 1,), np.float64)
    place = address(tiny)
    del tiny
    assert not module._kept
    large = spare((8 * LEAST,), np.uint8)
    place = address(large)
    del large
    assert address(small := spare((LEAST,), np.uint8)) != place  # it would waste most of that
    assert address(spare((8 * LEAST,), np.uint8)) == place
    assert small.nbytes == LEAST


def test_no_more_is_kept_than_is_said() -> None:
    arrays = [spare((MOST_KEPT // 4,), np.uint8) for _ in range(9)]
    del arrays
    assert sum(map(len, module._kept.values())) == MOST_KEPT


def test_what_waits_longest_goes_first_and_what_fits_best_is_taken() -> None:
    sizes = [MOST_KEPT // 2, MOST_KEPT // 4, MOST_KEPT // 8, MOST_KEPT // 4]
    arrays = [spare((size,), np.uint8) for size in sizes]
    places = [address(array) for array in arrays]
    while arrays:
        del arrays[0]
    assert [address(memory) for memory in module._kept.values()] == places[1:]  # there was no room for all
    assert address(spare((MOST_KEPT // 8 - 1,), np.uint8)) == places[2]
    give_back()
    assert not module._kept


def test_threads_never_share_an_array() -> None:
    wrong = []

    def work(number: int) -> None:
        for _ in range(200):
            array = spare((LEAST,), np.uint8)
            array[:] = number
            if (array != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_has_the_id_of_one_that_went_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another thread gave all back, and then released a smaller array that lies where the larger one was."""

    class Reused(dict):
        pops = 0

        def pop(self, key, default=None):
            self.pops += 1
            if self.pops == 1:
                self[key] = np.empty(LEAST, np.uint8)
            return super().pop(key, default)

    monkeypatch.setattr(module, "_kept", Reused({1: np.empty(4 * LEAST, np.uint8)}))
    array = spare((4 * LEAST,), np.uint8)
    assert array.nbytes == 4 * LEAST
    assert [len(memory) for memory in module._kept.values()] == [LEAST]
