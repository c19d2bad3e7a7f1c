"""Class moments against exact fractions, reference vectors, and the laws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from nfs_dask.arrays.block import Block, integers_as_integers
from nfs_dask.errors import InputError
from nfs_dask.methods.centers import CenterSettings, moment_path
from nfs_dask.statistics.moments import POWER, ClassMoments, Moments, moments, take_away
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import assert_same, check_statistic, fold

N_CLASSES = 3
WITH_SQUARES = ClassMoments(N_CLASSES, squares=True)
KINDS = ["uint8", "int8", "uint16", "int32", "int64", "float32", "float64"]
WHOLE_LAYOUT = {"sums", "squares"}


def rows_block(X: np.ndarray, codes: Any, weights: np.ndarray | None = None, full: bool = False) -> Block:
    """A block with its zeros left out, or with all of them stored."""
    rows, columns = np.nonzero(np.ones(X.shape) if full else X)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return Block(indptr, columns.astype(np.int32), X[rows, columns], np.asarray(codes, np.int32), X.shape[1], weights)


def random_rows(dtype: str, weights: str | None = None, n: int = 25, m: int = 9, seed: int = 0) -> tuple[Any, Any, Any]:
    """Sparse rows with negative values where the type has them, their classes and their weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-5 if np.dtype(dtype).kind != "u" else 1, 120, (n, m)) * (rng.random((n, m)) < 0.5)
    X = (X * 0.7).astype(dtype) if dtype.startswith("float") else X.astype(dtype)
    w = {None: None, "whole": rng.integers(0, 4, n), "real": rng.random(n)}[weights]
    return X, rng.integers(N_CLASSES, size=n), w


def blocks_of(X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, cuts: Any = (4, 4, 5, 14, 17, 23)) -> Any:
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(X)], strict=True)]
    return [rows_block(X[p], codes[p], None if weights is None else weights[p]) for p in parts]


def by_fractions(X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, n_classes: int = N_CLASSES) -> Moments:
    """The definitions, in exact arithmetic, rounded once at the end."""
    w = [Fraction(1)] * len(X) if weights is None else [Fraction(x) for x in weights.tolist()]
    W = [sum((w[i] for i in range(len(X)) if codes[i] == c), Fraction(0)) for c in range(n_classes)]
    means, variances = [], []
    for column in X.T:
        x = [Fraction(v) for v in column.tolist()]
        sums = [sum((w[i] * x[i] for i in range(len(x)) if codes[i] == c), Fraction(0)) for c in range(n_classes)]
        mean = [s / v if v else Fraction(0) for s, v in zip(sums, W, strict=True)]
        grand = sum(sums) / sum(W)
        inside = [Fraction(0)] * n_classes
        for i, c in enumerate(codes):
            inside[c] += w[i] * (x[i] - mean[c]) ** 2
        total = sum((w[i] * (x[i] - grand) ** 2 for i in range(len(x))), Fraction(0))
        spread = sum((q / v for q, v in zip(inside, W, strict=True) if v), Fraction(0))
        means.append([float(m) for m in mean])
        variances.append([float(spread), float(sum(inside) / sum(W)), float(total / sum(W))])
    return Moments(np.array([float(v) for v in W]), np.array(means).T, *np.array(variances).T)


def assert_close(found: Moments, truth: Moments, rtol: float, means_exact: bool = True) -> None:
    if means_exact:
        np.testing.assert_array_equal(found.means, truth.means)
    np.testing.assert_allclose(found.means, truth.means, rtol=1e-15)
    np.testing.assert_allclose(found.weight, truth.weight, rtol=1e-16)
    for name in ("spread", "within", "total"):
        np.testing.assert_allclose(getattr(found, name), getattr(truth, name), rtol=rtol, err_msg=name)


# Laws and values


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("dtype", KINDS)
def test_laws_and_fractions(dtype: str, weights: str | None) -> None:
    X, codes, w = random_rows(dtype, weights)
    blocks = blocks_of(X, codes, w)
    whole = not dtype.startswith("float") and weights != "real"
    check_statistic(ClassMoments(N_CLASSES), blocks, exact=whole)
    check_statistic(WITH_SQUARES, blocks, exact=whole)
    state = fold(WITH_SQUARES, blocks)
    assert (set(state.arrays) == WHOLE_LAYOUT) == whole
    assert_close(moments(state), by_fractions(X, codes, w), 1e-15)
    without = moments(fold(ClassMoments(N_CLASSES), blocks))
    np.testing.assert_array_equal(without.means, moments(state).means)
    assert without.spread is without.within is without.total is None


