"""The log likelihood of a logistic model of a few features, and its derivatives, summed over documents.

    P(c|x) proportional to exp(offset_c + theta_0c + sum_r theta_r b_rc),  theta_00 = 0

Slopes theta_r are shared by the classes. Parameters come as one vector: the intercepts theta_01 .. theta_0,C-1, then
the slopes theta_1 .. theta_R. Two classes have one feature for each region, ``b_r = b_r1 - b_r0``, and one intercept.

Sums of blocks add up to those of all documents, so documents may lie anywhere. All terms are written by what the other
classes have above the document's own: so they stay exact where probabilities are all but 1.

References: HYB (Raina et al. 2003) (9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import InputError


@dataclass(frozen=True)
class Derivatives:
    """Sums over documents at one theta, and what they say of the direction that led there.

    A document's *margin* in a direction is what a step adds to the score of its own class over that to another one; its
    *spread*, what a step adds to the highest raised class over that to the lowest. Offsets have no part in them.
    """

    log_likelihood: float
    gradient: Array  # (P,)
    hessian: Array  # (P, P), of the log likelihood: negative semidefinite
    margin: float = np.inf  # least margin of any document in the direction theta
    step_margin: float = np.inf  # and in the direction of the step
    step_spread: float = 0.0  # greatest spread in the direction of the step

    @classmethod
    def zero(cls, n_parameters: int) -> Derivatives:
        """Of no documents."""
        return cls(0.0, np.zeros(n_parameters), np.zeros((n_parameters, n_parameters)))

    def __add__(self, other: Derivatives) -> Derivatives:
        return Derivatives(
            self.log_likelihood + other.log_likelihood,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            min(self.margin, other.margin),
            min(self.step_margin, other.step_margin),
            max(self.step_spread, other.step_spread),
        )


def derivatives(
    features: Array,
    codes: Array,
    theta: Array,
    step: Array | None = None,
    *,
    weights: Array | None = None,
    offsets: Array | None = None,
) -> Derivatives:
    """The derivatives of the documents of a block.

    Parameters
    ----------
    features
        (n, R) float64 for two classes, (n, R, C) for more.
    codes
        (n,) the class of each document.
    theta
        (C - 1 + R,) the parameters.
    step
        (C - 1 + R,) the direction that led to theta; None: none did.
    weights
        (n,) how often each document counts. Those of weight 0 count for nothing, margins and spreads included.
    offsets
        (n,) for two classes, (n, C) for more: known parts of the scores, such as a prior that is not fitted.
    """
    n, n_classes = len(features), n_classes_of(features)
    theta = np.ascontiguousarray(theta, np.float64)
    if len(theta) != n_classes - 1 + features.shape[1]:
        raise InputError(
            f"{len(theta)} parameters for {n_classes} classes and {features.shape[1]} features; there are "
            f"{n_classes - 1 + features.shape[1]}"
        )
    step = np.zeros_like(theta) if step is None else np.ascontiguousarray(step, np.float64)
    weights = np.ones(n) if weights is None else weights.astype(np.float64)
    shape = (n,) if features.ndim == 2 else (n, n_classes)
    offsets = np.zeros(shape) if offsets is None else np.ascontiguousarray(offsets, np.float64)
    gradient, hessian = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
    extremes = np.array([0.0, np.inf, np.inf, 0.0])
    add = _add_two if features.ndim == 2 else _add_many
    add(np.ascontiguousarray(features), codes, weights, offsets, theta, step, gradient, hessian, extremes)
    return Derivatives(float(extremes[0]), gradient, hessian, *extremes[1:].tolist())


def n_classes_of(features: Array) -> int:
    return 2 if features.ndim == 2 else int(features.shape[2])


def class_scores(features: Array, theta: Array, offsets: Array | None = None) -> Array:
    """(n, C) scores whose softmax are the posteriors; the first class of two has 0."""
    n, n_classes = len(features), n_classes_of(features)
    intercepts, slopes = theta[: n_classes - 1], theta[n_classes - 1 :]
    scores = np.zeros((n, n_classes))
    scores[:, 1:] = intercepts
    if features.ndim == 2:
        scores[:, 1] += features @ slopes + (0.0 if offsets is None else offsets)
        return scores
    scores += np.einsum("irc,r->ic", features, slopes)
    return scores if offsets is None else scores + offsets


def prior_offsets(class_weight: Array, codes: Array, removed: Array) -> Array:
    """Log priors as the training documents see them, each without itself: (n,) for two classes, (n, C) for more.

    Parameters
    ----------
    class_weight
        (C,) weight of the documents of each class.
    codes, removed
        (n,) class of each document, and how much of it its class is to be without: at most 1; 0 leaves none out.
    """
    left = np.tile(class_weight.astype(np.float64), (len(codes), 1))
    rows = np.flatnonzero(removed > 0)
    left[rows, codes[rows]] -= removed[rows]
    if np.any(left <= 0):
        lone = int(np.argmax((left <= 0).any(axis=0)))
        raise InputError(
            f"class {lone} has no documents, or a single one, without which its prior is 0; give it another "
            "document, or have the intercept fitted"
        )
    logs = np.log(left)
    return logs[:, 1] - logs[:, 0] if len(class_weight) == 2 else logs


@kernel
def _add_two(features, codes, weights, offsets, theta, step, gradient, hessian, extremes):
    """Two classes: the margin m of a document has log likelihood -log(1 + exp(-m))."""
    n, n_regions = features.shape
    for i in range(n):
        w = weights[i]
        if w == 0:
            continue
        score, change = theta[0], step[0]
        for r in range(n_regions):
            score += theta[1 + r] * features[i, r]
            change += step[1 + r] * features[i, r]
        sign = 1.0 if codes[i] == 1 else -1.0
        extremes[1] = min(extremes[1], sign * score)
        extremes[2] = min(extremes[2], sign * change)
        extremes[3] = max(extremes[3], abs(change))
        margin = sign * (score + offsets[i])
        small = np.exp(-abs(margin))
        other = small / (1.0 + small) if margin >= 0 else 1.0 / (1.0 + small)  # probability of the other class
        extremes[0] -= w * (np.log1p(small) - min(margin, 0.0))
        slope = w * sign * other
        curvature = w * small / ((1.0 + small) * (1.0 + small))
        for r in range(n_regions + 1):
            x = 1.0 if r == 0 else features[i, r - 1]
            gradient[r] += slope * x
            for q in range(n_regions + 1):
                hessian[r, q] -= curvature * x * (1.0 if q == 0 else features[i, q - 1])


@kernel
def _add_many(features, codes, weights, offsets, theta, step, gradient, hessian, extremes):
    """More classes: mean and covariance of what they have above the document's own, under their probabilities."""
    n, n_regions, n_classes = features.shape
    first = n_classes - 1  # parameter of the first slope
    p, rest, excess = np.empty(n_classes), np.empty(n_classes), np.empty((n_classes, n_regions))
    mean = np.empty(n_regions)
    for i in range(n):
        w, y = weights[i], np.int64(codes[i])
        if w == 0:
            continue
        low, high, top = 0.0, 0.0, 0.0
        for c in range(n_classes):
            score = (theta[c - 1] if c > 0 else 0.0) - (theta[y - 1] if y > 0 else 0.0)
            change = (step[c - 1] if c > 0 else 0.0) - (step[y - 1] if y > 0 else 0.0)
            for r in range(n_regions):
                excess[c, r] = features[i, r, c] - features[i, r, y]
                score += theta[first + r] * excess[c, r]
                change += step[first + r] * excess[c, r]
            low, high = min(low, change), max(high, change)
            if c != y:
                extremes[1] = min(extremes[1], -score)
                extremes[2] = min(extremes[2], -change)
            p[c] = score + offsets[i, c] - offsets[i, y]
            top = max(top, p[c])
        extremes[3] = max(extremes[3], high - low)
        # Shares of the others, relative to the largest of all; the own one is exp(-top).
        others = 0.0
        for c in range(n_classes):
            p[c] = np.exp(p[c] - top)
            if c != y:
                others += p[c]
        whole = p[y] + others
        extremes[0] -= w * (np.log1p(others) if top == 0 else top + np.log(whole))
        for c in range(n_classes):
            p[c] /= whole
            rest[c] = 1.0 - p[c]
        rest[y] = others / whole
        for r in range(n_regions):
            mean[r] = 0.0
            for c in range(n_classes):
                mean[r] += p[c] * excess[c, r]
            gradient[first + r] -= w * mean[r]
        for c in range(1, n_classes):
            gradient[c - 1] += w * rest[c] if c == y else -w * p[c]
            for d in range(1, n_classes):
                hessian[c - 1, d - 1] -= w * p[c] * (rest[c] if d == c else -p[d])
            for r in range(n_regions):
                mixed = w * p[c] * (excess[c, r] - mean[r])
                hessian[c - 1, first + r] -= mixed
                hessian[first + r, c - 1] -= mixed
        for r in range(n_regions):
            for q in range(n_regions):
                covariance = 0.0
                for c in range(n_classes):
                    covariance += p[c] * (excess[c, r] - mean[r]) * (excess[c, q] - mean[q])
                hessian[first + r, first + q] -= w * covariance
