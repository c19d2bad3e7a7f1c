"""Ways to choose features, on texts whose telling words are known."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import RFE

from benchmarks.papers.choosers import CHOOSERS, STEP, eliminated, log_odds, logistic, searched, svm
from benchmarks.papers.smoothing import ALPHAS, cross_validated
from benchmarks.papers.vectors import Vectors, some_of_both, splits

TELLING = 6


@pytest.fixture(scope="module")
def planted():
    """Counts of 40 words, of which the first three are of one class and the next three of the other."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 2
    rates = np.full((2, 40), 0.5)
    rates[0, :3] = rates[1, 3:TELLING] = 2.0
    return sparse.csr_array(rng.poisson(rates[y])), y


@pytest.mark.parametrize("way", CHOOSERS)
def test_telling_words_are_chosen(way, planted):
    X, y = planted
    (choice,) = CHOOSERS[way](X, y, [TELLING], 1.0)
    wanted = range(3, TELLING) if way == "odds ratio" else range(TELLING)  # which is of one class alone
    assert set(wanted) <= set(choice.support.tolist()) and len(choice.support) == TELLING
    assert choice.search >= choice.seconds > 0


@pytest.mark.parametrize("way", {*CHOOSERS} - {"l1 logistic", "l1 SVM", "LASSO"})
def test_asked_for_several_k_a_way_chooses_what_it_does_for_each(way, planted):
    X, y = planted
    together = {choice.k: choice.support.tolist() for choice in CHOOSERS[way](X, y, [2, TELLING, 20], 1.0)}
    assert together == {k: next(CHOOSERS[way](X, y, [k], 1.0)).support.tolist() for k in (2, TELLING, 20)}


@pytest.mark.parametrize("model", [logistic, svm])
def test_elimination_chooses_what_that_of_scikit_learn_does(model):
    rng = np.random.default_rng(2)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 300)) + np.outer(y, rng.normal(size=300)) / 2
    for choice in eliminated(model)(X, y, (3, 30, 31, 120, 299), 1.0):
        expected = RFE(model(), n_features_to_select=choice.k, step=STEP).fit(X, y).get_support(indices=True)
        assert choice.support.tolist() == expected.tolist()


def test_a_search_learns_from_what_was_found_for_other_k():
    """Each penalty leaves as many features as it says; three k lie near enough to a fit for another one."""
    asked = []

    def coefficients(X, y, C):
        asked.append(C)
        return np.arange(100) < C

    choices = {
        choice.k: choice for choice in searched(coefficients, lambda X, y: 1.0)(np.eye(2), None, (40, 20, 41), 1)
    }
    assert all(abs(len(choice.support) - k) <= 0.1 * k for k, choice in choices.items())
    assert choices[40].support is choices[41].support and len(asked) == len(set(asked)) < 8
    assert choices[20].search <= choices[40].search == choices[41].search


def test_odds_are_those_of_documents():
    X = sparse.csr_array(np.array([[2, 0], [1, 1], [0, 3], [0, 1], [4, 1]]))
    y = np.array([0, 0, 0, 1, 1])
    shares = np.array([[(2 + 1) / (3 + 2), (2 + 1) / (3 + 2)], [(1 + 1) / (2 + 2), (2 + 1) / (2 + 2)]])
    odds = shares / (1 - shares)
    np.testing.assert_allclose(log_odds(X, y, 1.0), np.log(odds[1] / odds[0]))


def test_smoothing_is_the_best_of_cross_validation(planted):
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.naive_bayes import MultinomialNB

    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    search = GridSearchCV(MultinomialNB(), {"alpha": ALPHAS[::-1]}, cv=folds).fit(*planted)
    assert cross_validated(*planted) == search.best_params_["alpha"]


def test_splits_keep_the_shares_of_the_published_one():
    train = np.arange(50) < 40
    found = Vectors(sparse.csr_array(np.eye(50)), np.arange(50) % 2, train)
    published, *others = splits(found, 4, seed=0)
    assert (published == train).all() and all(other.sum() == 40 for other in others)
    assert len({other.tobytes() for other in others}) == 3
    rows = some_of_both(train, 20, seed=0)
    assert train[rows].sum() == 20 and (~train[rows]).sum() == 10