def test_whole_and_real_blocks_stand_side_by_side() -> None:
    A, B = random_rows("uint8"), random_rows("float64", seed=1)
    state = fold(WITH_SQUARES, [rows_block(*A), rows_block(*B)])
    X, codes = np.concatenate([A[0].astype(float), B[0]]), np.concatenate([A[1], B[1]])
    assert_close(moments(state), by_fractions(X, codes, None), 1e-15)


def cost(state: State) -> float:
    """Of no features at all, by squares: of sums over all features, which are finished as centers are."""
    width = next(iter(state.arrays.values())).shape[1]
    return moment_path(MemoryPanels(state, width), CenterSettings(k=1)).null


def test_stored_zeros_are_zeros() -> None:
    X, codes, w = random_rows("float32", "real")
    assert_same(
        fold(WITH_SQUARES, [rows_block(X, codes, w, full=True)]), fold(WITH_SQUARES, [rows_block(X, codes, w)]), True
    )


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_the_partition_does_not_show_in_reals(weights: str | None) -> None:
    """Doubles of any size, signs mixed: whatever the blocks, the order and the tree, the same doubles come out."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 20)) * 10.0 ** rng.integers(-6, 7, (400, 20))
    codes, w = rng.integers(N_CLASSES, size=400), random_rows("float64", weights, n=400)[2]
    found = []
    for _ in range(8):
        order = rng.permutation(400)
        cuts = np.sort(rng.integers(0, 401, 12)).tolist()
        states = [
            fold(WITH_SQUARES, [b]) for b in blocks_of(X[order], codes[order], None if w is None else w[order], cuts)
        ]
        while len(states) > 1:
            i = int(rng.integers(len(states) - 1))
            states[i : i + 2] = [WITH_SQUARES.merge(states[i], states[i + 1])]
        found.append((moments(states[0]), cost(states[0])))
    for other, spread in found[1:]:
        assert_close(other, found[0][0], 0)
        assert spread == found[0][1]


@pytest.mark.parametrize("weights", [None, "whole"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_large_offsets_cost_no_digits(offset: float, dtype: str, weights: str | None) -> None:
    rng = np.random.default_rng(4)
    X = (offset + rng.normal(size=(600, 3)) * [1, 10, 1000]).astype(dtype)
    codes, w = rng.integers(N_CLASSES, size=600), random_rows("float64", weights, n=600)[2]
    state = fold(WITH_SQUARES, blocks_of(X, codes, w, cuts=(50, 51, 400)))
    truth = by_fractions(X, codes, w)
    assert_close(moments(state), truth, 1e-15)


def test_large_offsets_under_real_weights() -> None:
    rng = np.random.default_rng(5)
    X, codes, w = 1e9 + rng.normal(size=(500, 2)), rng.integers(N_CLASSES, size=500), rng.random(500)
    state = fold(WITH_SQUARES, blocks_of(X, codes, w, cuts=(50, 51, 400)))
    assert_close(moments(state), by_fractions(X, codes, w), 1e-12)


def test_large_whole_numbers() -> None:
    """Squares beyond 2^32 leave the integers, entry by entry; sums stay."""
    rng = np.random.default_rng(6)
    X = rng.choice([3, -40_000, 65_536, 1_760_000_000, 2**45 + 1], size=(200, 4)) + rng.integers(-2, 3, (200, 4))
    codes, w = rng.integers(N_CLASSES, size=200), rng.integers(0, 5, 200)
    for weights in (None, w):
        blocks = blocks_of(X, codes, weights, cuts=(20, 90))
        check_statistic(WITH_SQUARES, blocks, exact=True)
        state = fold(WITH_SQUARES, blocks)
        assert set(state.arrays) == WHOLE_LAYOUT | {"real_squares", "real_squares_low", "real_squares_least"}
        assert_close(moments(state), by_fractions(X, codes, weights), 1e-15)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("value", [0.1, -1e9 / 3, 7.0, 1e100 / 3, np.float32(0.1)])
def test_constant_features_have_no_variance(value: Any, weights: str | None) -> None:
    X = np.full((1000, 1), value, np.asarray(value).dtype)
    rng = np.random.default_rng(7)
    w = {None: None, "whole": rng.integers(1, 9, 1000), "real": rng.random(1000)}[weights]
    state = fold(WITH_SQUARES, blocks_of(X, rng.integers(N_CLASSES, size=1000), w, cuts=(333,)))
    found = moments(state)
    np.testing.assert_array_equal(found.means, float(value))
    assert found.spread.tolist() == found.within.tolist() == [0.0]
    assert found.total[0] <= 1e-30 * float(value) ** 2


def test_features_that_differ_in_their_last_bit_have_a_variance() -> None:
    X = np.full((1000, 1), 1e9)
    X[0, 0] = np.nextafter(1e9, 2e9)
    codes = np.zeros(1000, int)
    assert_close(moments(fold(WITH_SQUARES, [rows_block(X, codes)])), by_fractions(X, codes, None), 1e-15)


def test_classes_without_documents_take_no_part() -> None:
    X, codes, _ = random_rows("float64")
    few = fold(ClassMoments(3, True), [rows_block(X, codes)])
    many = fold(ClassMoments(6, True), [rows_block(X, codes * 2 + 1)])
    a, b = moments(few), moments(many)
    np.testing.assert_array_equal(b.means[1::2], a.means)
    assert not b.means[::2].any()
    for name in ("spread", "within", "total"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert cost(few) == cost(many)


def test_moments_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        moments(WITH_SQUARES.zero())


# Reference vectors


@pytest.mark.parametrize("as_integers", [False, True])
def test_variances_of_the_reference(golden: Any, as_integers: bool) -> None:
    for case in golden("centers.json"):
        X, y = np.array(case["inputs"]["X"], float), np.array(case["inputs"]["y"])
        block = rows_block(X, y)
        state = fold(ClassMoments(case["inputs"]["C"], True), [integers_as_integers(block) if as_integers else block])
        found, want = moments(state), case["expected"]["variances"]
        for name in ("within", "total"):
            np.testing.assert_allclose(getattr(found, name), want[name], rtol=1e-13, atol=0, err_msg=case["id"])


# Panels


class CutPanels(Panels):
    def __init__(self, state: State, bounds: tuple[int, ...]) -> None:
        self.totals, self.bounds, self._whole = state.totals, bounds, state

    def arrays(self, panel: int) -> dict[str, np.ndarray]:
        first, last = self.bounds[panel : panel + 2]
        return {name: array[:, first:last] for name, array in self._whole.arrays.items()}


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_panel_by_panel_is_the_same(dtype: str) -> None:
    X, codes, w = random_rows(dtype, "real", m=50)
    state = fold(WITH_SQUARES, [rows_block(X, codes, w)])
    whole = moments(state)
    panels = CutPanels(state, (0, 1, 30, 50))
    for first, part in panels:
        found = moments(part)
        columns = slice(first, first + found.means.shape[1])
        np.testing.assert_array_equal(found.means, whole.means[:, columns])
        for name in ("spread", "within", "total"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[columns])
    assert moment_path(panels, CenterSettings(k=1)).null == cost(state)


def test_wide_states_are_finished_in_pieces() -> None:
    m = 40_001  # more than one piece, and not a multiple
    indices = np.array([0, m - 1, 20_000], np.int32)
    block = Block(np.array([0, 2, 3]), indices, np.array([2, 4, 6], np.uint8), np.array([0, 1], np.int32), m)
    found = moments(fold(ClassMoments(2, True), [block]))
    assert found.means[0, [0, m - 1]].tolist() == [2, 4]
    assert found.means[1, 20_000] == 6
    np.testing.assert_array_equal(np.flatnonzero(found.total), np.sort(indices))


# Bounds


@pytest.mark.parametrize(("kind", "dtype"), [("binary", "uint8"), ("count", "uint32"), ("signed", "int64")])
@pytest.mark.parametrize("squares", [False, True])
def test_the_promised_size_holds(kind: Any, dtype: str, squares: bool) -> None:
    X = np.ones((4, 3), dtype) if kind == "binary" else np.full((4, 3), 100_000, dtype)
    statistic = ClassMoments(N_CLASSES, squares)
    state = fold(statistic, [rows_block(X, [0, 1, 2, 0])])
    taken = sum(a.nbytes for a in state.arrays.values())
    assert taken <= statistic.array_nbytes(3, kind, False) <= statistic.array_nbytes(3, None, True)
    if kind != "signed":
        assert taken > statistic.array_nbytes(3, kind, False) / 2


def test_narrow_types_do_not_wrap() -> None:
    n = 1 << 17
    for dtype in ("uint8", "int8", "uint16", "int16", "uint32"):
        X = np.full((n, 1), np.iinfo(dtype).max if dtype != "int8" else -128, dtype)
        state = fold(ClassMoments(1, True), [rows_block(X, np.zeros(n), w) for w in (None, np.full(n, 3))])
        found = moments(state)
        assert found.means[0, 0] == X[0, 0]
        assert found.total[0] == 0
        assert sum(Fraction(state.totals[name][0]) for name in POWER) == 4 * n * int(X[0, 0]) ** 2


@pytest.mark.parametrize("weights", [None, np.array([5])])
def test_sums_that_could_wrap_are_refused(weights: Any) -> None:
    block = rows_block(np.array([[2**61 if weights is None else -(2**60)]]), [0], weights)
    statistic = ClassMoments(1)
    with pytest.raises(InputError, match="2\\^62"):
        fold(statistic, [block, block])
    if weights is None:
        with pytest.raises(InputError, match="2\\^62"):
            statistic.merge(fold(statistic, [block]), fold(statistic, [block]))


def test_squares_beyond_floating_point_are_refused() -> None:
    with pytest.raises(InputError, match="scale"):
        fold(WITH_SQUARES, [rows_block(np.array([[1e200]]), [0])])


# Taking away


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_what_is_taken_away_is_gone(dtype: str, weights: str | None) -> None:
    X, codes, w = random_rows(dtype, weights, n=40)
    codes[30:] = 2  # the only documents of their class
    codes[:30] %= 2

    def of(rows: slice) -> State:
        return fold(WITH_SQUARES, [rows_block(X[rows], codes[rows], None if w is None else w[rows])])

    everything = of(slice(None))
    untouched = {name: array.copy() for name, array in everything.arrays.items()}
    for kept, taken in [(slice(0, 25), slice(25, None)), (slice(0, 30), slice(30, None))]:
        rest = take_away(everything, of(taken))
        alone = of(kept)
        exact = set(everything.arrays) == WHOLE_LAYOUT
        if exact:
            assert_same(rest, alone, exact=True)
        assert_close(moments(rest), moments(alone), 0 if exact else 1e-15)
    for name, array in untouched.items():
        np.testing.assert_array_equal(everything.arrays[name], array)
    nothing = take_away(everything, everything)
    assert not any(a.any() for a in (*nothing.arrays.values(), *nothing.totals.values()))


def test_whole_documents_of_a_real_block_can_be_taken_away() -> None:
    X = np.array([[0.5, 2.0], [3.0, -4.0], [1.0, 0.0]])
    codes = np.array([0, 0, 1])
    state = fold(ClassMoments(2, True), [rows_block(X, codes)])
    part = fold(ClassMoments(2, True), [integers_as_integers(rows_block(X[1:2], codes[1:2]))])
    assert set(part.arrays) == WHOLE_LAYOUT
    rest = take_away(state, part)
    assert_close(moments(rest), by_fractions(X[[0, 2]], codes[[0, 2]], None, 2), 0)
    assert int(rest.totals["mass"][0]) >= 16, "it bounds the whole numbers of the state"


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_strangers_are_not_taken_away(dtype: str) -> None:
    X, codes = np.array([[1, 2], [3, 0], [2, 2]], dtype), np.array([0, 0, 1])
    state = fold(WITH_SQUARES, [rows_block(X, codes)])
    for strange, labels in [
        ([[1, 2]], [2]),  # of a class without documents
        ([[9, 9]], [0]),  # larger than all there was
        ([[2, 0]], [1]),  # instead of the only one of its class
        ([[0, 0]] * 3, [0] * 3),  # more than there were
    ]:
        with pytest.raises(InputError, match="not among"):
            take_away(state, fold(WITH_SQUARES, [rows_block(np.array(strange, dtype), labels)]))
    weighted = rows_block(X[:1], codes[:1], np.array([3.0]))
    with pytest.raises(InputError, match="not among"):
        take_away(state, fold(WITH_SQUARES, [weighted]))
