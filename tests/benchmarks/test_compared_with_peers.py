"""Questions about peers in their quick form, on texts and genes whose telling features are known."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from benchmarks.cases import CASES, npz
from benchmarks.loops import numpy_loop
from benchmarks.papers.__main__ import main
from benchmarks.papers.newsgroups import PAIRS
from benchmarks.papers.page import filled
from benchmarks.peers import good_genes, how_long, sets, ways_of_genes, ways_of_words
from benchmarks.peers.__main__ import PROGRAM, QUESTIONS
from benchmarks.peers.against import summed_up
from benchmarks.peers.apart import Answer, Heard
from benchmarks.peers.sets import Rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "peers"
PAGES = [ROOT / "docs" / name for name in ("compared.md", "benchmarks.md")]
TELLING = 10


@pytest.fixture(scope="module")
def planted() -> Rows:
    """Counts of 60 words, of which the first five are of one class and the next five of the other."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 2
    rates = np.full((2, 60), 0.5)
    rates[0, :5] = rates[1, 5:TELLING] = 2.0
    X = sparse.csr_array(rng.poisson(rates[y]))
    return Rows(X[:1000], y[:1000], X[1000:], y[1000:], np.arange(60).astype(str))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts and genes, in files as the real ones are."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    y = np.arange(300) % 2
    often = np.exp(rng.normal(0, 1, (2, 400)))
    texts = [" ".join(f"w{i:03d}" for i in rng.choice(400, 25, p=often[c] / often[c].sum())) for c in y]
    split = np.where(np.arange(300) % 3 == 2, "test", "train")
    columns = {"text": texts, "body": texts, "label": y, "split": split}
    columns["group"] = np.array(PAIRS[sets.PAIR])[y]
    for name in ("imdb", "newsgroups20", "mpqa"):
        table = pa.Table.from_pandas(pd.DataFrame(columns))
        pq.write_table(table.replace_schema_metadata({"classes": json.dumps(["a", "b"])}), folder / f"{name}.parquet")
    X = rng.normal(size=(60, 200)) + 2 * np.outer(y[:60], np.arange(200) < 10)
    np.savez(folder / "west.npz", X=X, y=y[:60], classes=["a", "b"])
    return folder


def asked(name: str, data: Path, results: Path) -> dict:
    told = ["--quick", "--data", str(data), "--results", str(results), "--generated", str(results)]
    assert main([name, *told], PROGRAM) == 0
    found = json.loads((results / f"{name}.json").read_text())
    assert found["command"] == f"python -m benchmarks.peers {name} --quick"
    assert set(QUESTIONS[name].LIBRARIES) <= set(found["versions"])
    assert "skipped" not in json.dumps(found["values"])
    return found["values"]


def test_no_words_gain_more_than_the_bound_and_ours_nearly_that(data, tmp_path):
    values = asked("which-words", data, tmp_path)
    for found in values.values():
        gains = {way: one["ks"]["9"]["gain"] for way, one in found["ways"].items()}
        assert max(gains.values()) <= 1 + 1e-9 and gains["sparse multinomial"] > 0.99
        assert found["ways"]["sparse multinomial"]["ks"]["9"]["common"] == 1
        assert set(found["left out"]) == {name for name, way in ways_of_words.WAYS.items() if way.slow}
    table = (tmp_path / "which-words.md").read_text()
    assert all(name in table for name in ways_of_words.WAYS)  # nothing is left out silently


def test_words_are_judged_by_texts_that_were_not_chosen_by(data, tmp_path):
    values = asked("good-words", data, tmp_path)
    for found in values.values():
        assert found["judged"] == 100
        ours = found["ways"]["sparse multinomial"]["ks"]["100"]
        assert all(one["accuracy"] > 0.7 for one in ours.values())
        assert set(ours) == {"naive Bayes", "logistic", "its own"}
        for way in found["ways"].values():
            for second in ("naive Bayes", "logistic"):
                one, beside = way["ks"]["100"][second], ours[second]["accuracy"]
                assert one["above ours"] == pytest.approx(one["accuracy"] - beside, abs=1e-12)


def test_genes_that_differ_are_good_ones(data, tmp_path):
    which, good = (asked(name, data, tmp_path)["west"] for name in ("which-genes", "good-genes"))
    assert set(which["ways"]) == set(good["ways"]) == set(ways_of_genes.WAYS) - set(which["left out"])
    for one in which["ways"].values():
        assert max(one["ks"]["9"]["gains"].values()) <= 1 + 1e-9
    assert which["ways"]["Mahalanobis centers"]["ks"]["9"]["gains"]["Mahalanobis"] == pytest.approx(1)
    assert which["ways"]["l1 centers"]["ks"]["9"]["gains"]["l1"] == pytest.approx(1)
    assert good["ways"]["l2 centers"]["ks"]["9"]["SVM"]["accuracy"] > 0.9


