"""Pairs of doubles against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.doubles import Pair, distil, two_product, two_sum

NUMBERS = st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60)
LISTS = st.lists(NUMBERS, min_size=1, max_size=9)
PAIRS = st.tuples(NUMBERS, st.floats(-1, 1)).map(lambda t: two_sum(np.array(t[0]), np.array(t[0] * t[1] * 2.0**-53)))
TINY = Fraction(1, 2**100)


def fraction(*parts: np.ndarray) -> Fraction:
    return sum((Fraction(float(part)) for part in parts), Fraction(0))


def of(pair: Pair) -> Fraction:
    return fraction(pair.hi, pair.lo)


@given(NUMBERS, NUMBERS)
def test_sums_and_products_come_with_their_rounding_errors(a: float, b: float) -> None:
    assert fraction(*two_sum(np.array(a), np.array(b))) == Fraction(a) + Fraction(b)
    assert fraction(*two_product(np.array(a), np.array(b))) == Fraction(a) * Fraction(b)


@given(PAIRS, PAIRS)
def test_arithmetic_on_pairs_is_right_to_thirty_digits(left, right) -> None:
    a, b = Pair(*left), Pair(*right)
    results = {a + b: of(a) + of(b), a - b: of(a) - of(b), a * b: of(a) * of(b), -a: -of(a)}
    if b.hi != 0:
        results[a / b] = of(a) / of(b)
    for found, exact in results.items():
        assert abs(of(found) - exact) <= TINY * abs(exact)
        assert float(found.value) == float(found.hi), "normalised: the first is the rounded value"


@given(LISTS, st.integers(1, 4))
def test_distilled_sums_are_rounded_sums(terms: list[float], count: int) -> None:
    # Each term with one that cancels most of it: the sum is far smaller than its terms.
    terms = [*terms, *(-t * (1 - 2.0**-40) for t in terms), *(t * 2.0**-80 for t in terms)]
    exact = sum(map(Fraction, terms))
    found = distil([np.array([t]) for t in terms], count)
    size = sum(abs(Fraction(t)) for t in terms)
    assert len(found) == count
    assert float(found[0][0]) == pytest.approx(float(exact), rel=2**-52, abs=float(size * Fraction(1, 2**150)))
    error = abs(sum(Fraction(float(f[0])) for f in found) - exact)
    assert error <= abs(exact) * Fraction(1, 2 ** (53 * count - 2)) + size * Fraction(1, 2 ** (53 * (count + 2) - 12))


@given(st.lists(NUMBERS, max_size=40), st.randoms())
def test_sums_hardly_depend_on_the_order(numbers: list[float], random) -> None:
    exact = sum(map(Fraction, numbers))
    shuffled = random.sample(numbers, len(numbers))
    for order in (numbers, shuffled):
        found = of(Pair.of(np.array(order, float)).sum())
        assert abs(found - exact) <= TINY * sum(abs(Fraction(x)) for x in numbers)


def test_sums_along_either_axis() -> None:
    values = np.random.default_rng(0).normal(size=(7, 5))
    pair = Pair.of(values) / np.array(3.0)
    for axis in (0, 1, -1):
        np.testing.assert_allclose(pair.sum(axis).value, (values / 3).sum(axis), rtol=1e-14)
    assert Pair.of(np.zeros((0, 3))).sum(0).value.tolist() == [0, 0, 0]


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_held_exactly(n: int) -> None:
    pair = Pair.of(np.array(n))
    assert of(pair) == n
    assert float(pair.value) == float(pair.hi) == float(n)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "uint64", "float32", "float64"])
def test_every_number_type_is_taken_as_it_is(dtype: str) -> None:
    top = np.array([0, 1, 255, 3], dtype) if np.dtype(dtype).kind == "f" else np.array([0, np.iinfo(dtype).max], dtype)
    pair = Pair.of(top)
    assert pair.hi.dtype == np.float64
    assert [of(Pair(h, low)) for h, low in zip(pair.hi, pair.lo, strict=True)] == [Fraction(x) for x in top.tolist()]


def test_quotients_of_whole_numbers_are_correctly_rounded() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-(2**62), 2**62, 3000), rng.integers(1, 2**40, 3000)
    # Among them quotients that lie just halfway between two doubles.
    a[:50], b[:50] = 2**54 + 2 + 4 * np.arange(50), 2
    found = (Pair.of(a) / Pair.of(b)).value
    assert found.tolist() == [float(Fraction(int(x), int(y))) for x, y in zip(a, b, strict=True)]


def test_arrays_and_pairs_mix_from_the_right() -> None:
    pair = Pair.of(np.array([1, 2]))
    assert (pair + np.array([1, 1])).value.tolist() == [2, 3]
    assert (pair * np.array(0.5)).value.tolist() == [0.5, 1.0]
    with pytest.raises(TypeError):
        _ = np.array([1.0]) + pair
