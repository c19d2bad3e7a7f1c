"""Reference vectors computed with 50 digits."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.solvers.naive_bayes import bernoulli, bisection, multinomial
from nfs_dask.solvers.naive_bayes.gains import gains, set_gain
from nfs_dask.solvers.naive_bayes.path_grid import guaranteed, solve_path

GAIN = 1e-9  # relative; MATH: counts of 1e12 allow no better
NOISE = 1e-14  # of the total of all counts


def agrees(support, answer):
    chosen = set(support.tolist())
    extra = chosen - set(answer["sure"])
    return chosen >= set(answer["sure"]) and extra <= set(answer["tied"]) and len(extra) == answer["need"]


def test_bernoulli(golden):
    for case in golden("bernoulli.json"):
        F, n = np.array(case["inputs"]["F"]), np.array(case["inputs"]["n"])
        tolerance = NOISE * n.sum()
        for totals in (F, F.astype(float)):
            scored = bernoulli.score(totals, n)
            np.testing.assert_allclose(scored.scores, case["expected"]["scores"], GAIN, tolerance, err_msg=case["id"])
            assert bernoulli.null_objective(scored) == pytest.approx(case["expected"]["base"], rel=1e-12)
            path = bernoulli.path(scored)
            for answer in case["expected"]["at_k"]:
                solution = bernoulli.solve(scored, answer["k"])
                assert agrees(solution.support, answer), (case["id"], answer["k"])
                assert solution.value == pytest.approx(answer["gain"], rel=GAIN, abs=tolerance)
                assert path[min(answer["k"], F.shape[1])] == pytest.approx(answer["gain"], rel=GAIN, abs=tolerance)


def chosen(F, k):
    """How many features are chosen: none that occurs nowhere, unless all are asked for."""
    if k >= F.shape[1]:
        return F.shape[1]
    return min(k, np.count_nonzero(F.any(axis=0)))


def test_multinomial(golden):
    for case in golden("multinomial.json"):
        F = np.array(case["inputs"]["F"])
        counted = multinomial.count(F)
        noise = NOISE * F.sum() * 1e-6  # the relative tolerance alone would do, but for gains that are 0
        for answer in case["expected"]["at_k"]:
            k, psi, where = answer["k"], answer["psi_gain"], (case["id"], answer["k"])
            most = answer.get("phi_gain", psi)
            solution = multinomial.solve(counted, k)
            assert len(solution.support) == chosen(F, k), where
            assert solution.bound == pytest.approx(psi, rel=GAIN, abs=noise), where
            assert answer["swap"] * (1 - GAIN) - noise <= solution.value <= most * (1 + GAIN) + noise, where
            if answer["alpha"] is not None:
                assert abs(solution.point[0] - answer["alpha"]) <= (1e-9 if answer["kink"] else 1e-6), where
            features, weights = solution.second_dual
            assert set_gain(F[:, features].astype(float), weights) == pytest.approx(psi, rel=GAIN, abs=noise), where
            assert set_gain(F[:, features].astype(float), np.ones(len(features))) >= psi * (1 - GAIN) - noise, where
            assert len(features) <= k + 1, where
            assert weights.sum() == pytest.approx(chosen(F, k)), where


def test_second_dual(golden):
    for case in golden("multinomial_dual.json"):
        F, k = np.array(case["inputs"]["F"], float), case["inputs"]["k"]
        expected = case["expected"]
        base = expected["D_of_x"][2]
        for x, value in zip(case["inputs"]["x"], expected["D_of_x"], strict=True):
            assert base + set_gain(F, np.array(x, float)) == pytest.approx(value, rel=1e-12)
        low = np.array([case["inputs"]["lo"], 1 - case["inputs"]["lo"]])
        np.testing.assert_allclose(gains(F, low), expected["h_at_lo"], 1e-12)
        features, weights = multinomial.solve(multinomial.count(F), k).second_dual
        size, gain = expected["repaired"]
        x = np.zeros(F.shape[1])
        x[features] = weights
        np.testing.assert_allclose(x, expected["optimal_x"], atol=1e-9)
        assert len(features) == size
        assert set_gain(F[:, features], np.ones(size)) == pytest.approx(gain, rel=1e-12)


def test_many_classes(golden):
    for case in golden("multinomial_multiclass.json"):
        F = np.array(case["inputs"]["F"])
        counted = multinomial.count(F)
        for answer in case["expected"]["at_k"]:
            k, psi = answer["k"], answer["psi_gain"]
            solution = multinomial.solve(counted, k)
            assert solution.bound == pytest.approx(psi, rel=1e-12)
            if "phi_gain" in answer:
                assert solution.value <= answer["phi_gain"] * (1 + 1e-12) + 1e-12
                assert solution.value >= 0.97 * answer["phi_gain"]
            if answer["alpha"] is not None:
                np.testing.assert_allclose(solution.point, answer["alpha"], atol=1e-6)
            features, weights = solution.second_dual
            assert set_gain(F[:, features].astype(float), weights) == pytest.approx(psi, rel=1e-12)
            assert len(features) <= k + len(F) - 1


@pytest.mark.parametrize("name", ["uniform", "zipf", "dup"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_path(golden, name, tolerance):
    file = golden("multinomial_path.npz")
    F = np.stack([file[f"{name}_fp"], file[f"{name}_fm"]])
    counted = multinomial.count(F if name == "uniform" else F.astype(np.int64))
    path = solve_path(counted, tolerance=tolerance)
    psi, walked = file[f"{name}_psi_gain"], file[f"{name}_tie_walk"]
    assert (psi * (1 - 1e-12) <= path.bound).all() and (path.bound <= psi * (1 + 1.01 * tolerance)).all()
    assert (path.value <= psi * (1 + 1e-12)).all() and (path.value >= walked * (1 - 1e-12) - tolerance * psi).all()
    assert (guaranteed(counted, path.ks) <= np.concatenate(([0], psi))[:-1] * (1 + 1e-12)).all()
    for k in (0, 1, 2, 17, 199, 200):
        support = path.support(k)
        assert len(support) == chosen(F, k)
        gain = set_gain(F[:, support].astype(float), np.ones(len(support)))
        assert gain == pytest.approx(path.value[k], rel=1e-9, abs=1e-12)


def test_selected_sizes_of_a_larger_table(golden):
    file = golden("multinomial_path.npz")
    F = np.stack([file["big_fp"], file["big_fm"]])
    for totals in (F, F.astype(np.int64)):
        counted = multinomial.count(totals)
        for k, psi, alpha, walked in zip(
            *(file[f"big_{n}"] for n in ("k", "psi_gain", "alpha", "tie_walk")), strict=True
        ):
            solution = multinomial.solve(counted, k)
            assert solution.bound == pytest.approx(psi, rel=1e-12)
            assert solution.value >= walked * (1 - 1e-12)
            assert solution.point[0] == pytest.approx(alpha, abs=1e-9)
            reference = bisection.solve(totals, int(k))
            assert reference.bound == pytest.approx(psi, rel=1e-7)
            assert reference.value <= solution.value * (1 + 1e-12)
