import numpy as np
import pandas as pd
import pytest

from benchmarks.papers import hyb_figure_1, hyb_figure_2, newsgroups
from benchmarks.papers.experiment import Settings

GROUPS = "tea", "milk"


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Messages of two groups, whose words differ."""
    rng = np.random.default_rng(0)
    often = np.exp(rng.normal(0, 1, (2, 60)))
    often /= often.sum(axis=1, keepdims=True)

    def text(group: int, n: int) -> str:
        return " ".join(f"word{i}" for i in rng.choice(60, n, p=often[group]))

    rows = [{"group": GROUPS[i % 2], "subject": text(i % 2, 3), "body": text(i % 2, 25)} for i in range(120)]
    pd.DataFrame(rows).to_parquet(tmp_path / "newsgroups20.parquet")
    monkeypatch.setattr(newsgroups, "PAIRS", {"tea and milk": GROUPS})
    monkeypatch.setattr(newsgroups, "QUICK_PAIRS", ("tea and milk",))
    newsgroups._frame.cache_clear()
    return Settings(tmp_path, quick=True)


def test_tokens_are_stems_and_two_words_for_numbers_and_addresses():
    assert list(newsgroups.tokens("mail me@x.org 12.5 times, running a cars")) == [
        "mail", "EMAILADDR", "NUMBER", "time", "run", "car",
    ]  # fmt: skip


def test_any_first_rows_of_a_half_have_both_groups_in_proportion():
    y = np.array(["a"] * 30 + ["b"] * 70)
    train, test = newsgroups.halves(y, 3)
    assert sorted([*train, *test]) == list(range(100))
    for n in (10, 20, 50):
        assert abs((y[train[:n]] == "a").sum() - 0.3 * n) <= 1


def test_words_that_are_not_known_are_those_of_no_training_message(settings):
    messages = newsgroups.pair(settings, "tea and milk")
    known = np.array([4, 7])
    few = messages.knowing(known)
    assert few.n_words == 2
    assert (few.together != messages.together[:, known]).nnz == 0
    assert few.apart.sum() == few.together.sum()


def test_errors_fall_with_more_messages_and_are_shown(settings):
    values = hyb_figure_1.run(settings)
    errors = values["tea and milk"]["errors"]
    for words in hyb_figure_1.WORDS:
        few, many = (hyb_figure_1.mean(errors, words, "hybrid, R = 2", size) for size in ("10", "half"))
        assert many < 0.2 and many < few
    shown = hyb_figure_1.table(values)
    assert f"{many:.3f}" in shown and "of 1" in shown
    assert len(hyb_figure_1.draw(values).axes[0].lines) == len(hyb_figure_1.SHOWN)


def test_the_surest_messages_are_decided_best(settings):
    values = hyb_figure_2.run(settings)
    ways = values["tea and milk"]["ways"]
    for way in hyb_figure_2.SHOWN:
        accuracy = ways[way]["accuracy"]
        assert accuracy[19] >= accuracy[-1] > 0.8
    assert hyb_figure_2.coverage_at([1.0] * 40 + [0.9] * 60, 0.95) == 0.4
    assert "coverage at 95%" in hyb_figure_2.table(values)
    assert len(hyb_figure_2.draw(values).axes[0].lines) == len(hyb_figure_2.SHOWN)
