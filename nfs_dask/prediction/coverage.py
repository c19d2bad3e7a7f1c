"""How far posteriors can be trusted: accuracy of the most confident documents, and calibration.

Confidence is ordered by log odds and not by posteriors, which are 1.0 for all that is almost certain. Documents of
equal confidence share what they get right evenly, so nothing depends on the order of documents.

References: HYB (Raina et al. 2003) section 5, Figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import is_collection, unwrapped
from nfs_dask.errors import InputError
from nfs_dask.graphs import added, computed, reduced
from nfs_dask.sources.labels import merge_classes

OCTAVES = (-16, 24)  # log odds between 2**-16 and 2**24 are told apart by histograms
STEPS = 512  # bins of an octave: log odds in a bin differ by less than 0.2 %
N_BINS = (OCTAVES[1] - OCTAVES[0]) * STEPS + 2  # one more for all that is smaller, and for all that is larger
UNIT = 1 << 30  # posteriors are added up in whole numbers of 2**-30, the same for any order of documents
MOST = (1 << 63) // UNIT  # documents whose sum still fits 64 bits
SHOWN = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Curve:
    """Accuracy among the documents a classifier is most confident of, by their share of all documents."""

    n: int  # documents
    coverage: Array  # (points,) ascending shares of the documents, the last of them 1
    accuracy: Array  # (points,)

    def at_accuracy(self, accuracy: float) -> float:
        """The largest coverage that has at least this accuracy; 0 if none has."""
        enough = np.flatnonzero(self.accuracy >= accuracy - 1e-12)
        return float(self.coverage[enough[-1]]) if len(enough) else 0.0

    def at_coverage(self, coverage: float) -> float:
        """Accuracy of the most confident share of the documents."""
        if not 0 <= coverage <= 1:
            raise InputError(f"coverage {coverage} is not a share of the documents; give a number from 0 to 1")
        return float(self._at(np.array([coverage]))[0])

    def to_json(self, points: int = 100) -> dict[str, Any]:
        """Accuracy at evenly spaced coverages, and coverage at some accuracies, as JSON values."""
        shares = np.arange(1, points + 1) / points
        return {
            "n": self.n,
            "coverage": shares.tolist(),
            "accuracy": self._at(shares).tolist(),
            "at_accuracy": {str(accuracy): self.at_accuracy(accuracy) for accuracy in SHOWN},
        }

    def _at(self, shares: Array) -> Array:
        """Accuracy at some coverages: between points, what is right grows evenly."""
        shares = np.maximum(shares, self.coverage[0])
        accuracy: Array = np.interp(shares, self.coverage, self.coverage * self.accuracy) / shares
        return accuracy


def accuracy_coverage(scores: Any, y: Any, *, classes: Sequence[Any] | Array | None = None, at_zero: int = 1) -> Curve:
    """Accuracy of the j most confident documents, for every j.

    Parameters
    ----------
    scores : (n,) or (n, C) float
        (n,) log odds of the second class of two, or (n, C) scores whose softmax are posteriors: what
        `decision_function` or `predict_log_proba` return. -inf rules a class out.
    y : (n,) labels or class numbers
        (n,) the true classes: their labels, or their numbers from 0.
    classes : (C,) labels, optional
        The labels in the order of the scores, as in ``classes_``; None: the sorted labels in y.
    at_zero : {0, 1}, default=1
        Class that log odds of exactly 0 predict. 1 is the convention of the literature; models here predict class 0.

    Returns
    -------
    Curve
        With ``coverage``, ``accuracy``, `at_accuracy` and `at_coverage`. Where scores and labels are Dask collections,
        they stay where they are, and documents whose log odds differ by less than 0.2 % count as equally confident.

    Examples
    --------
    >>> from nfs_dask import accuracy_coverage
    >>> curve = accuracy_coverage([2.0, -1.0, 0.5, -0.25], [1, 0, 0, 0])
    >>> curve.accuracy.round(3).tolist(), curve.at_accuracy(0.9)
    ([1.0, 1.0, 0.667, 0.75], 0.5)
    """
    scores, y = unwrapped(scores, "scores"), unwrapped(y, "y")
    if is_collection(scores) and is_collection(y):
        counts: CoverageCounts = _counted(partial(_coverage_counts, at_zero=at_zero), scores, y, classes)
        return counts.curve()
    return _exact_curve(*_judged(computed(scores), computed(y), classes, at_zero))


def _judged(scores: Any, y: Any, classes: Any, at_zero: int) -> tuple[Array, Array]:
    scores = np.asarray(scores, np.float64)
    return judge(scores, class_numbers(y, _n_classes(scores), classes), at_zero)


def _coverage_counts(scores: Any, y: Any, classes: Any, at_zero: int) -> CoverageCounts:
    return CoverageCounts.of(*_judged(scores, y, classes, at_zero))


def _counted(function: Any, scores: Any, y: Any, classes: Any) -> Any:
    """What a function counts in the partitions of scores and labels of Dask, added up."""
    if classes is None:
        classes = _classes_of(reduced("labels", _distinct, merge_classes, [y]), _n_classes(scores))
    return reduced("coverage", partial(function, classes=classes), added, [scores, y])


def _distinct(y: Any) -> Array:
    return np.unique(np.asarray(y))


def judge(scores: Array, codes: Array, at_zero: int = 1) -> tuple[Array, Array]:
    """Log odds of the predicted class of each document, and whether it is the right one; arguments as above."""
    if len(scores) != len(codes):
        raise InputError(f"{len(scores)} scores but {len(codes)} true classes; give one of each for every document")
    if np.isnan(scores).any():
        raise InputError(f"the scores of document {int(np.argmax(np.isnan(scores)) // _width(scores))} are NaN")
    if scores.ndim == 1:
        predicted = np.where(scores == 0, at_zero, scores > 0)
        return np.abs(scores), predicted == codes
    predicted = np.argmax(scores, axis=1)
    rows = np.arange(len(scores))
    best = scores[rows, predicted]
    if not np.isfinite(best).all():
        bad = int(np.argmin(np.isfinite(best)))
        raise InputError(f"document {bad} has a largest score of {best[bad]}; at least one score of each is finite")
    above = scores - best[:, None]
    above[rows, predicted] = -np.inf
    nearest = above.max(axis=1)
    ruled_out = np.isneginf(nearest)  # all others are: the class is certain
    nearest[ruled_out] = 0.0
    with np.errstate(divide="ignore"):
        odds = -nearest - np.log(np.exp(above - nearest[:, None]).sum(axis=1))
    return odds, predicted == codes


def class_numbers(y: Any, n_classes: int, classes: Sequence[Any] | Array | None = None) -> Array:
    """The number of each label among the classes, (n,) int64; -1 for labels that are no class."""
    y = np.asarray(y)
    labels = _classes_of(_distinct(y), n_classes) if classes is None else np.asarray(classes)
    if len(labels) != n_classes:
        raise InputError(f"{len(labels)} classes, but scores of {n_classes}; give one label for each")
    if (labels.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        raise InputError(
            f"the true classes are of type {y.dtype}, the classes of the scores of type {labels.dtype}; no label would "
            "agree with a class, however alike they look"
        )
    order = np.argsort(labels)
    at = np.minimum(np.searchsorted(labels, y, sorter=order), n_classes - 1)
    numbers: Array = np.where(labels[order[at]] == y, order[at], -1)
    return numbers


def _classes_of(labels: Array, n_classes: int) -> Array:
    """The classes that scores are of, by the labels there are, or by their numbers."""
    if len(labels) == n_classes:
        return labels
    if labels.dtype.kind in "biu" and len(labels) and labels[0] >= 0 and labels[-1] < n_classes:
        return np.arange(n_classes)
    raise InputError(
        f"y has {len(labels)} labels, the scores are of {n_classes} classes; say which with classes=model.classes_"
    )


@dataclass(frozen=True)
class CoverageCounts:
    """A curve in the making, of bounded size: documents by their log odds, which differ by less than 0.2 % in a bin.

    Points of its curve lie at the ends of bins, and are exact; documents within a bin are held to be equally confident.
    """

    documents: Array  # (N_BINS,) int64
    right: Array  # (N_BINS,) int64

    @classmethod
    def of(cls, confidence: Array, right: Array) -> CoverageCounts:
        """Of some documents, as `judge` returns them."""
        bins = _bins(confidence)
        return cls(np.bincount(bins, minlength=N_BINS), np.bincount(bins[np.asarray(right, bool)], minlength=N_BINS))

    def __add__(self, other: CoverageCounts) -> CoverageCounts:
        return CoverageCounts(self.documents + other.documents, self.right + other.right)

    def curve(self) -> Curve:
        documents, right = np.cumsum(self.documents[::-1]), np.cumsum(self.right[::-1])
        ends = np.flatnonzero(self.documents[::-1])
        return _through(documents[ends], right[ends])


@dataclass(frozen=True)
class Ranks:
    """Documents of two classes by their log odds, in the bins of `CoverageCounts`, for the area under the ROC curve."""

    documents: Array  # (2, 2 N_BINS) int64, by class and bin of ascending log odds

    @classmethod
    def of(cls, odds: Array, codes: Array) -> Ranks:
        """Of some documents: log odds (n,) of the second class, and the classes (n,), 0 and 1."""
        bins = np.where(odds < 0, N_BINS - 1 - _bins(-odds), N_BINS + _bins(odds))
        return cls(np.stack([np.bincount(bins[codes == code], minlength=2 * N_BINS) for code in (0, 1)]))

    def __add__(self, other: Ranks) -> Ranks:
        return Ranks(self.documents + other.documents)

    @property
    def area(self) -> float | None:
        """The area under the ROC curve, ties counting half; None where a class has no documents."""
        first, second = self.documents.astype(np.float64)
        pairs = first.sum() * second.sum()
        return float(second @ (np.cumsum(first) - first / 2) / pairs) if pairs else None


@dataclass(frozen=True)
class Reliability:
    """Documents by the posterior of the class they are predicted to be of, in bins of equal width."""

    documents: Array  # (bins,) int64
    right: Array  # (bins,) int64, those predicted rightly
    confidence: Array  # (bins,) int64, sum of the posteriors in units of 2**-30

    @classmethod
    def of(cls, posteriors: Any, y: Any, *, classes: Sequence[Any] | Array | None = None, bins: int = 10) -> Self:
        """Of some documents.

        Parameters
        ----------
        posteriors
            (n,) of the second class of two, or (n, C).
        y, classes
            As in `accuracy_coverage`.
        bins
            How many; those of two classes are empty below 1/2.
        """
        if bins < 1:
            raise InputError(f"{bins} bins; give at least one, such as 10")
        posteriors, y = unwrapped(posteriors, "posteriors"), unwrapped(y, "y")
        if is_collection(posteriors) and is_collection(y):
            counted: Self = _counted(partial(cls.of, bins=bins), posteriors, y, classes)
            return counted
        posteriors, y = np.asarray(computed(posteriors), np.float64), computed(y)
        codes = class_numbers(y, _n_classes(posteriors), classes)
        if posteriors.ndim == 1:
            posteriors = np.stack([1 - posteriors, posteriors], axis=1)
        if len(posteriors) != len(codes):
            raise InputError(f"{len(posteriors)} posteriors but {len(codes)} true classes; give one for every document")
        predicted = np.argmax(posteriors, axis=1)
        chance = posteriors[np.arange(len(codes)), predicted]
        if not np.all((chance >= 0) & (chance <= 1 + 1e-9)):
            bad = int(np.argmin((chance >= 0) & (chance <= 1 + 1e-9)))
            raise InputError(f"document {bad} has a posterior of {chance[bad]}; posteriors lie between 0 and 1")
        chosen = np.minimum((chance * bins).astype(np.int64), bins - 1)
        confidence = np.zeros(bins, np.int64)
        np.add.at(confidence, chosen, np.rint(chance * UNIT).astype(np.int64))
        right = np.bincount(chosen[predicted == codes], minlength=bins)
        return cls(np.bincount(chosen, minlength=bins), right, confidence)

    def __add__(self, other: Reliability) -> Reliability:
        if len(self.documents) != len(other.documents):
            raise InputError(f"{len(self.documents)} bins do not add to {len(other.documents)}; use the same number")
        documents = self.documents + other.documents
        if int(documents.sum()) >= MOST:
            raise InputError(f"{int(documents.sum())} documents; sums of posteriors are exact for fewer than {MOST}")
        return Reliability(documents, self.right + other.right, self.confidence + other.confidence)

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the mean distance of accuracy and posterior in a bin, over documents."""
        off = int(np.abs(self.right * UNIT - self.confidence).sum())
        return off / (_some(int(self.documents.sum())) * UNIT)

    def table(self) -> list[dict[str, Any]]:
        """The bins that have documents, as JSON values: their range, mean posterior and accuracy."""
        bins = len(self.documents)
        return [
            {
                "from": b / bins,
                "to": (b + 1) / bins,
                "n": int(self.documents[b]),
                "posterior": float(self.confidence[b] / UNIT / self.documents[b]),
                "accuracy": float(self.right[b] / self.documents[b]),
            }
            for b in np.flatnonzero(self.documents).tolist()
        ]

    def to_json(self) -> dict[str, Any]:
        return {"expected_calibration_error": self.expected_error, "reliability": self.table()}


