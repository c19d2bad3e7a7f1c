"""A model takes features by their names: other ones in their places are refused, and the same are found elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from nfs_dask.errors import DataWarning, InputError
from tests.helpers.commands import as_json, run

TEA = ["green tea leaf", "black tea pot", "tea leaf cup", "herbal tea pot"] * 5
COFFEE = ["black coffee bean", "coffee bean roast", "espresso coffee cup", "coffee roast pot"] * 5
TRAIN, LABELS = TEA + COFFEE, ["tea"] * 20 + ["coffee"] * 20
TEST = ["assam tea leaf leaf", "zesty coffee bean", "yerba tea pot", "arabica coffee roast", "tea arabica"] * 3
TRUTH = ["tea", "coffee", "tea", "coffee", "tea"] * 3
MOST = 8  # features of each store: both have the most frequent words of their own texts

GENES = [f"gene{i}" for i in range(30)]
rng = np.random.default_rng(3)
CELLS = rng.poisson(1.0, (60, 30))
TISSUE = np.where(rng.random(60) < 0.5, "liver", "lung")
CELLS[TISSUE == "lung", :6] += rng.poisson(6.0, ((TISSUE == "lung").sum(), 6))
ORDER = rng.permutation(30)

ASKED = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score", "explain"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    made = {"folder": folder}
    for name, texts, labels in (("train", TRAIN, LABELS), ("test", TEST, TRUTH)):
        made[name] = nfs.ingest(texts, folder / f"{name}.zarr", labels=labels, max_features=MOST)
    nfs.SparseMultinomialNB(k=4).fit(made["train"]).save(folder / "tea.model")
    return made


def models(stores):
    return nfs.SparseMultinomialNB(k=4).fit(stores["train"]), nfs.load_model(stores["folder"] / "tea.model")


def refused(ask):
    with pytest.raises(InputError, match=r"is named '.*', and the model was fitted with '.*' there.*align\(model\)"):
        ask()


def quietly_aligned(store, model):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* that the model selected are not in these data", DataWarning)
        return store.align(model)


def words(store):
    return store.names(np.arange(store.n_features))


@pytest.mark.parametrize("loaded", [False, True])
def test_stores_of_two_vocabularies_are_refused_and_aligned(stores, loaded):
    model, test = models(stores)[loaded], stores["test"]
    assert test.n_features == stores["train"].n_features == MOST
    for method in ASKED:
        refused(lambda method=method: getattr(model, method)(test))
    refused(lambda: nfs.evaluate(model, test))
    aligned = quietly_aligned(test, model)
    missing = set(model.get_feature_names_out()) - set(words(test))
    counts = CountVectorizer(vocabulary=model.get_feature_names_out().tolist()).fit_transform(TEST).toarray()
    counts[:, [name in missing for name in model.get_feature_names_out()]] = 0
    np.testing.assert_array_equal(model.transform(aligned).toarray(), counts)
    log_probability = model.to_frame().set_index("feature").filter(like="log_probability_")
    log_prior = np.log([0.5, 0.5])
    scores = counts @ log_probability.loc[model.get_feature_names_out()].to_numpy() + log_prior
    expected = np.array(["coffee", "tea"])[scores.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(aligned), expected)
    np.testing.assert_allclose(model.decision_function(aligned), scores[:, 1] - scores[:, 0], atol=1e-12)
    right = np.mean(expected == np.array(TRUTH))
    assert model.score(aligned) == nfs.evaluate(model, aligned).accuracy == pytest.approx(right)
    assert right > 0.9
    explained = model.explain(aligned)
    np.testing.assert_allclose(explained.decision, scores[:, 1] - scores[:, 0], atol=1e-12)


def test_all_features_aligned_are_scikit_learns_counts(stores):
    model = nfs.SparseMultinomialNB(k="all").fit(stores["train"])
    vectorizer = CountVectorizer(vocabulary=words(stores["train"]))
    there = np.isin(words(stores["train"]), words(stores["test"]))
    peer = MultinomialNB().fit(vectorizer.transform(TRAIN), LABELS)
    with pytest.warns(DataWarning, match=rf"{(~there).sum()} of the {MOST} features"):
        aligned = stores["test"].align(model)
    expected = peer.predict_proba(vectorizer.transform(TEST).toarray() * there)
    np.testing.assert_allclose(model.predict_proba(aligned), expected, rtol=1e-9)


def test_commands_refuse_and_align(stores):
    folder = stores["folder"]
    model, test = folder / "tea.model", folder / "test.zarr"
    for command in (["predict", model, test], ["evaluate", model, test], ["explain", model, "--file", test]):
        said = run(*command, code=3).output
        assert "the model was fitted with" in said and "--align" in said, said
    run("report", model, folder / "r.html", "--data", test, code=3)
    assert not (folder / "r.html").exists()
    found = as_json("predict", model, test, "--align")
    assert np.mean(np.array(found["labels"]) == np.array(TRUTH)) > 0.9
    assert as_json("evaluate", model, test, "--align")["accuracy"] > 0.9
    assert as_json("explain", model, "--file", test, "--align")
    run("report", model, folder / "r.html", "--data", test, "--align")
    assert as_json("predict", model, folder / "train.zarr")["n"] == len(TRAIN)


def test_another_width_says_that_names_can_be_aligned(stores, tmp_path):
    model = models(stores)[1]
    narrow = nfs.ingest(TEST, tmp_path / "narrow.zarr", labels=TRUTH, max_features=MOST - 2)
    with pytest.raises(InputError, match=rf"X has {MOST - 2} features, .* {MOST} features .*align\(model\)"):
        model.predict(narrow)
    assert model.score(quietly_aligned(narrow, model)) > 0.9


def test_the_vocabulary_of_the_training_data_needs_no_alignment(stores, tmp_path):
    model = models(stores)[1]
    same = nfs.ingest(TEST, tmp_path / "same.zarr", labels=TRUTH, vocabulary=words(stores["train"]))
    np.testing.assert_array_equal(model.predict(same), model.predict(TEST))


def test_documents_of_another_vocabulary_are_not_added(stores, tmp_path):
    for first, second in (("train", "test"), ("test", "train")):
        model = nfs.SparseMultinomialNB(k=4).fit(stores[first])
        before = model.predict_proba(stores[first])
        for change in (model.partial_fit, model.forget):
            with pytest.raises(InputError, match="the model was fitted with '.*' there"):
                change(stores[second])
        np.testing.assert_array_equal(model.predict_proba(stores[first]), before)
    same = nfs.ingest(TEST, tmp_path / "same.zarr", labels=TRUTH, vocabulary=words(stores["train"]))
    added = nfs.SparseMultinomialNB(k="all").fit(stores["train"]).partial_fit(same)
    vectorizer = CountVectorizer(vocabulary=words(stores["train"]))
    peer = MultinomialNB().fit(vectorizer.transform(TRAIN + TEST), LABELS + TRUTH)
    np.testing.assert_allclose(added.predict_proba(same), peer.predict_proba(vectorizer.transform(TEST)), rtol=1e-9)


def test_a_difference_outside_of_the_selected_features_is_not_added():
    names = list("abcdef")
    X = np.array([[9, 0, 1, 2, 1, 1], [8, 1, 1, 1, 2, 1], [0, 9, 1, 2, 1, 1], [1, 8, 1, 1, 2, 1]])
    y = [0, 0, 1, 1]
    coordinates = {"gene": names}
    xarray = pytest.importorskip("xarray")
    given = nfs.open_dataset(xarray.DataArray(X, dims=("cell", "gene"), coords=coordinates), labels=y)
    swapped = nfs.open_dataset(
        xarray.DataArray(X, dims=("cell", "gene"), coords={"gene": [*names[:4], "f", "e"]}), labels=y
    )
    model = nfs.SparseMultinomialNB(k=2).fit(given)
    assert model.get_feature_names_out().tolist() == ["a", "b"]
    assert model.score(swapped) == 1.0  # these two are where they were
    with pytest.raises(InputError, match="column 4 is named 'f', and the model was fitted with 'e' there"):
        model.partial_fit(swapped)


def test_a_store_that_is_gone_does_not_keep_batches_from_being_added(tmp_path, stores):
    import shutil

    vocabulary = words(stores["train"])
    first = nfs.ingest(TRAIN, tmp_path / "first.zarr", labels=LABELS, vocabulary=vocabulary)
    model = nfs.SparseMultinomialNB(k=4).fit(first)
    shutil.rmtree(tmp_path / "first.zarr")
    with pytest.raises(InputError, match="the model was fitted with '.*' there"):
        model.partial_fit(stores["test"])
    model.partial_fit(nfs.ingest(TEST, tmp_path / "second.zarr", labels=TRUTH, vocabulary=vocabulary))
    assert model.class_count_.sum() == len(TRAIN) + len(TEST)


def test_a_store_that_was_made_anew_in_its_place_is_looked_at(tmp_path):
    model = nfs.SparseMultinomialNB(k=4).fit(nfs.ingest(TRAIN, tmp_path / "s.zarr", labels=LABELS, max_features=MOST))
    anew = nfs.ingest(TEST, tmp_path / "s.zarr", labels=TRUTH, max_features=MOST, overwrite=True)
    refused(lambda: model.predict(anew))
    with pytest.raises(InputError, match="the model was fitted with '.*' there"):
        model.partial_fit(anew)


def anndata_of(columns, X=CELLS):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    obs = pandas.DataFrame({"tissue": TISSUE}, index=[f"cell{i}" for i in range(len(TISSUE))])
    return anndata.AnnData(sparse.csr_matrix(X), obs=obs, var=pandas.DataFrame(index=columns))


def xarray_of(columns, X=CELLS):
    return pytest.importorskip("xarray").DataArray(X, dims=("cell", "gene"), coords={"gene": columns})


def chunked_of(columns, X=CELLS):
    return xarray_of(columns, pytest.importorskip("dask.array").from_array(X, chunks=(25, 30)))


def sparse_of(columns, X=CELLS):
    return xarray_of(columns, pytest.importorskip("sparse").COO.from_numpy(X))


METHODS = [
    nfs.SparseMultinomialNB(k=5),
    nfs.SparseBernoulliNB(k=5, binarize=2.0),
    nfs.SparseCentroid(k=5),
    nfs.SparseCentroid(k=5, metric="manhattan"),
    nfs.SparseCentroid(k=5, metric="mahalanobis"),
    nfs.HybridNB(k=5),
]


@pytest.mark.parametrize("model", METHODS, ids=str)
def test_genes_in_another_order_are_refused_and_aligned(model, tmp_path):
    model = model.fit(anndata_of(GENES), TISSUE)
    model.save(tmp_path / "m")
    names = np.array(GENES)[ORDER].tolist()
    moved = anndata_of(names, CELLS[:, ORDER])
    moved.write_h5ad(tmp_path / "moved.h5ad")
    moved.write_zarr(tmp_path / "moved.zarr")
    expected = model.predict(CELLS)
    for fitted in (model, nfs.load_model(tmp_path / "m")):
        for given in (moved, *(nfs.open_dataset(tmp_path / f"moved.{end}") for end in ("h5ad", "zarr"))):
            refused(lambda fitted=fitted, given=given: fitted.predict(given))
            aligned = (given if isinstance(given, nfs.Dataset) else nfs.open_dataset(given)).align(fitted)
            np.testing.assert_array_equal(fitted.predict(aligned), expected)
    where = nfs.open_dataset(tmp_path / "moved.h5ad", labels="tissue", where={"tissue": "lung"}).align(model)
    found = as_json("predict", tmp_path / "m", tmp_path / "moved.h5ad", "--align", "--where", "tissue=lung")
    assert found["rows"] == np.flatnonzero(TISSUE == "lung").tolist()
    assert found["labels"] == model.predict(where).tolist() == expected[TISSUE == "lung"].tolist()


@pytest.mark.parametrize("make", [xarray_of, chunked_of, sparse_of])
def test_coordinates_of_xarray_are_names(make, tmp_path):
    model = nfs.SparseMultinomialNB(k=5).fit(make(GENES), TISSUE)
    assert set(model.get_feature_names_out()) <= set(GENES)
    moved = make(np.array(GENES)[ORDER].tolist(), CELLS[:, ORDER])
    model.save(tmp_path / "m")
    for fitted in (model, nfs.load_model(tmp_path / "m")):
        for method in ("predict", "transform"):
            with pytest.raises(ValueError, match="the model was fitted with|same order as they were in fit"):
                getattr(fitted, method)(moved)
        refused(lambda fitted=fitted: nfs.evaluate(fitted, moved, TISSUE))
        np.testing.assert_array_equal(np.asarray(fitted.predict(make(GENES))), model.predict(make(GENES)))
        aligned = nfs.open_dataset(moved).align(fitted)
        np.testing.assert_array_equal(fitted.predict(aligned), np.asarray(model.predict(make(GENES))))
    with pytest.raises(ValueError, match="the model was fitted with|same order as they were in fit"):
        model.partial_fit(moved, TISSUE)


def test_words_of_two_vectorizers_are_told_apart():
    ours, theirs = (nfs.TextVectorizer(max_features=MOST) for _ in range(2))
    model = nfs.SparseMultinomialNB(k=4).fit(ours.fit_transform(TRAIN), LABELS)
    refused(lambda: model.predict(theirs.fit_transform(TEST)))
    assert model.score(ours.transform(TEST), TRUTH) > 0.9


def test_data_without_names_are_taken_by_their_places():
    model = nfs.SparseMultinomialNB(k=5).fit(anndata_of(GENES), TISSUE)
    plain = model.predict(CELLS)
    unnamed = anndata_of([str(i) for i in range(30)])  # as AnnData numbers columns without names
    np.testing.assert_array_equal(model.predict(unnamed), plain)
    np.testing.assert_array_equal(nfs.SparseMultinomialNB(k=5).fit(CELLS, TISSUE).predict(anndata_of(GENES)), plain)


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_what_cannot_be_aligned_is_refused(stores, tmp_path):
    model, test = models(stores)[1], stores["test"]
    with pytest.raises(InputError, match="no names of columns"):
        nfs.open_dataset(CELLS).align(model)
    with pytest.raises(InputError, match="none of the features"):
        nfs.open_dataset(anndata_of(GENES)).align(model)
    with pytest.raises(InputError, match="no distinct names"):
        test.align(nfs.SparseMultinomialNB(k=2).fit(CELLS, TISSUE))
    with pytest.raises(InputError, match="no fitted estimator"):
        test.align(nfs.SparseMultinomialNB())
    with pytest.raises(InputError, match="also depends on features that it has not selected"):
        test.align(nfs.ErrorRateSelector(k=2).fit(stores["train"]))
    with pytest.raises(InputError, match="tf-idf"):
        nfs.ingest(TEST, tmp_path / "t.zarr", tfidf=True).align(model)
    twice = anndata_of([*model.get_feature_names_out(), *GENES[5:], model.get_feature_names_out()[0]])
    with pytest.raises(InputError, match="columns 0 and 29 are both named"):
        nfs.open_dataset(twice).align(model)


def test_a_cluster_aligns_the_same(stores, cluster):
    model = nfs.load_model(stores["folder"] / "tea.model").set_params(engine=nfs.DaskEngine())
    here = nfs.load_model(stores["folder"] / "tea.model").set_params(engine=nfs.SerialEngine())
    aligned = quietly_aligned(stores["test"], model)
    refused(lambda: model.predict(stores["test"]))
    np.testing.assert_array_equal(model.predict_proba(aligned), here.predict_proba(aligned))
    np.testing.assert_array_equal(model.transform(aligned).toarray(), here.transform(aligned).toarray())
