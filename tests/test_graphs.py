"""Lazy tasks: that they are Dask's own, named by what they do, and that no value is taken for a name."""

from __future__ import annotations

import operator
import pickle
import time

import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from dask import delayed
from dask.task_spec import GraphNode
from scipy import sparse

from nfs_dask import SparseCentroid, SparseMultinomialNB, TextVectorizer, ingest, load_model
from nfs_dask.graphs import lazy_array, lazy_tasks, lazy_tree, lazy_value

X = np.random.default_rng(0).poisson(1.0, (30, 6))
Y = np.arange(30) % 2
TEXTS = ["a fine film", "a dull film", "fine and fun", "dull, dull"] * 3


def lazy_x(scale=1):
    return da.from_array(X * scale, chunks=(8, 4))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    read = SparseMultinomialNB(3).fit(ingest(TEXTS, folder / "texts.zarr", labels=[0, 1, 0, 1] * 3))
    return {"rows": SparseMultinomialNB(3).fit(X, Y), "fewer": SparseMultinomialNB(2).fit(X, Y), "texts": read}


LAZY = {
    "predict": lambda model, x: model.predict(x),
    "probabilities": lambda model, x: model.predict_proba(x),
    "transform": lambda model, x: model.transform(x),
    "restore": lambda model, x: model.inverse_transform(model.transform(x)),
}


def keys_of(lazy):
    return set(dict(lazy.__dask_graph__()))


@pytest.mark.parametrize("what", LAZY)
def test_equal_work_has_equal_names_and_other_work_others(what, models, tmp_path):
    first, again = LAZY[what](models["rows"], lazy_x()), LAZY[what](models["rows"], lazy_x())
    assert keys_of(first) == keys_of(again)
    copied = pickle.loads(pickle.dumps(models["rows"]))
    assert LAZY[what](copied, lazy_x()).name == first.name
    models["rows"].save(tmp_path / "m")
    loaded = [LAZY[what](load_model(tmp_path / "m"), lazy_x()).name for _ in range(2)]
    assert loaded[0] == loaded[1]
    assert LAZY[what](SparseMultinomialNB(3).fit(X, Y), lazy_x()).name == first.name
    assert LAZY[what](models["fewer"], lazy_x()).name != first.name
    expected = LAZY[what](models["rows"], X)
    found = first.compute(scheduler="sync")
    np.testing.assert_array_equal(*(part.toarray() if sparse.issparse(part) else part for part in (found, expected)))


def test_other_questions_and_other_data_have_other_names(models):
    names = [
        models["rows"].predict(lazy_x()).name,
        models["rows"].predict(lazy_x(2)).name,
        models["rows"].predict_proba(lazy_x()).name,
        models["rows"].predict_log_proba(lazy_x()).name,
        models["rows"].transform(lazy_x()).name,
    ]
    assert len(set(names)) == len(names)


def test_texts_have_names_too(models):
    bag = db.from_sequence(TEXTS, npartitions=3)
    assert models["texts"].predict(bag).name == models["texts"].predict(bag).name
    other = db.from_sequence(TEXTS[1:], npartitions=3)
    assert models["texts"].predict(bag).name != models["texts"].predict(other).name
    read = TextVectorizer().fit(bag)
    assert read.transform(bag).name == TextVectorizer().fit(bag).transform(bag).name
    assert read.transform(bag).name != TextVectorizer(lowercase=False).fit(bag).transform(bag).name


def test_centers_have_names_too():
    fitted = [SparseCentroid(2, metric=metric).fit(X, Y) for metric in ("manhattan", "euclidean", "euclidean")]
    l1, l2, again = [model.predict(lazy_x()).name for model in fitted]
    assert l1 != l2 == again


@pytest.mark.parametrize("what", LAZY)
def test_tasks_are_those_of_dask_and_no_tuples(what, models):
    graph = dict(LAZY[what](models["rows"], lazy_x()).__dask_graph__())
    own = {
        key: task for key, task in graph.items() if str(key[0] if isinstance(key, tuple) else key).startswith("nfs-")
    }
    assert len(own) > 4
    assert all(isinstance(task, GraphNode) and task.key == key for key, task in own.items())


def test_no_value_is_taken_for_a_name_or_for_a_task():
    given = lazy_tasks("numbers", [(operator.neg, 3)], [])
    values = [given[0].key, (operator.add, 1, 2), [given[0].key, "x"], "numbers", np.arange(3), None]
    lazy = lazy_tasks("kept", [(lambda value, _: [value], value, given[0]) for value in values], given)
    for value, found in zip(values, lazy, strict=True):
        np.testing.assert_equal(found.compute(scheduler="sync"), [value])
    assert lazy_value("kept", (operator.add, 1, 2)).compute() == (operator.add, 1, 2)


def test_lazy_values_are_computed_alone_and_in_lists():
    parts = lazy_tasks("squares", [(pow, n, 2) for n in range(20)], [])
    both = lazy_tasks("both", [(lambda one, several: one + sum(several), parts[2], parts[3:5])], parts[:1])
    assert both[0].compute(scheduler="sync") == 4 + 9 + 16
    assert lazy_tree("total", parts, sum, 3).compute(scheduler="sync") == sum(n * n for n in range(20))
    assert lazy_tree("total", parts[:1], sum, 3) is parts[0]
    other = delayed(5, name="five")
    assert lazy_tasks("sum", [(operator.add, other, parts[3])], [other, parts[0]])[0].compute(scheduler="sync") == 14


def test_an_array_of_tasks_on_a_cluster(cluster):
    rows = lazy_array("rows", [(np.full, (2, 3), n) for n in range(3)], [], ((2, 2, 2), (3,)), np.zeros((0, 0), int))
    assert rows.sum().compute() == 6 * (0 + 1 + 2)


def test_thousands_of_tasks_are_made_at_once():
    """Neither their graphs nor their names are made one by one."""
    started = time.thread_time()
    parts = lazy_tasks("many", [(int, n) for n in range(10_000)], [])
    again = lazy_tasks("more", [(int, part) for part in parts], parts[:1])
    assert time.thread_time() - started < 4  # measured: 0.5 s
    assert len({part.key for part in again}) == 10_000
