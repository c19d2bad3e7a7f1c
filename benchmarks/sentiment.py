"""Words chosen by sparse l2 centers, then a linear SVM on them, beside chi2, l1 logistic regression and naive Bayes.

    python benchmarks/sentiment.py [--data DIR] [--splits 50] [--sets mpqa sst2_phrases twitter100k]

Each random split trains on 80 % of each class; the vocabulary is that of all texts. l2 centers choose among counts
divided by their standard deviations in the training part, or by their variances; Mahalanobis centers with the total
covariance choose among plain counts what the former do, which is checked. Rescaling is on the clock of centers, not on
that of logistic regression, which sees plain counts, or counts divided by their deviations. Its C is bisected until it
chooses about k words, and it is timed twice: with all fits of that search, and as if C had been known.

The SVM (liblinear's, of the primal where there are more texts than words, to a tolerance of 0.001) gets the chosen
counts divided by their deviations, whoever chose them: accuracies are the same within 0.003 on plain counts and on
those divided by variances, and it trains several times faster. Times are medians over the splits.

References: SC (Calafiore and Fracastoro 2019) section 6.1, Table 1, Figure 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from choosing import Comparison, Split, data_folder, timed
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nfs_dask import SparseCentroid, SparseMultinomialNB, TextVectorizer
from nfs_dask.methods.number_of_features import number_to_keep

SHARES = {
    "mpqa": (0.001, 0.005, 0.01, 0.05, 0.1),
    "sst2_phrases": (0.0002, 0.0005, 0.001, 0.005, 0.01),
    "twitter100k": (0.0001, 0.0002, 0.0005, 0.001, 0.01),
}


def classifier() -> Any:
    return make_pipeline(StandardScaler(with_mean=False), LinearSVC(dual="auto", tol=1e-3, random_state=0))


def rescaled(X: Any, power: int = 1) -> Any:
    """Each feature divided by a power of its standard deviation; constant ones stay."""
    scaler = StandardScaler(with_mean=False).fit(X)
    scaler.scale_ **= power
    return scaler.transform(X)


def deviations(k: int, X: Any, y: np.ndarray) -> Any:
    return SparseCentroid(k).fit(rescaled(X), y)


def variances(k: int, X: Any, y: np.ndarray) -> Any:
    return SparseCentroid(k).fit(rescaled(X, 2), y)


def mahalanobis(k: int, X: Any, y: np.ndarray) -> Any:
    return SparseCentroid(k, metric="mahalanobis", covariance="total").fit(X, y)


def multinomial(k: int, X: Any, y: np.ndarray) -> Any:
    return SparseMultinomialNB(k).fit(X, y)


def by_chi2(k: int, X: Any, y: np.ndarray) -> Any:
    return SelectKBest(chi2, k=k).fit(X, y)


SELECTORS: dict[str, Callable[[int, Any, np.ndarray], Any]] = {
    "l2 centers by deviations": deviations,
    "l2 centers by variances": variances,
    "Mahalanobis centers": mahalanobis,
    "sparse multinomial": multinomial,
    "chi2": by_chi2,
}
CLASSIFIERS = {"Mahalanobis centers", "sparse multinomial"}  # of counts as they are: measured alone too


def compare(split: Split, shares: tuple[float, ...], comparison: Comparison) -> list[int]:
    """All shares of one split. For each, how many features two equal ways of choosing them choose otherwise."""
    counts, divided = split.X.astype(np.float64), rescaled(split.X)
    others = []
    for share in shares:
        k = number_to_keep(share, split.X.shape[1])
        supports = {}
        for name, select in SELECTORS.items():
            selector, took = timed(partial(select, k, split.X, split.y))
            supports[name] = selector.get_support(indices=True)
            comparison.chosen(f"{name}, SVM", share, split, supports[name], took)
            if name in CLASSIFIERS:
                comparison.alone(f"{name} alone", share, split, selector, took)
        others.append(len(np.setdiff1d(supports["Mahalanobis centers"], supports["l2 centers by deviations"])))
        comparison.l1_logistic("l1 logistic on counts, SVM", share, split, counts, k)
        comparison.l1_logistic("l1 logistic by deviations, SVM", share, split, divided, k)
    return others


def counted(path: Path) -> tuple[Any, np.ndarray]:
    """Counts and labels; of the tweets those with labels from emoticons, as the few others were labelled by hand."""
    import pandas as pd

    frame = pd.read_parquet(path)
    if path.stem == "twitter100k":
        frame = frame[frame["split"] == "train"]
    return TextVectorizer().fit_transform(frame["text"]), frame["label"].to_numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--sets", nargs="+", choices=SHARES, default=list(SHARES))
    options = parser.parse_args()
    for name in options.sets:
        X, y = counted(options.data / f"{name}.parquet")
        for select in SELECTORS.values():
            select(2, X, y)  # compiles
        comparison = Comparison(classifier, accuracy_score)
        others: list[int] = []
        for rows in StratifiedShuffleSplit(options.splits, test_size=0.2, random_state=0).split(y, y):
            others += compare(Split.of(X, y, rows), SHARES[name], comparison)
        print(f"\n{name}: {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries, {options.splits} splits\n")
        comparison.print()
        print(
            f"Mahalanobis centers and l2 centers by deviations chose the same in {others.count(0)} of {len(others)} "
            f"cases; at most {max(others)} features differ."
        )


if __name__ == "__main__":
    main()