@pytest.mark.parametrize("way", [name for name, way in ways_of_words.WAYS.items() if not way.slow])
def test_telling_words_are_chosen(way, planted):
    few, all_ = ways_of_words.WAYS[way].choose(planted, (4, TELLING))
    assert len(few.support) == 4 and set(few.support) <= set(range(TELLING))
    assert all_.support.tolist() == list(range(TELLING))
    if all_.said is not None:
        assert (all_.said == planted.y_test).mean() > 0.9


def test_a_penalty_is_searched_for_that_leaves_a_tenth_too_many_at_most(planted):
    number = {}

    def fit(X, y, C):
        model = ways_of_words.l1_logistic(X, y, C)
        number[C] = np.count_nonzero(model.coef_)
        return model

    chosen = list(ways_of_words.searched(fit)(planted, (10, 40)))
    assert [len(one.support) for one in chosen] == [10, 40]
    assert any(10 <= n <= 11 for n in number.values()) and any(40 <= n <= 44 for n in number.values())


@pytest.mark.parametrize("way", how_long.QUICK_WAYS)
def test_each_way_finds_words_or_counts_of_all_documents(way, tmp_path):
    name = how_long.name_of(3_000, 2_000)
    how_long.write_all(name, tmp_path)
    ready, found = how_long.one(way, 3_000, 2_000, tmp_path)
    assert ready is None
    totals = numpy_loop(npz(name, tmp_path), CASES[name].n_features)
    if way.startswith(how_long.COUNTS):
        assert (found == totals).all()
    else:
        assert len(found) == 3 and (totals[:, found].sum(axis=0) > 0).all()


def test_what_ours_found_is_the_truth_and_not_who_answers_first():
    def found(value):
        return Heard([Answer(np.array(value), 1.0, 1.0, 1)])

    truth = {}
    assert "in common" not in how_long.told(found([1, 2]), "scikit-learn, chi2", truth) and not truth
    how_long.told(found([1, 3]), "nfs-dask, sparse multinomial", truth)
    assert how_long.told(found([1, 2]), "scikit-learn, chi2", truth)["in common"] == 0.5
    how_long.told(found([[1], [2]]), f"{how_long.COUNTS}nfs-dask", truth)
    with pytest.raises(AssertionError, match="polars"):
        how_long.told(found([[1], [3]]), f"{how_long.COUNTS}polars", truth)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ways_take_time_and_memory_in_processes_of_their_own(data, tmp_path):
    (found,) = asked("how-long", data, tmp_path).values()
    assert set(found) == set(how_long.QUICK_WAYS)
    assert all(one["seconds"] > 0 and one["nbytes"] > 50 << 20 for one in found.values())


def test_ways_beside_ours_are_counted():
    def cell(above: float) -> dict:
        return {"x": {"above ours": above, "error": 0.01}}

    ways = [{"9": cell(0.03), "100": cell(-0.01)}, {"9": cell(-0.05)}, {"9": {}}]
    sets = {
        f"set {i}": {"ks": (9, 100), "ways": {"ours": {"ks": {}}, "other": {"ks": ks}}} for i, ks in enumerate(ways)
    }
    row = summed_up(sets, "ours", "x").splitlines()[-1]
    assert row == "| other | 1 / 0 / 1 | 0 / 1 / 0 | +1.0 | 5.0 (set 1, k = 9) | 3.0 (set 0, k = 9) |"


def test_errors_of_splits_that_share_samples_are_larger():
    right = np.array([[0.9, 0.7, 0.8], [0.6, 0.7, 0.7]])
    of = [
        {name: {"ks": {"9": {"x": value}}, "ended": None} for name, value in zip("ab", one, strict=True)}
        for one in right.T
    ]
    parts = [{ways_of_genes.OURS: one["b"], "other": one["a"]} for one in of]
    found = good_genes.together(parts, overlap=0.25)["other"]["ks"]["9"]["x"]
    apart = right[0] - right[1]
    assert found["above ours"] == pytest.approx(apart.mean())
    assert found["error"] == pytest.approx(np.sqrt(apart.var(ddof=1) * (1 / 3 + 0.25)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_say_what_results_say(page):
    text = page.read_text()
    assert any(f"<!-- {name} -->" in text for name in QUESTIONS)
    assert filled(text, QUESTIONS, RESULTS) == text
