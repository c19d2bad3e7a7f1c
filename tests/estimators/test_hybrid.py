"""The hybrid estimator: reference vectors, naive Bayes, retraining by hand, and every way to give it documents."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from nfs_dask import HybridNB, InputError, SparseMultinomialNB, StoreError, ingest, load_model
from nfs_dask.estimators import classifier as base
from nfs_dask.prediction.coverage import Reliability, accuracy_coverage
from tests.helpers.places import data_file

METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function"]


def corpus(n_classes=2, n_rows=150, n_words=40, n_regions=2, seed=0):
    """Documents of several regions whose words come in bursts, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    themes = rng.dirichlet(np.full(n_words, 0.8), n_classes) + 1 / n_words
    parts = []
    for region in range(n_regions):
        own = rng.gamma(12 * themes[y])  # what a document talks about
        parts.append(rng.poisson(own * 5.0 ** (region + 1) / own.sum(axis=1, keepdims=True)))
    return [sparse.csr_array(part) for part in parts], np.array(["a", "b", "c", "d"])[y]


def whole(parts):
    return sparse.csr_array(sparse.hstack(parts))


# What is fitted


def dense(documents, n_words):
    """Reference documents, lists of regions as {word: count}, as a matrix."""
    X = np.zeros((len(documents), len(documents[0]) * n_words))
    for row, document in zip(X, documents, strict=True):
        for region, words in enumerate(document):
            for word, count in words.items():
                row[region * n_words + int(word)] = count
    return X


def test_the_reference(golden):
    checked = refused = 0
    for case in golden("hybrid.json"):
        given = case["inputs"]
        X, n_words = dense(given["docs"], given["vocabulary_size"]), given["vocabulary_size"]
        for normalize in (True, False):
            expected = case["expected"]["normalised" if normalize else "unnormalised"]
            for fit in expected["fits"]:
                model = HybridNB(
                    regions=len(given["docs"][0]), normalize=normalize, alpha=given["smooth"], ridge=fit["ridge"]
                )
                if "error" in fit:
                    with pytest.raises(InputError, match="separable"):
                        model.fit(X, given["y"])
                    refused += 1
                    continue
                model.fit(X, given["y"])
                np.testing.assert_allclose(model.theta_, fit["theta"], rtol=1e-7, atol=1e-8, err_msg=case["id"])
                assert model.objective_ == pytest.approx(fit["objective"], rel=1e-9)
                if "test_posterior" in fit:
                    p = model.predict_proba(dense(given["test"], n_words))[:, 1]
                    np.testing.assert_allclose(p, fit["test_posterior"], rtol=1e-7, atol=1e-9, err_msg=case["id"])
                checked += 1
    assert checked > 15
    assert refused > 2


def by_hand(parts, codes, alpha, ridge, normalize=True, words=None):
    """theta by general optimisation of features that come from retraining without each document."""
    dense_parts, n_classes = [part.toarray() for part in parts], codes.max() + 1
    n, n_words = dense_parts[0].shape
    words = np.arange(n_words) if words is None else words
    features = np.zeros((n, len(parts), n_classes))
    for i in range(n):
        rest = np.arange(n) != i
        table = np.array([sum(part[rest & (codes == c)].sum(axis=0) for part in dense_parts) for c in range(n_classes)])
        logs = np.log((table + alpha) / (table.sum(axis=1, keepdims=True) + alpha * n_words))[:, words]
        for r, part in enumerate(dense_parts):
            row = part[i, words]
            features[i, r] = logs @ row / (max(row.sum(), 1) if normalize else 1)

    def cost(theta):
        scores = np.concatenate([[0.0], theta[: n_classes - 1]]) + theta[n_classes - 1 :] @ features
        top = scores.max(axis=1)
        logs = scores - (top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))[:, None]
        return -logs[np.arange(n), codes].sum() + ridge / 2 * (theta[n_classes - 1 :] ** 2).sum()

    found = minimize(cost, np.zeros(n_classes - 1 + len(parts)), method="BFGS", options={"gtol": 1e-7})
    return found.x, -found.fun


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("normalize", [True, False])
def test_theta_maximises_the_likelihood_of_documents_left_out(n_classes, normalize):
    parts, y = corpus(n_classes, n_rows=40, n_words=12)
    codes = np.unique(y, return_inverse=True)[1]
    model = HybridNB(alpha=0.5, ridge=0.01, normalize=normalize).fit(parts, y)
    theta, objective = by_hand(parts, codes, 0.5, 0.01, normalize)
    np.testing.assert_allclose(model.theta_, theta, rtol=1e-4, atol=1e-4)
    assert model.objective_ >= objective - 1e-8
    assert model.objective_ == pytest.approx(objective, rel=1e-7)


