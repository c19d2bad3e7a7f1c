"""How good with k genes: balanced accuracy on samples that were not chosen by, over five random splits.

A linear SVM (C = 1) and nearest centroids, both of scikit-learn, see the chosen genes standardized. Beside them is what
each way says by itself. Splits are stratified, four fifths to choose and train by; means are of all splits. Two ways
differ where the mean difference is more than twice its standard error, which is corrected for splits that share
samples, else they are level.

References: Nadeau and Bengio (2003), Inference for the generalization error, for the standard error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC

from benchmarks.papers import datasets, two_stages
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.peers import ways_of_genes
from benchmarks.peers.against import beside
from benchmarks.peers.ways_of_genes import KS, OF_OTHERS, OURS, Samples, answers, asked

TITLE = "How good with k genes: balanced accuracy of the same classifiers on the genes of each way, and of its own"
LIBRARIES = ways_of_genes.LIBRARIES
SETS, QUICK_SETS = ("alon", "chowdary", "golub", "singh", "west"), ("west",)
SPLITS, QUICK_SPLITS = 5, 2
SVM, CENTROID, OWN = "SVM", "nearest centroid", "its own"


def said_by(samples: Samples, support: np.ndarray) -> dict[str, np.ndarray]:
    kept, judged = samples.standardized[:, support], samples.standardized_test[:, support]
    models = {SVM: SVC(kernel="linear"), CENTROID: NearestCentroid()}
    return {name: model.fit(kept, samples.y).predict(judged) for name, model in models.items()}


def split(samples: Samples, ks: list[int], quick: bool) -> dict[str, Any]:
    """Accuracies by way, k and classifier, of one split."""
    out: dict[str, Any] = {}
    for way in asked(quick):
        chosen, ended = answers(way, samples, ks)
        out[way] = {"ks": {}, "ended": ended}
        for k, one in zip(ks, chosen, strict=False):
            said = said_by(samples, one.support)
            if one.said is not None:
                said[OWN] = one.said
            right = {name: balanced_accuracy_score(samples.y_test, labels) for name, labels in said.items()}
            out[way]["ks"][str(k)] = right
    return out


def of(settings: Settings, name: str) -> dict[str, Any]:
    found = datasets.genes(settings.data, name)
    ks = [k for k in KS if k < found.X.shape[1]]
    rows = two_stages.splits(found.y, settings.either(QUICK_SPLITS, SPLITS), settings.seed)
    parts = [
        split(Samples(found.X[train], found.y[train], found.X[test], found.y[test]), ks, settings.quick)
        for train, test in rows
    ]
    overlap = len(rows[0][1]) / len(rows[0][0])
    n, m = found.X.shape
    skipped = [way for way in OF_OTHERS if way not in parts[0]]
    return {"n": n, "m": m, "splits": len(rows), "ks": ks, "ways": together(parts, overlap), "left out": skipped}


def together(parts: list[dict[str, Any]], overlap: float) -> dict[str, Any]:
    """Means over splits, and how far they are above ours; ``overlap``: samples that judge over those that train."""
    ways: dict[str, Any] = {way: {"ks": {}, "ended": found["ended"]} for way, found in parts[0].items()}
    for way, found in parts[0].items():
        for k, cell in found["ks"].items():
            for name in cell:
                right, ours = (np.array([part[one]["ks"][k][name] for part in parts]) for one in (way, OURS))
                error = np.sqrt((right - ours).var(ddof=1) * (1 / len(parts) + overlap))
                value = {"accuracy": right.mean(), "above ours": (right - ours).mean(), "error": error}
                ways[way]["ks"].setdefault(k, {})[name] = {key: float(one) for key, one in value.items()}
    return ways


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(settings.either(QUICK_SETS, SETS), lambda name: of(settings, name))


def _cell(found: dict[str, Any], k: int) -> str:
    cell = found["ks"].get(str(k))
    if cell is None:
        return str(found["ended"])
    return " / ".join(f"{cell[name]['accuracy']:.3f}" if name in cell else "-" for name in (SVM, CENTROID, OWN))


def _table(name: str, found: dict[str, Any]) -> str:
    head = [f"{name}: {found['n']:,} x {found['m']:,}, {found['splits']} splits", *(f"k = {k:,}" for k in found["ks"])]
    rows = [[way, *(_cell(one, k) for k in found["ks"])] for way, one in found["ways"].items()]
    skipped = f"\n\nNot tried in the quick form: {', '.join(found['left out'])}." if found["left out"] else ""
    return markdown(head, rows) + skipped


def table(values: dict[str, Any]) -> str:
    sets = there(values)
    parts = [f"{SVM} / {CENTROID} / {OWN}:", *(_table(name, found) for name, found in sets.items())]
    return "\n\n".join([*parts, *beside(sets, OURS, (SVM, CENTROID, OWN))]) + "\n" + left_out(values)
