"""Genes chosen by sparse l1 centers, then a linear SVM on them, beside scikit-learn's l1 logistic regression.

    python benchmarks/genes.py [--data DIR] [--splits 50] [--sets chowdary singh]

Each random split trains on 80 % of each class. Centers choose on the values as they were measured. The SVM (libsvm's,
C = 1) gets the chosen genes standardised: on raw ones it is no better, and may need seconds to converge. Logistic
regression (liblinear) sees all genes standardised, which is not on its clock. Its C is bisected until it chooses about
k genes, and it is timed twice: with all fits of that search, and as if C had been known. Its optimum has no more genes
than rows; where it has more here, it has stopped within its tolerance. Times are medians over the splits.

References: SC (Calafiore and Fracastoro 2019) section 6.2, Table 2, Figure 2.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from choosing import Comparison, Split, data_folder, timed
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from nfs_dask import SparseCentroid
from nfs_dask.methods.number_of_features import number_to_keep

SHARES = (0.0005, 0.001, 0.005, 0.01, 0.02)


def compare(split: Split, comparison: Comparison) -> None:
    """All shares of one split."""
    standardised = StandardScaler().fit_transform(split.X)
    for share in SHARES:
        k = number_to_keep(share, split.X.shape[1])
        centers, took = timed(partial(SparseCentroid(k, metric="manhattan").fit, split.X, split.y))
        comparison.chosen("l1 centers, SVM", share, split, centers.get_support(indices=True), took)
        comparison.alone("l1 centers alone", share, split, centers, took)
        comparison.l1_logistic("l1 logistic, SVM", share, split, standardised, k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--sets", nargs="+", default=["chowdary", "singh"])
    options = parser.parse_args()
    for name in options.sets:
        with np.load(options.data / f"{name}.npz") as file:
            X, y = file["X"], file["y"]
        SparseCentroid(1, metric="manhattan").fit(X, y)  # compiles
        comparison = Comparison(lambda: make_pipeline(StandardScaler(), SVC(kernel="linear")), balanced_accuracy_score)
        for rows in StratifiedShuffleSplit(options.splits, test_size=0.2, random_state=0).split(X, y):
            compare(Split.of(X, y, rows), comparison)
        print(f"\n{name}: {X.shape[0]} x {X.shape[1]:,}, {options.splits} splits\n")
        comparison.print()


if __name__ == "__main__":
    main()