def test_a_choice_of_words_is_that_of_the_multinomial_model():
    parts, y = corpus(3, n_rows=60, n_words=20)
    model = HybridNB(k=6, ridge=0.01).fit(parts, y)
    chosen = SparseMultinomialNB(6).fit(sum(parts), y)
    words = chosen.get_support(indices=True)
    np.testing.assert_array_equal(model.get_support(indices=True), np.concatenate([words, 20 + words]))
    assert model.objective_ == chosen.objective_
    assert model.dual_gap_ == chosen.dual_gap_
    codes = np.unique(y, return_inverse=True)[1]
    theta, _ = by_hand(parts, codes, 1.0, 0.01, words=words)
    np.testing.assert_allclose(model.theta_, theta, rtol=1e-4, atol=1e-4)
    assert model.feature_log_prob_.shape == (3, 6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sums_of_unit_weight_are_naive_bayes(n_classes):
    parts, y = corpus(n_classes)
    model = HybridNB(normalize=False, prior="fixed", ridge=1.0).fit(parts, y)
    table = SparseMultinomialNB("all").fit(sum(parts), y)
    expected = MultinomialNB().fit(sum(parts), y).feature_log_prob_
    np.testing.assert_allclose(model.feature_log_prob_, expected, rtol=1e-12)
    prior = np.log(model.class_count_[1:] / model.class_count_[0])
    np.testing.assert_allclose(model.theta_[: n_classes - 1], prior, rtol=1e-12, atol=1e-15)
    model.model_.theta[n_classes - 1 :] = 1.0
    np.testing.assert_allclose(model.predict_proba(parts), table.predict_proba(sum(parts)), rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(model.predict(parts), table.predict(sum(parts)))


def test_separate_tables_are_two_models():
    parts, y = corpus(3)
    model = HybridNB(tables="separate").fit(parts, y)
    for r, part in enumerate(parts):
        expected = MultinomialNB().fit(part, y).feature_log_prob_
        np.testing.assert_allclose(model.feature_log_prob_[:, r], expected, rtol=1e-12)
    assert not np.allclose(model.theta_, HybridNB().fit(parts, y).theta_)
    assert model.score(parts, y) > 0.8


def test_weights_repeat_documents():
    parts, y = corpus(2, n_rows=60)
    w = np.random.default_rng(0).integers(0, 4, 60)
    X = whole(parts)
    twice = HybridNB(regions=2).fit(X[np.repeat(np.arange(60), w)], np.repeat(y, w))
    once = HybridNB(regions=2).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(once.theta_, twice.theta_, rtol=1e-8)
    np.testing.assert_array_equal(once.feature_log_prob_, twice.feature_log_prob_)
    np.testing.assert_array_equal(once.class_count_, twice.class_count_)


# What it is for


def overconfidence(scores, y, classes):
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return Reliability.of(chances / chances.sum(axis=1, keepdims=True), y, classes=classes).expected_error


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [None, 15])
def test_posteriors_are_calibrated_where_those_of_naive_bayes_are_not(n_classes, k):
    parts, y = corpus(n_classes, n_rows=3000, n_words=80, seed=1)
    train, test = [part[:1500] for part in parts], [part[1500:] for part in parts]
    hybrid = HybridNB(k=k).fit(train, y[:1500])
    bayes = SparseMultinomialNB("all" if k is None else k).fit(sum(train), y[:1500])
    truth = y[1500:]
    ours = overconfidence(hybrid.predict_log_proba(test), truth, hybrid.classes_)
    theirs = overconfidence(bayes.predict_log_proba(sum(test)), truth, hybrid.classes_)
    assert theirs > 0.05
    assert ours < 0.5 * theirs
    assert ours < 0.04
    assert hybrid.score(test, truth) > bayes.score(sum(test), truth) - 0.01


def test_confidence_orders_documents_by_how_sure_they_are():
    parts, y = corpus(2, n_rows=3000, n_words=80, seed=2)
    hybrid = HybridNB().fit([part[:1500] for part in parts], y[:1500])
    decision = hybrid.decision_function([part[1500:] for part in parts])
    curve = accuracy_coverage(decision, y[1500:], classes=hybrid.classes_, at_zero=0)
    assert curve.accuracy[-1] == pytest.approx(hybrid.score([part[1500:] for part in parts], y[1500:]))
    assert curve.at_coverage(0.3) > curve.accuracy[-1] + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "groups", [("alt.atheism", "talk.religion.misc"), ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware")]
)
def test_newsgroups(groups):
    """Messages with subject and body: as accurate as naive Bayes, and far better calibrated."""
    frame = pd.read_parquet(data_file("newsgroups20.parquet"))
    train, test = (frame[frame.group.isin(groups) & (frame.split == split)] for split in ("train", "test"))
    counting = CountVectorizer().fit(pd.concat([train.subject, train.body]).fillna(""))
    X, T = ([counting.transform(split[name].fillna("")) for name in ("subject", "body")] for split in (train, test))
    hybrid = HybridNB().fit(X, train.group)
    bayes = SparseMultinomialNB("all").fit(sum(X), train.group)
    truth = test.group.to_numpy()
    ours = overconfidence(hybrid.predict_log_proba(T), truth, hybrid.classes_)
    theirs = overconfidence(bayes.predict_log_proba(sum(T)), truth, hybrid.classes_)
    assert ours < 0.5 * theirs
    assert hybrid.score(T, truth) > bayes.score(sum(T), truth) - 0.02
    covered = [
        accuracy_coverage(decision, truth, classes=hybrid.classes_, at_zero=0).at_accuracy(0.95)
        for decision in (hybrid.decision_function(T), bayes.decision_function(sum(T)))
    ]
    assert covered[0] > covered[1] - 0.02


# How documents are given

PARTS, LABELS = corpus()
WHOLE = whole(PARTS)
GIVEN = {
    "a list": (PARTS, {}),
    "a tuple": (tuple(PARTS), {}),
    "a list and a number": (PARTS, {"regions": 2}),
    "a list of dense ones": ([part.toarray() for part in PARTS], {}),
    "a list of dense and sparse ones": ([PARTS[0].toarray(), PARTS[1]], {}),
    "a list of DataFrames": ([pd.DataFrame(part.toarray()) for part in PARTS], {}),
    "a list of columns first": ([part.tocsc() for part in PARTS], {}),
    "a number": (WHOLE, {"regions": 2}),
    "slices": (WHOLE, {"regions": [slice(0, 40), slice(40, 80)]}),
    "open slices": (WHOLE, {"regions": (slice(None, 40), slice(40, None))}),
    "a DataFrame": (pd.DataFrame(WHOLE.toarray()), {"regions": 2}),
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_container_is_the_same_data(name):
    X, parameters = GIVEN[name]
    expected = HybridNB(regions=2).fit(WHOLE, LABELS)
    model = HybridNB(**parameters).fit(X, LABELS)
    assert model.n_regions_ == 2
    assert model.n_features_in_ == 80
    np.testing.assert_allclose(model.theta_, expected.theta_, rtol=1e-9)
    np.testing.assert_array_equal(model.feature_log_prob_, expected.feature_log_prob_)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(model, method)(WHOLE))
    assert model.transform(X).shape == (150, 80)
    assert model.score(X, LABELS) > 0.8


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_dask_arrays_stay_lazy(make):
    lazy = [da.from_array(part.toarray(), chunks=(50 + 10 * i, 40)).map_blocks(make) for i, part in enumerate(PARTS)]
    y = da.from_array(LABELS, chunks=50)
    model = HybridNB().fit(lazy, y)
    np.testing.assert_allclose(model.theta_, HybridNB().fit(PARTS, LABELS).theta_, rtol=1e-9)
    found = model.predict_proba(lazy)
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), model.predict_proba(PARTS))
    assert model.score(lazy, y) == model.score(PARTS, LABELS)
    with pytest.raises(InputError, match="some of the matrices are dask arrays and others are not"):
        model.predict([lazy[0], PARTS[1]])


