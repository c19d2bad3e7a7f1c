"""First and second moments by class: sums of values and of their squares, from which means and variances come exactly.

Nothing is shifted and nothing is read twice. Instead sums lose no digits: whole numbers add up in int64, others as two
doubles (sums) or three (squares), so that the large parts which cancel in a variance cancel exactly. Sums that are not
shifted merge by addition, leave the zeros of sparse data out, and come to the same double for any partition.

References: SC (Calafiore and Fracastoro 2019) (2), Remark 3; docs/mathematics.md 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.doubles import Pair, distil, two_product
from nfs_dask.arrays.kernels import add_rows, add_values
from nfs_dask.errors import InputError
from nfs_dask.statistics import real_kernels as kernels
from nfs_dask.statistics.incremental import Remainders, not_among_them
from nfs_dask.statistics.statistic import EntrywiseStatistic, State, Statistic, added, array_of

SUMS = ("sums", "real_sums", "real_sums_low")
SQUARES = ("squares", "real_squares", "real_squares_low", "real_squares_least")
POWER = ("power", "power_low", "power_least")  # of all features together, for each class

_MOST = 2**62  # sums of integers stay below this, so that int64 never wraps
_MOST_POWER = 2.0**960  # sums of squares stay below this, so that their products keep their digits
_CHUNK = 1 << 14  # sums that are finished at a time: their pairs stay in cache


@dataclass(frozen=True)
class ClassMoments(EntrywiseStatistic):
    """Sums of the values of each feature over each class, and with ``squares`` those of their squares.

    Whole numbers, under whole-number weights, add up in int64; a block that holds other numbers adds to arrays of
    doubles beside, as do squares of 2^32 and more. `moments` puts them together.
    """

    n_classes: int
    squares: bool = False

    name: ClassVar[str] = "class_moments"
    accepts: ClassVar[Kind] = "signed"

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "power": len(POWER)}  # doubles: what was kept with fewer is counted anew

    def supersets(self) -> tuple[Statistic, ...]:
        return () if self.squares else (ClassMoments(self.n_classes, True),)

    def small(self) -> ClassMoments:
        return ClassMoments(2, self.squares)

    def zero(self) -> State:
        rows = np.zeros(self.n_classes, np.int64)
        real = {name: rows.astype(np.float64) for name in ("weight", "weight_low", *POWER)}
        return State({}, {"rows": rows, **real, "mass": np.zeros(1, np.int64)})

    def update_totals(self, totals: dict[str, Array], block: Block) -> None:
        totals["rows"] += np.bincount(block.codes.astype(np.intp), minlength=self.n_classes)
        kernels.add_row_weights(block.entries.codes, block.weights, totals["weight"], totals["weight_low"])
        if _is_whole(block):
            self._add_whole_powers(totals, block)
        else:
            common = (*_by_class(block), block.weights)
            kernels.real_powers(*common, *(totals[name] for name in POWER))
        _guard(totals)

    def _add_whole_powers(self, totals: dict[str, Array], block: Block) -> None:
        """Add up squares, and bound what any sum of integers can be."""
        squares, sizes, large = np.zeros((3, self.n_classes), np.int64)
        if block.weights is None and block.data.dtype.itemsize <= 2:
            kernels.narrow_powers(*_by_class(block), squares, sizes)
        else:
            common = (*_by_class(block), block.weights, squares, sizes, large)
            _refuse_overflow(kernels.whole_powers(*common, *(totals[name] for name in POWER)))
        more = Pair.of(squares)
        for name, term in zip(POWER, distil([*(totals[name] for name in POWER), more.hi, more.lo], 3), strict=True):
            totals[name][:] = term
        totals["mass"] += (squares + large if self.squares else sizes).sum()

    def update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        whole = _is_whole(block)
        entries = block.entries
        if block.full and (not whole or (block.weights is None and block.data.dtype.itemsize <= 2)):
            self._add_full_rows(arrays, block, whole)
            return
        if not whole:
            kernels.add_real_sums(*entries, block.weights, *self._of(arrays, SUMS[1:], block))
        else:
            add_values(*entries, block.weights, *self._of(arrays, SUMS[:1], block))
        if not self.squares:
            return
        if whole and not kernels.add_whole_squares(*entries, block.weights, *self._of(arrays, SQUARES[:1], block)):
            return
        kernels.add_real_squares(*entries, block.weights, whole, *self._of(arrays, SQUARES[1:], block))

    def _add_full_rows(self, arrays: dict[str, Array], block: Block, whole: bool) -> None:
        """Add real numbers, or whole ones whose squares are small, of all columns."""
        rows = (block.matrix, block.entries.codes, block.weights)
        if whole:
            for squared, names in enumerate((SUMS, SQUARES)[: 1 + self.squares]):
                add_rows(*rows, bool(squared), *self._of(arrays, names[:1], block))
            return
        kernels.add_real_rows(*rows, *self._of(arrays, SUMS[1:], block))
        if self.squares:
            kernels.add_real_row_squares(*rows, *self._of(arrays, SQUARES[1:], block))

    def _of(self, arrays: dict[str, Array], names: Sequence[str], block: Block) -> list[Array]:
        dtype = "float64" if names[0].startswith("real") else "int64"
        return [array_of(arrays, name, self.n_classes, block.n_features, dtype) for name in names]

    def merge(self, left: State, right: State) -> State:
        arrays = _merged(left.arrays, right.arrays)
        totals = added(_whole_only(left.totals), _whole_only(right.totals))
        weight = _weight(left.totals) + _weight(right.totals)
        totals["weight"], totals["weight_low"] = weight.hi, weight.lo
        power = distil([side.totals[name] for side in (left, right) for name in POWER], 3)
        totals.update(zip(POWER, power, strict=True))
        _guard(totals)
        return State(arrays, totals)

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        # A source of unknown or real kind may need the integers and the doubles beside them, and large squares do.
        sums = 1 if kind in ("binary", "count") and not weighted else len(SUMS)
        squares = 1 if kind == "binary" and not weighted else len(SQUARES)
        return (sums + squares * self.squares) * self.n_classes * n_features * 8


@dataclass(frozen=True)
class Moments:
    """Means and variances of some columns; classes without documents have means of 0."""

    weight: Array  # (C,) sum of the weights of the rows of each class
    means: Array  # (C, m) float64, correctly rounded
    spread: Array | None  # (m,) sum of the variances within each class
    within: Array | None  # (m,) variance about the class means
    total: Array | None  # (m,) variance about the mean of all rows
    lost: Array | None = None  # (m,) what rounding may have hidden of the spread of a class that seems to have none


def moments(state: State) -> Moments:
    """Means, and where the state has squares also variances, of a state or of one panel of it.

    >>> values, codes = np.array([1, 3, 5, 5], np.int8), np.array([0, 0, 1, 1])
    >>> statistic = ClassMoments(2, squares=True)
    >>> state = statistic.zero()
    >>> statistic.update(state, Block(np.arange(5), np.zeros(4, np.int32), values, codes, n_features=1))
    >>> found = moments(state)
    >>> found.means.ravel().tolist(), found.spread.tolist(), found.within.tolist(), found.total.tolist()
    ([2.0, 5.0], [1.0], [0.5], [2.75])
    """
    if not state.arrays:
        raise InputError("no documents have been counted, so that there are no moments; give at least one")
    weight = _weight(state.totals)
    divisor = Pair(np.where(weight.hi > 0, weight.hi, 1.0)[:, None], weight.lo[:, None])
    means = np.empty(_shape(state.arrays))
    has_squares = any(name in state.arrays for name in SQUARES)
    variances, lost = np.zeros((3, means.shape[1])), np.zeros(means.shape[1])
    noise = _noise(state.totals)
    fits = _fits_integers(state)
    if fits and has_squares:
        kernels.whole_variances(state.arrays["sums"], state.arrays["squares"], weight.hi.astype(np.int64), variances)
    if fits:
        np.divide(state.arrays["sums"], divisor.hi, out=means)  # of doubles that are exact, so rounded once
    for columns in () if fits else _chunks(means.shape):
        sums = Pair.sum_of(_terms(state.arrays, SUMS, columns))
        exact_means = sums / divisor
        means[:, columns] = exact_means.value
        if has_squares:
            squares = _terms(state.arrays, SQUARES, columns)
            deviations, hidden = _squared_deviations(squares, sums, means[:, columns], divisor, noise)
            lost[columns] = (hidden / divisor.hi).sum(axis=0)
            variances[:, columns] = _variances(deviations, sums, exact_means, weight, divisor)
    return Moments(weight.value, means, *(*variances, lost) if has_squares else [None] * 4)


def _fits_integers(state: State) -> bool:
    """Return True if all are whole numbers, doubles hold their sums, and 64 bits hold n times a sum of squares.

    It does not depend on the columns that are looked at, so that every cut of them has the same variances.
    """
    weight, names = _weight(state.totals), [name for name in (*SUMS, *SQUARES) if name in state.arrays]
    whole = not weight.lo.any() and bool(np.all(weight.hi == np.rint(weight.hi)))
    mass = float(state.totals["mass"][0])  # of squares, where there are any, else of absolute values
    return whole and set(names) <= {"sums", "squares"} and mass < 2**53 and weight.hi.sum() * mass < _MOST


def _squared_deviations(
    squares: list[Array], sums: Pair, means: Array, weight: Pair, noise: Array
) -> tuple[Array, Array]:
    """Sum of w (x - mean)^2, from terms that cancel: every product that is as large as they are is kept whole.

    Sums that may be nothing but rounding are 0; the second array says how large what they were may be.
    """
    off = sums + Pair(*two_product(-weight.hi, means))  # sum of w (x - mean), for the mean as it was rounded
    square, rest = two_product(means, means)
    terms = [*squares, *two_product(-weight.hi, square), *two_product(-weight.hi, rest)]
    if weight.lo.any():
        off += -weight.lo * means
        terms += [*two_product(-weight.lo, square), -weight.lo * rest]
    terms += [*two_product(-2 * means, off.hi), -2 * means * off.lo, -off.hi * off.hi / weight.hi]
    (found,) = distil(terms, 1)
    rounding = noise * np.sum(squares, axis=0)
    return np.where(found > rounding, found, 0.0), np.where(found > rounding, 0.0, rounding)


def _noise(totals: Mapping[str, Array]) -> Array:
    """The share of the sum of squares below which a sum of squared deviations is what rounding left, (C, 1).

    With it, the variance of a constant feature is zero. Sums of products with real weights are not exact to the last
    bit; all others are, but for features whose values differ by far more than this.
    """
    weight = _weight(totals)
    whole = (weight.lo == 0) & (weight.hi == np.rint(weight.hi))
    return np.where(whole, 2.0**-130, totals["rows"] * 2.0**-100)[:, None]


def _variances(deviations: Array, sums: Pair, means: Pair, weight: Pair, divisor: Pair) -> Array:
    """The three variances of `Moments`, (3, columns)."""
    rows = weight.sum()
    rows = rows if rows.value > 0 else Pair.of(np.ones(()))
    away = (means - sums.sum(axis=0) / rows).value
    between = weight.hi[:, None] * away * away
    within, spread, all_between = (Pair.of(a).sum(axis=0) for a in (deviations, deviations / divisor.hi, between))
    return np.array([spread.value, within.value / rows.value, (within + all_between).value / rows.value])


def take_away(state: State, part: State) -> State:
    """The moments without some of the documents in them; neither argument is changed.

    Whole numbers give exactly what the other documents alone would have given; others may differ from that in the last
    digits of a pair.
    """
    totals = _totals_without(state.totals, part.totals)
    rows = totals["rows"]
    like = {**part.arrays, **state.arrays}
    arrays = {n: np.zeros(a.shape, "float64" if n.startswith("real") else "int64") for n, a in like.items()}
    for names in (SUMS, SQUARES):
        if not arrays.keys() & set(names):
            continue
        left = Remainders(rows, len(names) - 1)
        for columns in _chunks(_shape(arrays)):
            rest = _without(state.arrays, part.arrays, names, columns, left)
            total = Pair.sum_of(_terms(rest, names, slice(None))).value
            exact = names[1] not in rest
            if (exact and total[rows == 0].any()) or (names is SQUARES and (total < 0).any()):
                raise not_among_them()
            for name, values in rest.items():
                arrays[name][:, columns] = np.where(rows[:, None] == 0, 0, values)
        left.check()
    # The mass bounds every whole number of the state, whichever documents shared a block.
    largest = max((int(np.abs(a).max(initial=0)) for a in arrays.values() if a.dtype.kind == "i"), default=0)
    totals["mass"] = np.maximum(state.totals["mass"] - part.totals["mass"], largest)
    return State(arrays, totals)


def _totals_without(totals: Mapping[str, Array], part: Mapping[str, Array]) -> dict[str, Array]:
    """The difference of all totals but the mass, refused where the part cannot have been in the whole."""
    rest = {"rows": totals["rows"] - part["rows"]}
    for names in (("weight", "weight_low"), POWER):
        high = names[0]
        left = Remainders(rest["rows"], len(names))
        rest.update(zip(names, _real_rest([totals[n] for n in names], [part[n] for n in names], left), strict=True))
        if (rest["rows"] < 0).any() or (rest[high] < 0).any() or rest[high][rest["rows"] == 0].any():
            raise not_among_them()
        left.check()
    return rest


def _without(
    arrays: Mapping[str, Array], part: Mapping[str, Array], names: Sequence[str], columns: slice, left: Remainders
) -> dict[str, Array]:
    """The difference of the named arrays, at some columns."""

    def at(side: Mapping[str, Array], name: str) -> Array:
        return side[name][:, columns] if name in side else np.zeros(())

    whole, *real = names
    rest: dict[str, Array] = {}
    if whole in arrays or whole in part:
        rest[whole] = at(arrays, whole).astype(np.int64) - at(part, whole).astype(np.int64)
    if real[0] in arrays or real[0] in part:
        found = _real_rest([at(arrays, n) for n in real], [at(part, n) for n in real], left)
        rest.update(zip(real, found, strict=True))
    return rest


def _real_rest(terms: list[Array], part: list[Array], left: Remainders) -> list[Array]:
    """The difference of expansions; what rounding leaves when all of something is taken away is nothing."""
    rest = distil([*terms, *(-term for term in part)], len(terms))
    nothing = left.is_nothing(np.broadcast_to(terms[0], rest[0].shape), rest[0])
    return [np.where(nothing, 0.0, term) for term in rest]


def _weight(totals: Mapping[str, Array]) -> Pair:
    return Pair(totals["weight"], totals["weight_low"])


def _shape(arrays: Mapping[str, Array]) -> tuple[int, ...]:
    return next((array.shape for array in arrays.values()), (1, 0))


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Ranges of columns of (C, m) arrays."""
    n_classes, width = shape
    step = max(1, _CHUNK // n_classes)
    return (slice(first, min(first + step, width)) for first in range(0, width, step))


def _terms(arrays: Mapping[str, Array], names: Sequence[str], columns: slice) -> list[Array]:
    """The doubles that make up a sum, at some columns."""
    terms = []
    for array in (arrays[name][:, columns] for name in names if name in arrays):
        if array.dtype.kind == "f":
            terms.append(array)
        else:
            pair = Pair.of(array)
            terms += [pair.hi, pair.lo] if array.dtype.itemsize == 8 else [pair.hi]
    return terms


def _merged(left: Mapping[str, Array], right: Mapping[str, Array]) -> dict[str, Array]:
    """Sums of arrays by name, in memory of their own."""
    out = added(_whole_only(left), _whole_only(right))
    for names, merge in ((SUMS[1:], kernels.merge_pairs), (SQUARES[1:], kernels.merge_triples)):
        for side in (left, right):
            if names[0] not in side:
                continue
            if names[0] in out:
                merge(*(out[name] for name in names), *(np.ascontiguousarray(side[name]) for name in names))
            else:
                out.update({name: side[name].copy() for name in names})
    return out


def _whole_only(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of integers, as int64: files hold them in narrower types."""
    return {name: array.astype(np.int64, copy=False) for name, array in arrays.items() if array.dtype.kind != "f"}


def _by_class(block: Block) -> tuple[Array, Array, Array]:
    """The entries of a block, without their columns."""
    indptr, _, data, codes = block.entries
    return indptr, data, codes


def _is_whole(block: Block) -> bool:
    return block.data.dtype.kind != "f" and (block.weights is None or block.weights.dtype.kind != "f")


def _guard(totals: Mapping[str, Array]) -> None:
    _refuse_overflow(float(totals["mass"][0]))
    if not np.isfinite(totals["weight"]).all():
        raise InputError("sample weights add up to more than a float holds; scale them down")
    if not (totals["power"] < _MOST_POWER).all():
        raise InputError("the squares of the values add up to 1e289 or more; scale the values or the weights down")


def _refuse_overflow(mass: float) -> None:
    if mass >= _MOST:
        raise InputError(
            "sums of whole numbers come to 2^62 or more, beyond exact integers; scale the values or the weights down"
        )
