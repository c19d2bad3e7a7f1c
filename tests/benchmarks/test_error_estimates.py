import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import err_figure_3, err_figure_7, err_figures_5_6, err_reordered, two_classes
from benchmarks.papers.experiment import Settings
from nfs_dask.arrays.block import Array

N = two_classes.N_FEATURES


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    monkeypatch.setattr(two_classes, "DOCUMENTS", (1_000, 0))
    return Settings(tmp_path, quick=True)


def by_hand(P: Array, document: Array, kept: int) -> float:
    """What speaks for the first class, a feature after the other."""
    P, counts = (np.c_[rows[..., :kept], rows[..., kept:].sum(axis=-1)] for rows in (P, document[None]))
    return float(sum(n * (np.log(p) - np.log(q)) for p, q, n in zip(*P, counts[0], strict=True) if n))


def test_what_documents_say_is_added_up_for_every_number_of_features():
    classes = two_classes.problem()
    documents = np.random.default_rng(0).multinomial(two_classes.TOKENS, classes.P[1], 3)
    worth = two_classes.worth(classes, documents)
    for kept in (0, 1, 37, 150, 499, N):
        assert worth[:, kept] == pytest.approx([by_hand(classes.P, one, kept) for one in documents], abs=1e-9)


def test_the_probabilities_are_what_the_paper_says_of_its_own():
    P = two_classes.probabilities()
    assert P.sum(axis=1) == pytest.approx([1, 1])
    assert P[0, two_classes.DIFFERENT :] == pytest.approx(P[1, two_classes.DIFFERENT :], rel=1e-12)
    assert P[:, 200:300].mean() > 2 * P[:, 300:].mean()


@pytest.mark.parametrize("true", [0, 1])
def test_compensation_as_it_is_meant_is_that_of_the_package_and_as_printed_differs(true):
    classes = two_classes.problem()
    meant = two_classes.moments(classes, true, "compensated")[1]
    assert two_classes.compensated(classes, true)[1:] == pytest.approx(meant[1:], rel=1e-9, abs=1e-12)
    assert two_classes.moments(classes, true, two_classes.PRINTED)[1][150] > 2 * meant[150]


def test_simulated_moments_are_those_predicted(settings):
    classes = two_classes.problem()
    for true, simulated in enumerate(two_classes.both_classes(classes, settings)):
        mean, variance = two_classes.moments(classes, true, "exact")
        assert two_classes.off_by(simulated.mean, mean, simulated.mean_error).max() < 4.5
        assert two_classes.off_by(simulated.variance, variance, simulated.variance_error)[20:].max() < 4.5


def test_the_distance_to_a_normal_distribution_is_that_of_kolmogorov():
    values = np.random.default_rng(1).poisson(4, 500).astype(float)
    expected = stats.kstest(values, stats.norm(3.9, 2.1).cdf).statistic
    assert err_figure_3.distance_to_normal(values, 3.9, 2.1**2) == pytest.approx(expected)


def test_figures_of_errors_agree_with_each_other(settings):
    errors, variances = err_figure_7.run(settings), err_figures_5_6.run(settings)
    assert np.abs(errors["predicted"]["exact"] - errors["simulated"]).max() < 0.06
    assert 80 <= variances["classes"]["class 1"]["largest at"] <= 120
    assert errors["predicted"]["exact"][0] == pytest.approx(0.5)


def test_orders_hold_each_feature_once_and_help_early(settings):
    found = err_reordered.run(settings)
    orders, searches = found["orders"], found["searches"]
    for k, error in searches["forward selection"].items():
        assert error == pytest.approx(orders["forward selection"]["predicted"][int(k)])
        assert searches["floating"][k] <= error * (1 + 1e-9)
    for found in orders.values():
        assert sorted(found["order"]) == list(range(N))
        assert found["predicted"][-1] == pytest.approx(orders["as they stand"]["predicted"][-1])
    as_it_stands = orders.pop("as they stand")
    for found in orders.values():
        assert found["predicted"][10] < as_it_stands["predicted"][10] - 0.1
        assert found["simulated"][10] < as_it_stands["simulated"][10] - 0.1