def _exact_curve(confidence: Array, right: Array) -> Curve:
    """A point for each document."""
    order = np.argsort(-confidence, kind="stable")
    ordered = confidence[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(order) - 1) + 1
    hits = np.cumsum(right[order])
    _some(len(order))
    whole = _through(ends, hits[ends - 1])
    j = np.arange(1, len(order) + 1)
    starts, before = np.append(0, ends[:-1]), np.append(0, hits[ends - 1][:-1])
    group = np.repeat(np.arange(len(ends)), ends - starts)
    size, won = (ends - starts)[group], (hits[ends - 1] - before)[group]
    # All of this is whole until the division.
    accuracy = (before[group] * size + (j - starts[group]) * won) / (j * size)
    return Curve(whole.n, j / len(order), accuracy)


def _through(documents: Array, right: Array) -> Curve:
    """The curve through some points, given as how many documents are that confident, and how many of them right."""
    n = _some(int(documents[-1]) if len(documents) else 0)
    return Curve(n, documents / n, right / documents)


def _bins(confidence: Array) -> Array:
    """Bins of log odds, evenly spaced in each octave above zero; the first one is for what is not above."""
    octave = np.float64(2.0 ** OCTAVES[0])
    shift = np.int64(52 - STEPS.bit_length() + 1)  # positive floats ascend as their bits do
    first = (octave.view(np.int64) >> shift) - 1
    return np.clip((np.asarray(confidence, np.float64).view(np.int64) >> shift) - first, 0, N_BINS - 1)


def _some(n: int) -> int:
    if n == 0:
        raise InputError("there are no documents to judge by; give at least one")
    return n


def _width(scores: Array) -> int:
    return 1 if scores.ndim == 1 else scores.shape[1]


def _n_classes(scores: Array) -> int:
    if scores.ndim not in (1, 2) or (scores.ndim == 2 and scores.shape[1] < 2):
        raise InputError(
            f"scores of shape {scores.shape}; give (n,) of the second class of two, or (n, C) of two classes or more"
        )
    return 2 if scores.ndim == 1 else scores.shape[1]