def test_one_region_is_the_default():
    model = HybridNB().fit(WHOLE, LABELS)
    assert model.n_regions_ == 1
    assert model.theta_.shape == (2,)
    np.testing.assert_allclose(model.theta_, HybridNB().fit([WHOLE], LABELS).theta_, rtol=1e-9)


@pytest.mark.parametrize(
    ("X", "regions", "message"),
    [
        (WHOLE, 3, "regions=3, and X has 80 columns, which are not 3 equal parts"),
        (WHOLE, 0, "regions=0; give a number of 1 or more, slices such as"),
        (WHOLE, True, "regions=True; give a number"),
        (WHOLE, "two", "regions='two'; give a number"),
        (WHOLE, [], r"regions=\[\]; give a number"),
        (WHOLE, [slice(0, 40), 2], "give a number of 1 or more, slices"),
        (WHOLE, [slice(0, 30), slice(30, 80)], r"region 0 is slice\(0, 30, None\).*give slice\(0, 40\), slice\(40, 80"),
        (WHOLE, [slice(40, 80), slice(0, 40)], "region 0 is.*in their order"),
        (WHOLE, [slice(0, 40), slice(40, 79)], "region 1 is"),
        (WHOLE, [slice(0, 40, 2), slice(40, 80, 2)], "region 0 is"),
        (WHOLE, [slice(0, 20), slice(20, 40)], "together have all columns.*leave other columns out of X"),
        (PARTS, 1, "regions=1, and X has 2 matrices; leave regions out"),
        ([PARTS[0], PARTS[1][:, :30]], None, "the regions have 40 and 30 columns; make them over one vocabulary"),
        ([PARTS[0], PARTS[1][:100]], None, r"the matrices have \[150, 100\] rows; give the same documents"),
        ([PARTS[0], "text"], None, "a list of regions holds a str beside matrices"),
    ],
)
def test_regions_that_cannot_be(X, regions, message):
    with pytest.raises(InputError, match=message):
        HybridNB(regions=regions).fit(X, LABELS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"normalize": "yes"}, "normalize='yes'; give True or False"),
        ({"alpha": 0}, "alpha=0.* is not possible here.*give a number above 0"),
        ({"alpha": "1"}, "alpha='1'; give one finite number"),
        ({"ridge": -1}, "ridge=-1; give one finite number of 0 or more"),
        ({"ridge": None}, "ridge=None; give one finite number"),
        ({"prior": "mine"}, "prior='mine'; give one of 'fitted', 'fixed'"),
        ({"tables": "own"}, "tables='own'; give one of 'shared', 'separate'"),
        ({"k": 0}, "k=0 keeps no feature"),
        ({"k": 1.0}, "k=1.0 is not a fraction"),
    ],
)
def test_parameters_that_cannot_be(parameters, message):
    with pytest.raises(InputError, match=message):
        HybridNB(**parameters).fit(PARTS, LABELS)


