"""Models of sparse centers from statistics: reference vectors, panels, classes without documents."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.block import Block
from nfs_dask.errors import InputError
from nfs_dask.methods.centers import (
    CenterSettings,
    fit_gram,
    fit_medians,
    fit_moments,
    gram_gains,
    gram_path,
    median_gains,
    median_path,
    moment_gains,
    moment_path,
)
from nfs_dask.solvers.medians.column_medians import Medians
from nfs_dask.statistics.gram import Gram
from nfs_dask.statistics.moments import POWER
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State

SQUARED = {"l2": ("euclidean", "within"), "l2_within": ("mahalanobis", "within"), "l2_total": ("mahalanobis", "total")}


def parts(exact, n):
    """Fractions as n doubles that add up to them."""
    out = []
    for _ in range(n):
        out.append(np.vectorize(float, otypes=[float])(exact))
        exact = exact - np.vectorize(Fraction, otypes=[object])(out[-1])
    return out


def state_of(X, y, C, weights=None):
    """Moments of all columns, with squares: whole numbers where X is, else as exact as pairs can be."""
    X, y = np.asarray(X), np.asarray(y)
    rows = np.bincount(y, minlength=C)
    whole = X.dtype.kind == "i" and weights is None
    exact = np.vectorize(Fraction, otypes=[object])
    values, w = exact(X), exact(np.ones(len(y)) if weights is None else np.asarray(weights, float))
    nothing = np.zeros(X.shape[1], object) + Fraction(0)
    sums = np.array([(values * w[:, None])[y == c].sum(axis=0) + nothing for c in range(C)])
    squares = np.array([(values**2 * w[:, None])[y == c].sum(axis=0) + nothing for c in range(C)])
    weight = np.array([w[y == c].sum() + Fraction(0) for c in range(C)])
    names = ("real_sums", "real_sums_low", "real_squares", "real_squares_low", "real_squares_least")
    if whole:
        arrays = {"sums": sums.astype(np.int64), "squares": squares.astype(np.int64)}
    else:
        arrays = dict(zip(names, [*parts(sums, 2), *parts(squares, 3)], strict=True))
    totals = dict(zip(("weight", "weight_low"), parts(weight, 2), strict=True))
    totals |= dict(zip(POWER, parts(squares.sum(axis=1), 3), strict=True))
    mass = [int(squares.sum())] if whole else [0]
    return State(arrays, {"rows": rows, **totals, "mass": np.array(mass, np.int64)})


def panels_of(*args, **kwargs):
    state = state_of(*args, **kwargs)
    return MemoryPanels(state, next(iter(state.arrays.values())).shape[1])


class Cut(Panels):
    """A state cut into panels."""

    def __init__(self, state, bounds):
        self.whole, self.bounds, self.totals = state.arrays, bounds, state.totals

    def arrays(self, panel):
        return {name: a[:, self.bounds[panel] : self.bounds[panel + 1]] for name, a in self.whole.items()}


def agrees(support, answer):
    chosen = set(support.tolist())
    extra = chosen - set(answer["sure"])
    return chosen >= set(answer["sure"]) and extra <= set(answer["tied"]) and len(extra) == answer["need"]


def check(expected, fit, path, gains, tolerance, where):
    """A model for each k, against the reference and against the path."""
    np.testing.assert_allclose(gains, [float(g) for g in expected["gain"]], 1e-12, tolerance, err_msg=str(where))
    assert path.null == pytest.approx(expected["base"], rel=1e-12, abs=tolerance)
    for answer in expected["at_k"]:
        model, k = fit(answer["k"]), answer["k"]
        assert agrees(model.support, answer), (where, k)
        assert path.support(k).tolist() == model.support.tolist()
        assert path.cost[k] == model.evidence.objective, (where, k)
        assert model.evidence.certified and model.evidence.gap == 0
        if answer["objective"] is not None:
            assert model.evidence.objective == pytest.approx(answer["objective"], rel=1e-12, abs=tolerance), (where, k)
        if k == expected.get("theta_at"):
            theta = np.array(expected["theta"], float)
            np.testing.assert_allclose(model.centers, theta[:, model.support], 1e-15, 1e-15, err_msg=str(where))


def test_golden_squares(golden):
    for case in golden("centers.json"):
        X, y, C = np.array(case["inputs"]["X"]), case["inputs"]["y"], case["inputs"]["C"]
        tolerance = 1e-15 * min(1.0, np.abs(X).max() ** 2)
        for name, (metric, covariance) in SQUARED.items():
            for values in (X, X.astype(float)):
                expected, panels = case["expected"][name], panels_of(values, y, C)

                def fit(k, panels=panels, metric=metric, covariance=covariance, C=C):
                    return fit_moments(np.arange(C), panels, CenterSettings(k, metric, covariance))

                settings = CenterSettings(1, metric, covariance)
                gains, path = moment_gains(panels, settings), moment_path(panels, settings)
                check(expected, fit, path, gains, tolerance, (case["id"], name))
            model = fit(X.shape[1])
            if metric == "euclidean":
                assert model.method == "l2" and model.variances is None and model.covariance is None
                np.testing.assert_allclose(model.pooled, expected["pooled"], 1e-15)
            else:
                assert model.method == "mahalanobis" and model.covariance == covariance
                variance = case["expected"]["variances"][covariance]
                np.testing.assert_allclose(model.variances, np.array(variance, float), 1e-14)


def medians_of(case, keep=None):
    """Medians as the reference has them; all columns but those of ``keep`` are settled."""
    expected, y = case["expected"]["l1"], np.array(case["inputs"]["y"])
    medians, pooled = np.array(expected["medians"], float), np.array(expected["pooled"], float)
    dispersions, around = np.array(expected["class_dispersion"], float), np.array(expected["pooled_dispersion"], float)
    keep = np.arange(len(pooled)) if keep is None else keep
    return Medians(
        n_features=len(pooled),
        weight=np.bincount(y, minlength=len(medians)).astype(float),
        rows=len(y),
        columns=keep,
        centers=medians[:, keep],
        pooled=pooled[keep],
        dispersions=dispersions[:, keep],
        pooled_dispersions=around[keep],
        gains=np.array(expected["gain"], float)[keep],
        settled=float(np.delete(around, keep).sum()),
    )


def test_golden_absolute_values(golden):
    for case in golden("centers.json"):
        expected = case["expected"]["l1"]
        zero = ~np.array([*expected["medians"], expected["pooled"]], float).any(axis=0)
        for keep in (None, np.flatnonzero(~zero)):
            medians = medians_of(case, keep)
            classes = np.arange(len(medians.weight))

            def fit(k, medians=medians, classes=classes):
                return fit_medians(classes, medians, CenterSettings(k, "manhattan"))

            settings = CenterSettings(1, "manhattan")
            tolerance = 1e-13 * max(1.0, expected["base"])
            path = median_path(medians, settings)
            check(expected, fit, path, median_gains(medians), tolerance, case["id"])
            model = fit(len(zero))
            assert model.method == "l1"
            np.testing.assert_allclose(model.pooled, expected["pooled"], 1e-15)


def gram_of(X, y, C, shift):
    statistic = Gram(C, shift)
    state = statistic.zero()
    n, m = X.shape
    indices = np.tile(np.arange(m), n)
    statistic.update(state, Block(np.arange(n + 1) * m, indices, X.ravel(), np.asarray(y), m))
    return state


def test_golden_full_covariance(golden):
    for case in golden("centers_full_covariance.json"):
        X, y, expected = np.array(case["inputs"]["X"]), np.array(case["inputs"]["y"]), case["expected"]
        state = gram_of(X, y, 2, X[:5].mean(axis=0))
        settings = CenterSettings(2, "mahalanobis", "full")
        np.testing.assert_allclose(gram_gains(state, settings), expected["gain"], 1e-9)
        path = gram_path(state, settings)
        assert [path.support(k).tolist() for k in range(5)] == [sorted(expected["path"][:k]) for k in range(5)]
        assert path.null == 0
        np.testing.assert_allclose(path.cost, 0 - np.cumsum([0, *np.sort(expected["gain"])[::-1]]), 1e-9, 1e-12)
        model = fit_gram(np.arange(2), state, settings)
        assert model.support.tolist() == sorted(expected["path"][:2])
        np.testing.assert_allclose(model.root, np.array(expected["root"])[:, model.support], atol=1e-12)
        omega = np.array(expected["omega"])
        np.testing.assert_allclose(model.centers + model.shift @ model.root, omega[:, model.support], atol=1e-12)
        gained = sorted(expected["gain"])[-2:]
        assert model.evidence.objective == pytest.approx(-sum(gained))
        assert (
            fit_gram(np.arange(2), state, CenterSettings(1, "mahalanobis", "full", always=np.array([3]))).support == 3
        )


def test_full_covariances_with_an_offset():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)), np.repeat([0, 1, 2], 20)
    X += y[:, None] * [1, 0, 0, 2]
    settings = CenterSettings(2, "mahalanobis", "full")
    near, far = (gram_gains(gram_of(X + o, y, 3, X[0] + o), settings) for o in (0.0, 1e6))
    np.testing.assert_allclose(near, far, 1e-6)


def same(one, other):
    assert one.support.tolist() == other.support.tolist()
    assert one.evidence == other.evidence
    for name in ("centers", "pooled", "variances"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None and right is None) or left.tobytes() == right.tobytes()


@given(st.data())
def test_every_cut_gives_the_same_model_to_the_bit(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    C, m = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 40))
    y = np.concatenate((np.arange(C), rng.integers(0, C, 5)))
    X = rng.integers(-3, 4, (len(y), m))
    state = state_of(X if data.draw(st.booleans()) else X * 0.1 + 1e5, y, C)
    metric, covariance = data.draw(st.sampled_from(list(SQUARED.values())))
    always = data.draw(st.lists(st.integers(0, m - 1), max_size=min(2, m), unique=True))
    k = data.draw(st.integers(max(1, len(always)), m))
    settings = CenterSettings(k, metric, covariance, 0.0, np.array(always, np.int64) if always else None)
    cuts = data.draw(st.sets(st.integers(1, m), max_size=5))
    one, many = MemoryPanels(state, m), Cut(state, (0, *sorted(cuts - {m}), m))
    same(fit_moments(np.arange(C), one, settings), fit_moments(np.arange(C), many, settings))
    left, right = moment_path(one, settings, np.array([k])), moment_path(many, settings, np.array([k]))
    assert left.gains.tolist() == right.gains.tolist() and left.cost.tolist() == right.cost.tolist()
    assert {*always} <= {*left.support(k).tolist()}


class Invented(Panels):
    """Many panels of sums, each made when it is asked for."""

    def __init__(self, n_panels, width):
        self.bounds = tuple(range(0, n_panels * width + 1, width))
        weight = np.array([1000.0, 900.0])
        self.totals = {"rows": weight.astype(int), "weight": weight, "power": weight * 1e7}
        self.totals |= {"weight_low": 0 * weight, "mass": np.array([2**40])}
        self.totals |= dict.fromkeys(POWER[1:], 0 * weight)

    def arrays(self, panel):
        rng = np.random.default_rng(panel)
        return {"sums": rng.integers(0, 10_000, (2, self.bounds[panel + 1] - self.bounds[panel]))}


@pytest.mark.parametrize("n_panels", [10, 100])
def test_panels_go_by_one_at_a_time(n_panels):
    width = 20_000
    panels = Invented(n_panels, width)
    settings = CenterSettings(10)
    fit_moments(np.arange(2), Invented(2, width), settings)  # compiled code is not what is measured
    tracemalloc.start()
    model = fit_moments(np.arange(2), panels, settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6, f"{peak / 1e6:.1f} MB, where all gains alone are {8e-6 * n_panels * width:.1f} MB"
    gains = moment_gains(panels, settings)
    assert model.support.tolist() == sorted(np.argsort(-gains, kind="stable")[:10].tolist())


@pytest.mark.parametrize(("metric", "covariance"), SQUARED.values())
def test_classes_without_documents_take_no_part(metric, covariance):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (30, 6)), rng.integers(0, 2, 30)
    settings = CenterSettings(3, metric, covariance)
    two = fit_moments(np.array(["a", "c"]), panels_of(X, y, 2), settings)
    three = fit_moments(np.array(["a", "b", "c"]), panels_of(X, 2 * y, 3), settings)
    assert three.support.tolist() == two.support.tolist() and three.evidence == two.evidence
    assert three.centers[[0, 2]].tolist() == two.centers.tolist() and three.centers[1].tolist() == two.pooled.tolist()
    block = Block(np.arange(31) * 6, np.tile(np.arange(6), 30), X.ravel(), y, 6)
    assert three.predict(block).tolist() == two.predict(block).tolist()


def test_the_nearest_center_is_predicted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 8)) + 2 * (y[:, None] == np.arange(8) % 3)
    block = Block(np.arange(91) * 8, np.tile(np.arange(8), 90), X.ravel(), y, 8)
    for metric, covariance in SQUARED.values():
        model = fit_moments(np.arange(3), panels_of(X, y, 3), CenterSettings(4, metric, covariance))
        means = np.array([X[y == c].mean(axis=0) for c in range(3)])
        theta = np.tile(means.mean(axis=0), (3, 1))
        theta[:, model.support] = means[:, model.support]
        around = X - (means[y] if covariance == "within" else X.mean(axis=0))
        scale = (around**2).mean(axis=0) if metric == "mahalanobis" else 1.0
        distances = ((X[:, None] - theta) ** 2 / scale).sum(axis=2)
        np.testing.assert_array_equal(model.predict(block), distances.argmin(axis=1))
        cost = sum(distances[y == c, c].mean() for c in range(3))
        assert model.evidence.objective == pytest.approx(cost, rel=1e-12)


def test_weights_that_are_no_whole_numbers_leave_constants_constant():
    rng = np.random.default_rng(0)
    y, weights = np.repeat([0, 1, 2], 7), rng.random(21)
    X = np.column_stack([np.full(21, 0.1), np.where(y == 1, 0.3, 0.1), rng.random(21), np.full(21, 1e6 / 3)])
    for covariance, second in (("within", np.inf), ("total", None)):
        gains = moment_gains(panels_of(X, y, 3, weights), CenterSettings(1, "mahalanobis", covariance))
        assert gains[0] == gains[3] == 0 and 0 < gains[2] < np.inf
        assert gains[1] == second if second else 0 < gains[1] < np.inf
    model = fit_moments(np.arange(3), panels_of(X, y, 3, weights), CenterSettings(2, "mahalanobis"))
    assert model.support.tolist() == [1, 2] and np.isfinite(model.evidence.objective)
    floored = CenterSettings(1, "mahalanobis", "within", variance_floor=0.25)
    gains = moment_gains(panels_of(X, y, 3, weights), floored)
    assert gains[1] == pytest.approx(4 * moment_gains(panels_of(X, y, 3, weights), CenterSettings(1))[1])
    assert fit_moments(np.arange(3), panels_of(X, y, 3, weights), floored).variances.tolist() == [0.25]


def test_medians_of_features_that_are_settled_are_zero():
    medians = Medians(
        n_features=9,
        weight=np.array([3.0, 4.0, 0.0]),
        rows=7,
        columns=np.array([2, 5, 7]),
        centers=np.array([[0.0, 1.0, -2.0], [0.0, 3.0, 2.0], [0.0, 0.0, 0.0]]),
        pooled=np.array([0.0, 1.0, 2.0]),
        dispersions=np.array([[1.0] * 3, [1.0] * 3, [0.0] * 3]),
        pooled_dispersions=np.array([2.0, 4.0, 6.0]),
        gains=np.array([0.0, 2.0, 4.0]),
        settled=1.5,
    )
    model = fit_medians(np.arange(3), medians, CenterSettings(5, "manhattan", always=np.array([8])))
    assert model.support.tolist() == [0, 1, 5, 7, 8]
    assert model.centers[:2].tolist() == [[0.0, 0.0, 1.0, -2.0, 0.0], [0.0, 0.0, 3.0, 2.0, 0.0]]
    assert model.centers[2].tolist() == model.pooled.tolist()
    assert model.pooled.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0] and model.evidence.objective == 7.5
    path = median_path(medians, CenterSettings(1, "manhattan"), np.array([1, 2, 9]))
    assert path.value.tolist() == [4.0, 6.0, 6.0] and path.cost.tolist() == [9.5, 7.5, 7.5] and path.null == 13.5


def test_what_cannot_be_fitted_is_refused():
    panels = panels_of(np.array([[1, 2], [3, 5]]), [0, 1], 2)
    with pytest.raises(InputError, match="does not follow from moments"):
        fit_moments(np.arange(2), panels, CenterSettings(1, "mahalanobis", "full"))
    with pytest.raises(InputError, match="does not follow from moments"):
        moment_gains(panels, CenterSettings(1, "manhattan"))
    with pytest.raises(InputError, match="count them with squares=True"):
        moment_gains(Invented(1, 5), CenterSettings(1, "mahalanobis"))
    with pytest.raises(InputError, match="no class has documents"):
        fit_moments(np.arange(2), panels_of(np.zeros((0, 2), int), np.zeros(0, int), 2), CenterSettings(1))
    assert fit_moments(np.arange(2), panels, CenterSettings(10)).support.tolist() == [0, 1]
