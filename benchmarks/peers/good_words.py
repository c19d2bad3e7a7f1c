"""How good with k words: accuracy on texts that were not chosen by, of the same classifiers on the words of each way.

Multinomial naive Bayes sees counts of the chosen words, a logistic regression with an l2 penalty (C = 1) sees
log(1 + count); both are scikit-learn's. Beside them is what each way says by itself. Texts to judge by are the test
split of the set, or a fifth where that is too small. The same texts judge all ways: two of them differ where the
difference in accuracy is more than twice its standard error over these texts, else they are level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.peers import ways_of_words
from benchmarks.peers.against import beside
from benchmarks.peers.sets import SETS, Rows
from benchmarks.peers.ways_of_words import ALPHA, OURS, Choices, choices
from benchmarks.peers.which_words import left_out_of

TITLE = "How good with k words: accuracy of the same classifiers on the words of each way, and of its own"
LIBRARIES = ways_of_words.LIBRARIES
SHOWN = ("imdb", "newsgroups, PC and Mac", "imdb, 2,000 reviews")  # on the page
QUICK_SETS = ("newsgroups, PC and Mac", "mpqa")
NAIVE_BAYES, LOGISTIC, OWN = "naive Bayes", "logistic", "its own"


def said_by(rows: Rows, support: np.ndarray) -> dict[str, np.ndarray]:
    """What the classifiers that all ways share say of the texts to judge by."""
    naive = MultinomialNB(alpha=ALPHA).fit(rows.X[:, support], rows.y)
    logistic = LogisticRegression(C=1.0, max_iter=1000).fit(rows.logs[:, support], rows.y)
    return {
        NAIVE_BAYES: naive.predict(rows.X_test[:, support]),
        LOGISTIC: logistic.predict(rows.logs_test[:, support]),
    }


def judged(found: Choices) -> dict[str, Any]:
    """Accuracies by way, k and classifier, with how far they are from ours and the standard error of that."""
    rows, right = found.rows, dict[tuple[str, int, str], np.ndarray]()
    for way, said in found.ways.items():
        for k, answer in zip(found.ks, said.answers, strict=False):
            of = said_by(rows, answer.value.support)
            if answer.value.said is not None:
                of[OWN] = answer.value.said
            right |= {(way, k, name): labels == rows.y_test for name, labels in of.items()}
    ways: dict[str, Any] = {way: {"ks": {}, "ended": said.ended} for way, said in found.ways.items()}
    for (way, k, name), one in right.items():
        apart = one.astype(np.float64) - right[OURS, k, name]
        error = float(apart.std() / np.sqrt(len(apart)))
        cell = {"accuracy": float(one.mean()), "above ours": float(apart.mean()), "error": error}
        ways[way]["ks"].setdefault(str(k), {})[name] = cell
    n, m = rows.X.shape
    return {"n": n, "m": m, "judged": len(rows.y_test), "ks": found.ks, "ways": ways, "left out": found.left_out}


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(settings.either(QUICK_SETS, SETS), lambda name: judged(choices(settings, name)))


def _cell(found: dict[str, Any], k: int) -> str:
    of = found["ks"].get(str(k))
    if of is None:
        return str(found["ended"])
    return " / ".join(f"{of[name]['accuracy']:.3f}" if name in of else "-" for name in (NAIVE_BAYES, LOGISTIC, OWN))


def _table(name: str, found: dict[str, Any]) -> str:
    head = [f"{name}: {found['n']:,} x {found['m']:,}, {found['judged']:,} judge"]
    rows = [[way, *(_cell(one, k) for k in found["ks"])] for way, one in found["ways"].items()]
    return markdown([*head, *(f"k = {k:,}" for k in found["ks"])], rows) + left_out_of(found)


def table(values: dict[str, Any]) -> str:
    return _shown(values, list(there(values)))


def summary(values: dict[str, Any]) -> str:
    return _shown(values, [name for name in SHOWN if name in there(values)])


def _shown(values: dict[str, Any], names: list[str]) -> str:
    """Accuracies of some sets, and of all sets how they are beside ours."""
    sets = there(values)
    parts = [f"{NAIVE_BAYES} / {LOGISTIC} / {OWN}:", *(_table(name, sets[name]) for name in names)]
    return "\n\n".join([*parts, *beside(sets, OURS, (NAIVE_BAYES, LOGISTIC, OWN))]) + "\n" + left_out(values)