def test_documents_of_other_regions_are_refused_at_prediction():
    model = HybridNB().fit(PARTS, LABELS)
    with pytest.raises(InputError, match=r"X has 1 region\(s\), and the model was fitted to 2"):
        model.predict([WHOLE])
    with pytest.raises(ValueError, match="X has 60 features, but HybridNB is expecting 80"):
        model.predict([part[:, :30] for part in PARTS])


def test_separable_documents_need_a_ridge():
    X, y = np.eye(4, dtype=int)[[0, 0, 1, 1]] * 3, ["a", "a", "b", "b"]
    with pytest.raises(InputError, match="Give ridge > 0"):
        HybridNB(ridge=0.0).fit(X, y)
    assert HybridNB(ridge=0.1).fit(X, y).predict(X).tolist() == y


# What it offers


def test_what_cannot_be_is_not_there():
    model = HybridNB().fit(PARTS, LABELS)
    for name in ("partial_fit", "forget", "coef_", "intercept_", "scores_"):
        assert not hasattr(model, name), name
    assert not hasattr(HybridNB(), "theta_")
    linear = HybridNB(normalize=False, k=5).fit(PARTS, LABELS)
    decision = WHOLE @ linear.coef_.T + linear.intercept_
    np.testing.assert_allclose(decision[:, 0], linear.decision_function(PARTS), atol=1e-10)


