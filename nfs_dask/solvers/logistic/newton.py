"""The convex fit of a logistic model of a few parameters, from sums over documents that may lie anywhere.

    maximise  sum_i w_i log P(y_i|x_i) - ridge / 2 * sum_{r >= 1} theta_r^2

Newton's method in coordinates where the curvature at theta = 0 is the identity, so that it depends neither on the units
of the features nor on their correlations. Where features depend on each other, the solution is the shortest one in
these coordinates.

Without a ridge there may be no maximum. Documents are (quasi-)separable if they have no negative margin in some
direction d, and a positive one: the likelihood then rises for ever along d, while its gradient vanishes as at a
maximum. What tells the two apart are the extremes that every evaluation brings along:

* A direction in which the least margin of any document is positive proves them separable.
* A Newton step D that changes no spread by 1 proves that they are not, wherever it starts. For let d separate them, m_c
  be the margins of d, z_c.D the scores that D adds, and E and Cov be over the classes as a document has them. In
  H D = g, d.g is the sum of w E[m], and d.H D that of w E[m_c (E[z.D] - z_c.D)]. So w E[m_c (E[z.D] - z_c.D - 1)] adds
  up to 0, and as some w m_c are positive, E[z.D] - z_c.D >= 1 somewhere: that document has a spread of 1 or more.

References: HYB (Raina et al. 2003) (10), (11); separable documents: docs/mathematics.md 7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.solvers.logistic.likelihood import Derivatives

TOLERANCE = 1e-10  # of the gradient relative to the weight of the documents, and of the last step relative to theta
MOST = 200  # Newton steps; separable data take about 25 to tell, others rarely more than 10
INDEPENDENT = 1e-12  # share of a direction in the curvature from which on it is not taken for rounding
SPREAD = 0.9  # separable data have a spread of more than 1 in exact arithmetic
SHORTEST = 1e-12  # share of a step below which nothing can be gained along it
NEARLY = 1e-6  # negative margins, relative to spreads, that are taken for rounding once the gradient has vanished
ROUNDED = 16.0  # how many times what rounding may take a curvature has to be, to be told from nothing

T = TypeVar("T")
Evaluate = Callable[[Array, Array], Derivatives]
Steps = Generator[tuple[Array, Array], Derivatives, T]  # yields (theta, step), and is sent the sums there


@dataclass(frozen=True)
class LogisticFit:
    """The parameters that maximise the likelihood, and how well they do."""

    theta: Array  # (C - 1 + R,) intercepts of the classes but the first, then the slopes
    n_features: int
    ridge: float
    log_likelihood: float
    objective: float  # log likelihood less the penalty
    gradient: float  # what is left of it, relative to the weight of the documents, in units that suit the features
    rank: int  # parameters that the documents determine
    n_evaluations: int  # sums over all documents

    @property
    def intercepts(self) -> Array:
        """(C,) of all classes, the first of them 0."""
        return np.concatenate(([0.0], self.theta[: len(self.theta) - self.n_features]))

    @property
    def slopes(self) -> Array:
        """(R,)."""
        return self.theta[len(self.theta) - self.n_features :]


def solve(steps: Steps[T], evaluate: Evaluate) -> T:
    """Take steps to their end, with sums that are at hand."""
    try:
        at = next(steps)
        while True:
            at = steps.send(evaluate(*at))
    except StopIteration as end:
        result: T = end.value
        return result


def newton_steps(
    class_weight: Array, n_features: int, *, ridge: float = 0.0, intercepts: bool = True
) -> Steps[LogisticFit]:
    """Fit the parameters of a logistic model, in steps: yields (theta, step), and receives sums over all documents.

    These are those of `nfs_dask.solvers.logistic.likelihood.derivatives`; each may take a pass.

    Parameters
    ----------
    class_weight
        (C,) weight of the documents of each class, none of them 0.
    n_features
        R, the number of slopes.
    ridge
        Penalty of the slopes, against the *sum* over documents: twice the documents halve what it does. It is in the
        units of the features, so normalised ones, which are smaller, are shrunk more by the same number.
    intercepts
        Whether to fit them; False: they stay 0, and documents bring priors as offsets.

    >>> from functools import partial
    >>> from nfs_dask.solvers.logistic.likelihood import derivatives
    >>> x, y = np.array([[-1.0], [0.0], [0.5], [2.0]]), np.array([0, 1, 0, 1])
    >>> fit = solve(newton_steps(np.array([2, 2]), 1), partial(derivatives, x, y))
    >>> fit.theta.round(6).tolist()
    [-0.466229, 1.465869]
    """
    _check(class_weight, ridge)
    search = _NewtonSearch(class_weight, n_features, ridge)
    yield from search.begin(intercepts)
    for _ in range(MOST):
        if (yield from search.is_done()):
            return search.result()
        yield from search.advance()
    raise NfsDaskError(
        f"the fit has not settled after {MOST} steps: {search.size:.1e} of its gradient is left, {TOLERANCE:.0e} is "
        "allowed; a larger ridge is easier to fit"
    )


def nothing_to_fit(n_features: int, ridge: float) -> LogisticFit:
    """The fit of a single class: it is certain whatever the slopes, and the penalty is least without any."""
    return LogisticFit(np.zeros(n_features), n_features, ridge, 0.0, 0.0, 0.0, rank=0, n_evaluations=0)


def _check(class_weight: Array, ridge: float) -> None:
    if not (np.isfinite(ridge) and ridge >= 0):
        raise InputError(f"ridge={ridge}; give a number of 0 or more, such as 1e-3")
    if len(class_weight) < 2 or np.any(class_weight <= 0):
        weights = ", ".join(f"{weight:g}" for weight in class_weight)
        raise InputError(
            f"the classes have documents of total weight {weights}; a fit needs two classes or more, each of them with "
            "documents"
        )


class _NewtonSearch:
    """The state of Newton's method."""

    def __init__(self, class_weight: Array, n_features: int, ridge: float) -> None:
        first = len(class_weight) - 1  # parameter of the first slope
        self.n_features = n_features
        self.ridge = ridge
        self.weight = float(np.sum(class_weight))
        self.penalty = np.zeros(first + n_features)
        self.penalty[first:] = ridge
        self.bounded = ridge > 0  # whether a maximum is known to exist
        self.n_evaluations = 0
        self.theta = np.zeros(first + n_features)

    def begin(self, intercepts: bool) -> Steps[None]:
        """Sum up at 0, and choose the coordinates."""
        self.at = yield from self._sum(self.theta, self.theta)
        free = np.arange(len(self.theta)) >= (0 if intercepts else len(self.theta) - self.n_features)
        self.axes, dependent = _unit_axes(self._curvature() / self.weight * np.outer(free, free))  # (P, rank)
        if not self.bounded:
            yield from self._refuse_nearly_dependent(dependent)
        self.place = np.zeros(self.axes.shape[1])  # theta in the coordinates, so theta = axes @ place
        self.size = np.inf
        self._aim()

    def is_done(self) -> Steps[bool]:
        """Return True if theta is the maximum; refuses data that have none."""
        small = np.linalg.norm(self.step) <= TOLERANCE * (1 + np.linalg.norm(self.place))
        if self.size > TOLERANCE or not (small or self.at_rest):
            return False
        if not self.bounded:
            self.at = yield from self._sum(self.theta, self.axes @ self.step)
            self._learn(self.is_newtons)
        if not self.bounded:
            raise _separable("so close to separable that they do not determine theta")
        return True

    def advance(self) -> Steps[None]:
        """Take a step along Newton's direction that gains about as much as it promises."""
        origin, length = self.place, 1.0
        direction, is_newtons = self.axes @ self.step, self.is_newtons
        promised = self.weight * float(self.gradient @ self.step)
        before = self._objective()
        enough = before - 1e-11 * abs(before)  # what rounding may take
        while True:
            self.place = origin + length * self.step
            self.theta = self.axes @ self.place
            self.at = yield from self._sum(self.theta, direction)
            if self._objective() >= enough + 1e-4 * length * promised or length < SHORTEST:
                break
            # Try where the slope would vanish if it were linear.
            slope = float(self._slopes() @ direction)
            length *= min(max(promised / max(promised - slope, promised), 0.1), 0.5)
        self._aim()
        self._learn(is_newtons)

    def result(self) -> LogisticFit:
        """The fit; the last step, which is there anyway, is worth a few more digits."""
        return LogisticFit(
            theta=self.axes @ (self.place + self.step),
            n_features=self.n_features,
            ridge=self.ridge,
            log_likelihood=self.at.log_likelihood,
            objective=self._objective(),
            gradient=self.size,
            rank=len(self.place),
            n_evaluations=self.n_evaluations,
        )

    def _refuse_nearly_dependent(self, directions: Array) -> Steps[None]:
        """Directions (P, ...) without curvature have to change no document, or documents might be separable in them."""
        for direction in directions.T:
            at = yield from self._sum(self.theta, direction)
            if at.step_spread > INDEPENDENT:
                raise InputError(
                    "some features hardly differ beside their size, or from others, so whether the fit has a solution "
                    "is lost in rounding; give ridge > 0, such as 1e-3, or take off each feature what all documents "
                    "have"
                )

    def _sum(self, theta: Array, step: Array) -> Steps[Derivatives]:
        self.n_evaluations += 1
        at = yield theta, step
        if not np.all(np.isfinite(at.hessian)):
            raise InputError("some features are not finite, or too large to be squared; scale them down")
        return at

    def _objective(self) -> float:
        return self.at.log_likelihood - float(self.penalty @ self.theta**2) / 2

    def _slopes(self) -> Array:
        return self.at.gradient - self.penalty * self.theta

    def _curvature(self) -> Array:
        return np.diag(self.penalty) - self.at.hessian

    def _aim(self) -> None:
        """Find the gradient, relative to the weight of all documents, and Newton's step, both in the coordinates."""
        self.gradient = self.axes.T @ self._slopes() / self.weight
        size = float(np.abs(self.gradient).max(initial=0.0))
        # Where a step does not even halve the gradient, what is left is rounding; on separable data it takes a third.
        self.at_rest = self.size <= TOLERANCE and size > self.size / 2
        self.size = size
        curvature, eps = self._curvature(), np.finfo(float).eps
        values, vectors = np.linalg.eigh(self.axes.T @ curvature @ self.axes / self.weight)
        lost = eps * (np.abs(self.axes).T @ np.abs(curvature) @ np.abs(self.axes)).max(initial=0.0) / self.weight
        # Under an offset, curvatures are differences of large numbers: where they are rounding, so is the step.
        self.is_newtons = bool(values.min(initial=np.inf) > ROUNDED * lost)
        values = np.maximum(values, eps * values.max(initial=np.finfo(float).tiny))
        self.step = vectors @ ((vectors.T @ self.gradient) / values)

    def _learn(self, is_newtons: bool) -> None:
        """Find out from the extremes of the last evaluation, along a step of Newton's or not, if there is a maximum."""
        at = self.at
        self.bounded = self.bounded or (is_newtons and at.step_spread < SPREAD)
        rounding = NEARLY * at.step_spread if self.size <= TOLERANCE else 0.0
        if not self.bounded and (at.margin > 0 or at.step_margin > -rounding):
            raise _separable("separable")


def _unit_axes(curvature: Array) -> tuple[Array, Array]:
    """Axes A with A' curvature A = identity, over all directions in which there is curvature; and those without.

    The latter are of length 1 in units in which each parameter has a curvature of 1.
    """
    scale = np.sqrt(np.diag(curvature))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    values, vectors = np.linalg.eigh(curvature * np.outer(inverse, inverse))
    kept = values > INDEPENDENT
    return inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept]), inverse[:, None] * vectors[:, ~kept]


def _separable(how: str) -> InputError:
    return InputError(
        f"the documents are {how}: some direction of theta makes the likelihood larger and larger, so without a ridge "
        "the fit has no solution. Give ridge > 0, such as 1e-3, or more documents"
    )
