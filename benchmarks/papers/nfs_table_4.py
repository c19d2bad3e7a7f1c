"""The nine words that tell reviews best, with their weights: NFS Table 4.

Counts of the 25,000 training reviews of IMDB, k = 9, the smoothing by ten-fold cross-validation. Weights are those of
the words for "positive". The accuracy is that of the model on the 25,000 test reviews; the paper prints 70.2 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings
from benchmarks.papers.smoothing import cross_validated
from benchmarks.papers.tables import markdown
from nfs_dask import SparseMultinomialNB, TextVectorizer

TITLE = "The nine words of IMDB that tell most, with their weights"
K = 9
PRINTED = {
    "love": 0.69,
    "best": 0.72,
    "waste": -2.63,
    "excellent": 1.46,
    "bad": -1.36,
    "great": 0.88,
    "wonderful": 1.56,
    "worst": -2.29,
    "awful": -2.23,
}
PRINTED_ACCURACY = 0.702


def run(settings: Settings) -> dict[str, Any]:
    found = texts(settings.data, "imdb")
    vectorizer = TextVectorizer().fit(found.texts[found.train])
    X, X_test = (vectorizer.transform(found.texts[rows]) for rows in (found.train, ~found.train))
    y, y_test = found.y[found.train], found.y[~found.train]
    alpha = cross_validated(X, y, settings.seed)
    model = SparseMultinomialNB(k=K, alpha=alpha).fit(X, y)
    chosen = model.get_support(indices=True)
    weights = np.ravel(model.coef_.toarray())[chosen]
    words = vectorizer.get_feature_names_out()[chosen].tolist()
    return {
        "m": X.shape[1],
        "alpha": alpha,
        "weights": dict(zip(words, weights.tolist(), strict=True)),
        "accuracy": model.score(X_test, y_test),
        "gap": model.dual_gap_,
        "certified": model.certified_,
    }


def table(values: dict[str, Any]) -> str:
    ours = values["weights"]
    words = sorted(ours.keys() | PRINTED.keys(), key=lambda word: -ours.get(word, PRINTED.get(word, 0)))

    def cells(weights: dict[str, float]) -> list[str]:
        return [f"{weights[word]:.2f}" if word in weights else "" for word in words]

    rows = [
        ["printed", *cells(PRINTED), f"{PRINTED_ACCURACY:.3f}"],
        ["ours", *cells(ours), f"{values['accuracy']:.3f}"],
    ]
    proved = "proved to be the best nine" if values["certified"] else f"at most {values['gap']:.3g} nats from the best"
    return f"{markdown(['', *words, 'accuracy'], rows)}\n\nalpha = {values['alpha']:g}; {proved}"