def test_the_support_is_columns_of_words_in_every_region():
    model = HybridNB(k=4).fit(PARTS, LABELS)
    support = model.get_support(indices=True)
    np.testing.assert_array_equal(support[4:], support[:4] + 40)
    np.testing.assert_array_equal(model.transform(PARTS).toarray(), WHOLE.toarray()[:, support])
    np.testing.assert_array_equal(
        model.inverse_transform(model.transform(WHOLE)).toarray()[:, support], WHOLE.toarray()[:, support]
    )
    assert HybridNB(k=0.1).fit(PARTS, LABELS).get_support().sum() == 8
    everything = HybridNB(k="all").fit(PARTS, LABELS)
    assert everything.get_support().all()
    np.testing.assert_array_equal(everything.theta_, HybridNB().fit(PARTS, LABELS).theta_)


def test_top_features_name_words_by_their_region():
    frame = pd.DataFrame(WHOLE.toarray(), columns=[f"{region}{word}" for region in "sb" for word in range(40)])
    model = HybridNB(regions=2).fit(frame, LABELS)
    tops = model.top_features(3)
    best = np.argmax(np.diff(model.feature_log_prob_, axis=0)[0])
    heavier = "sb"[int(np.argmax(model.theta_[1:]))]
    assert tops["b"][0][0] == f"{heavier}{best}"
    weight = model.theta_[1:].max() * np.diff(model.feature_log_prob_, axis=0)[0, best]
    assert tops["b"][0][1] == pytest.approx(weight)


def test_clones_and_pickles():
    model = HybridNB(regions=[slice(0, 40), slice(40, 80)], k=7, prior="fixed").fit(WHOLE, LABELS)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(WHOLE), model.predict_proba(PARTS))


@pytest.mark.parametrize(
    "parameters",
    [{"regions": [slice(0, 40), slice(40, 80)]}, {"regions": 2, "k": np.int64(5)}, {"tables": "separate", "k": 0.2}],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_and_loaded(parameters, n_classes, tmp_path):
    parts, y = corpus(n_classes)
    X = parts if "regions" not in parameters else whole(parts)
    model = HybridNB(ridge=0.5, normalize=False, **parameters).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, HybridNB)
    assert (loaded.ridge, loaded.normalize) == (0.5, False)
    assert loaded.regions == (2 if "regions" in parameters else None)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(loaded, method)(parts), getattr(model, method)(parts))
    for name in ("theta_", "feature_log_prob_", "classes_", "class_count_", "coef_"):
        left, right = getattr(loaded, name), getattr(model, name)
        np.testing.assert_array_equal(getattr(left, "data", left), getattr(right, "data", right))
    assert loaded.objective_ == model.objective_
    assert clone(loaded).fit(parts, y).theta_ == pytest.approx(model.theta_)


# Stores and texts

WORDS = "the a tea coffee green black cup cups of and milk sugar leaf bean roast brew".split()


def texts(n, seed):
    """Subjects and bodies, some of them empty, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    weights = np.ones((2, len(WORDS)))
    weights[0, 2:5] = weights[1, 5:8] = 3
    weights /= weights.sum(axis=1, keepdims=True)
    return pd.DataFrame(
        {
            "subject": [" ".join(rng.choice(WORDS, rng.integers(0, 4), p=weights[c])) for c in y],
            "body": [" ".join(rng.choice(WORDS, rng.integers(1, 20), p=weights[c])) for c in y],
            "label": np.array(["no", "yes"])[y],
        }
    )


TRAINING = texts(150, 0)
UNSEEN = pd.concat(
    [texts(30, 1), pd.DataFrame({"subject": ["", "tea " * 50, "words nobody saw"], "body": ["", "", "tea"]})]
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = tmp_path_factory.mktemp("hybrid") / "store"
    return ingest(TRAINING, place, regions=["subject", "body"], label_column="label")


def vectorized(frame, names):
    """The columns of texts, counted by hand."""
    terms = [name.removeprefix("subject:") for name in names[: len(names) // 2]]
    pairs = zip(frame.subject, frame.body, strict=True)
    return np.array([[text.split().count(term) for text in pair for term in terms] for pair in pairs])


def test_a_store_brings_its_regions(store):
    model = HybridNB().fit(store)
    names = store.names(np.arange(store.n_features))
    X = vectorized(TRAINING, names)
    assert model.n_regions_ == 2
    expected = HybridNB(regions=2).fit(X, TRAINING.label)
    np.testing.assert_allclose(model.theta_, expected.theta_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict_proba(store), model.predict_proba(X))
    with pytest.raises(InputError, match=r"regions=1, and X has texts of 2 region\(s\), subject, body; leave regions"):
        HybridNB(regions=1).fit(store)
    np.testing.assert_array_equal(HybridNB(regions=2).fit(store).theta_, model.theta_)


def test_a_store_of_other_regions_is_refused_at_prediction(store, tmp_path):
    model = HybridNB().fit(store)
    vocabulary = [f"word{i}" for i in range(store.n_features)]
    one = ingest(["word1 word2", "word3"], tmp_path / "one", labels=["yes", "no"], vocabulary=vocabulary)
    assert one.n_features == store.n_features
    with pytest.raises(InputError, match=r"X has 1 region\(s\), and the model was fitted to 2"):
        model.predict(one)


SHAPES = {
    "DataFrame": lambda frame: frame,
    "tuples": lambda frame: list(zip(frame.subject, frame.body, strict=True)),
    "dicts": lambda frame: frame[["subject", "body"]].to_dict("records"),
    "lists": lambda frame: [frame.subject.tolist(), frame.body.tolist()],
}


@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("most_named", [1 << 20, 8], ids=["named", "looked up"])
def test_raw_text_is_the_columns_it_has(k, normalize, most_named, store, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "MOST_NAMED", most_named)
    model = HybridNB(k=k, normalize=normalize).fit(store)
    assert (model.model_.names is None) == (most_named == 8)
    X = vectorized(UNSEEN, store.names(np.arange(store.n_features)))
    model.save(tmp_path / "model")
    for one in (model, load_model(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for name, shape in SHAPES.items():
            given = shape(UNSEEN)
            for method in METHODS:
                np.testing.assert_array_equal(getattr(one, method)(given), getattr(one, method)(X), err_msg=name)
            np.testing.assert_array_equal(one.transform(given).toarray(), X[:, one.get_support(indices=True)])


@pytest.mark.filterwarnings("ignore:.*collision")
@pytest.mark.parametrize("settings", [{"hashed": 6}, {"tfidf": True}, {"tfidf": True, "norm": None}], ids=str)
@pytest.mark.parametrize("most_named", [1 << 20, 8])
def test_hashed_and_weighed_texts(settings, most_named, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "MOST_NAMED", most_named)
    regions = ["subject", "body"]
    dataset = ingest(TRAINING, tmp_path / "store", regions=regions, label_column="label", **settings)
    for k in (None, 4):
        model = HybridNB(k=k).fit(dataset)
        model.save(tmp_path / f"model {k}")
        loaded = load_model(tmp_path / f"model {k}")
        np.testing.assert_array_equal(loaded.predict_proba(TRAINING[regions]), model.predict_proba(dataset))
        assert loaded.score(TRAINING[regions], TRAINING.label) > 0.8


def test_words_are_named_even_where_they_are_too_many_for_a_model(store, monkeypatch):
    expected = HybridNB().fit(store).top_features(4)
    monkeypatch.setattr(base, "MOST_NAMED", 8)
    model = HybridNB().fit(store)
    assert model.model_.names is None
    assert model.top_features(4) == expected
    assert any(name.startswith("subject:") for name, _ in expected["yes"])


def test_a_vocabulary_that_is_gone_is_said_to_be(store, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "MOST_NAMED", 8)
    HybridNB().fit(store).save(tmp_path / "model")
    (vocabulary,) = (tmp_path / "model").glob("vocabulary-*")
    vocabulary.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        load_model(tmp_path / "model")


def test_counts_are_shared_with_naive_bayes(tmp_path):
    dataset = ingest(TRAINING, tmp_path / "store", regions=["subject", "body"], label_column="label")
    alone = HybridNB(k=4).fit(dataset)
    assert alone.statistic(dataset) == SparseMultinomialNB().statistic(dataset)
    naive = SparseMultinomialNB(4).fit(dataset)
    assert naive.provenance_["reused"]
    again = HybridNB(k=4).fit(dataset)
    np.testing.assert_array_equal(again.theta_, alone.theta_)
    assert again.provenance_["reads"] < alone.provenance_["reads"]
    assert again.provenance_["fingerprint"] == dataset.fingerprint
    assert again.provenance_["fit"]["gradient"] < 1e-10


def test_plans_check_parameters_and_read_nothing(store):
    plan = nfs.plan(store, HybridNB())
    assert len(plan.passes) == 2
    with pytest.raises(InputError, match="regions=3, and X has texts of 2"):
        nfs.plan(store, HybridNB(regions=3))
