"""How good a classifier is on documents with known labels, counted block by block.

References: Wilson (1927), score interval; docs/mathematics.md 9.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.containers import is_collection, unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.documents.document_source import Batch
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.graphs import added, computed, reduced
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.markup import fragment, html_table, shortened_name
from nfs_dask.models.model import Model
from nfs_dask.prediction.coverage import UNIT, CoverageCounts, Ranks, Reliability
from nfs_dask.prediction.coverage import judge as judge_confidence
from nfs_dask.prediction.hardest import Hardest, hardest_of
from nfs_dask.prediction.model_rows import TOGETHER, Asked, ModelTask, ReadDocuments, asked_in_turn
from nfs_dask.sources.chosen_rows import ChosenRows
from nfs_dask.sources.labels import encode, match_labels, merge_classes

MOST_NAMED = 5  # labels in a message
MOST_SHOWN = 20  # classes in a notebook
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Confidence:
    """How sure a model was of documents, and how often it was right when it was that sure. Of bounded size."""

    counts: CoverageCounts
    reliability: Reliability
    losses: Array  # (3,) Python ints: log loss and Brier score in units of 2**-30, and documents of unknown classes

    @classmethod
    def of(cls, model: Model, scores: Array, codes: Array) -> Confidence | None:
        """Of some documents by their scores; ``codes`` number their classes in the model, -1 for others.

        None of a model without probabilities, whose scores are no log odds, and of one that knows a single class.
        """
        if not model.has_probabilities or model.n_classes == 1:
            return None
        odds = model.log_odds(scores)
        odds = odds[:, 1] - odds[:, 0] if model.n_classes == 2 else odds
        confidence, right = judge_confidence(odds, codes, at_zero=0)
        posteriors = np.exp(model.log_posterior(scores))
        reliability = Reliability.of(posteriors, codes, classes=np.arange(model.n_classes))
        # As scikit-learn has them: probabilities are not below the precision of floats, and of two classes one counts.
        chance = np.maximum(posteriors[np.arange(len(codes)), codes], np.finfo(float).eps)
        missed = posteriors - (codes[:, None] == np.arange(model.n_classes))
        brier = (missed**2).sum(axis=1) / (2 if model.n_classes == 2 else 1)
        sums = [int(np.rint(part * UNIT).astype(np.int64).sum()) for part in (-np.log(chance), brier)]
        return cls(CoverageCounts.of(confidence, right), reliability, np.array([*sums, int((codes < 0).sum())], object))

    def __add__(self, other: Confidence) -> Confidence:
        return Confidence(self.counts + other.counts, self.reliability + other.reliability, self.losses + other.losses)

    def to_json(self) -> dict[str, Any]:
        """Accuracy over coverage, and calibration, as JSON values."""
        curve = self.counts.curve()
        log_loss, brier, unknown = self.losses
        losses = {} if unknown else {"log_loss": log_loss / UNIT / curve.n, "brier_score": brier / UNIT / curve.n}
        return {**losses, "coverage": curve.to_json(), **self.reliability.to_json()}


@dataclass(frozen=True)
class Evaluation:
    """What was predicted of documents of each class."""

    labels: Array  # (L,) the labels of the documents
    classes: Array  # (C,) the classes of the model
    confusion: Array  # (L, C) int64, documents with a label that were given a class
    seen: Seen = field(default_factory=Seen)  # of documents that were read: which were bad, and left out
    confidence: Confidence | None = None  # of models that have probabilities
    hardest: Hardest | None = None  # documents, where they were asked for
    ranks: Ranks | None = None  # of models of two classes

    @classmethod
    def nothing(cls, model: Model, keep: int = 0) -> Evaluation:
        """Of no documents."""
        hardest = Hardest(keep) if keep else None
        return cls(np.zeros(0, np.int64), model.classes, np.zeros((0, model.n_classes), np.int64), hardest=hardest)

    def __add__(self, other: Evaluation) -> Evaluation:
        same = self.labels.dtype == other.labels.dtype and np.array_equal(self.labels, other.labels)
        labels = self.labels if same else merge_classes([self.labels, other.labels])
        confusion = np.zeros((len(labels), len(self.classes)), np.int64)
        for one in (self, other):
            confusion[np.searchsorted(labels, one.labels)] += one.confusion
        confidence = _sum(self.confidence, other.confidence)
        hardest, ranks = _sum(self.hardest, other.hardest), _sum(self.ranks, other.ranks)
        return Evaluation(labels, self.classes, confusion, self.seen + other.seen, confidence, hardest, ranks)

    def __str__(self) -> str:
        low, high = self.interval
        each = "; ".join(
            f"{label}: precision {precision:.4f}, recall {recall:.4f}"
            for label, precision, recall in zip(self.labels.tolist(), self.precision, self.recall, strict=True)
        )
        return f"accuracy {self.accuracy:.4f} (95 % between {low:.4f} and {high:.4f}) on {self.n:,} documents\n{each}"

    def _repr_html_(self) -> str:
        """For notebooks: the accuracy, and the classes with most documents."""
        n, low_high = self.confusion.sum(axis=1), "95 % between {:.4f} and {:.4f}".format(*self.interval)
        largest = np.sort(np.argsort(-n, kind="stable")[:MOST_SHOWN]).tolist()
        rows = [
            [shortened_name(self.labels.tolist()[i]), f"{n[i]:,}", f"{self.precision[i]:.4f}", f"{self.recall[i]:.4f}"]
            for i in largest
        ]
        said = f"accuracy {self.accuracy:.4f} ({low_high}) on {self.n:,} documents"
        said += "" if len(rows) == len(self.labels) else f"; {len(rows)} of {len(self.labels):,} classes"
        return fragment(html_table(["class", "documents", "precision", "recall"], rows, said))

    @property
    def left_out(self) -> int:
        """Bad documents, which nothing was predicted of."""
        return self.seen.left_out.total()

    @property
    def n(self) -> int:
        """Documents that were judged."""
        return int(self.confusion.sum())

    @property
    def right(self) -> Array:
        """Documents of each label that were given it, (L,); none of a label that the model does not know."""
        same = self.labels[:, None] == self.classes[None, :]
        hits: Array = (self.confusion * same).sum(axis=1)
        return hits

    @property
    def accuracy(self) -> float:
        """Share of the documents that were given their label."""
        return float(self.right.sum() / self.n)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the accuracy, at 95 %."""
        return wilson(int(self.right.sum()), self.n)

    @property
    def recall(self) -> Array:
        """Share of the documents of each label that were given it; NaN for a label without documents."""
        return _share(self.right, self.confusion.sum(axis=1))

    @property
    def precision(self) -> Array:
        """Share of what was given a label that has it, (L,); NaN where nothing was."""
        given = dict(zip(self.classes.tolist(), self.confusion.sum(axis=0).tolist(), strict=True))
        return _share(self.right, np.array([given.get(label, 0) for label in self.labels.tolist()]))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have documents."""
        return float(np.nanmean(self.recall))

    @property
    def majority_accuracy(self) -> float:
        """Share of the documents that have the most frequent label."""
        return float(self.confusion.sum(axis=1).max() / self.n)

    @property
    def f1_macro(self) -> float:
        """Mean F1 score of the labels that documents have or were given."""
        given = dict(zip(self.classes.tolist(), self.confusion.sum(axis=0).tolist(), strict=True))
        both = self.confusion.sum(axis=1) + np.array([given.pop(label, 0) for label in self.labels.tolist()])
        others = sum(n > 0 for n in given.values())
        return float((2 * self.right[both > 0] / both[both > 0]).sum() / ((both > 0).sum() + others))

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        low, high = self.interval
        per_class = zip(self.labels.tolist(), self.confusion.sum(axis=1), self.precision, self.recall, strict=True)
        return {
            "n": self.n,
            "left_out": self.left_out,
            "accuracy": self.accuracy,
            "interval": [low, high],
            "balanced_accuracy": self.balanced_accuracy,
            "majority_accuracy": self.majority_accuracy,
            "f1_macro": self.f1_macro,
            "roc_auc": None if self.ranks is None else self.ranks.area,
            "log_loss": None,
            "brier_score": None,
            "labels": self.labels,
            "classes": self.classes,
            "confusion": self.confusion,
            "per_class": [
                {"label": label, "n": int(n), "precision": _number(p), "recall": _number(r)}
                for label, n, p, r in per_class
            ],
            **({} if self.confidence is None else self.confidence.to_json()),
        }


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    z2 = NORMAL_95**2
    center, width = right + z2 / 2, NORMAL_95 * math.sqrt(right * (n - right) / n + z2 / 4)
    return max(0.0, (center - width) / (n + z2)), min(1.0, (center + width) / (n + z2))


def evaluate(model: Model, asked: Asked, engine: Engine | None = None, keep: int = 0) -> Evaluation:
    """Compare what a model says of documents with their labels. Nothing grows with the documents.

    Parameters
    ----------
    model
        Of as many features as the dataset has, or that which reads the documents.
    asked
        A dataset, or documents, with labels; those the model does not know count as mistakes. Texts match the numbers
        that they write, see `match_labels`.
    engine
        Where they are read.
    keep
        So many documents that were hardest are kept with their entries and texts.
    """
    _check_labelled(asked, model)
    if isinstance(asked, Dataset) and asked.source.delayed is not None:
        trusted = asked.source.trusted_for("real")
        judge_one = partial(_judge_block, model.for_tasks(), asked.classes, keep, trusted)
        found = reduced("evaluation", judge_one, added, [asked.source.delayed])
    else:
        tasks = asked_in_turn(judge, asked, model, engine, together=TOGETHER, keep=keep)
        found = sum(tasks, Evaluation.nothing(model, keep))
    if isinstance(asked, ReadDocuments):
        found.seen.check(asked.documents.columns.where)
    check_known(found)
    if found.left_out:
        warn(str(found.seen), DataWarning)
    if found.hardest is not None and isinstance(asked, Dataset) and isinstance(asked.source, ChosenRows):
        return replace(found, hardest=found.hardest.numbered(asked.source.choice))
    return found


def _check_labelled(asked: Asked, model: Model) -> None:
    """Refuse what cannot be compared, as far as that is known before it is read."""
    if isinstance(asked, ReadDocuments):
        if not asked.documents.labelled:
            raise InputError("the documents have no labels to compare with; name the column that holds them")
        return
    if asked.classes is None:
        raise InputError(f"{asked!r} has no labels to compare with; name the column that holds them")
    match_labels(asked.classes, np.zeros(0, np.int64), model.classes)  # refuses those that cannot be compared


def _sum(one: Any, other: Any) -> Any:
    """The sum of what may not be there."""
    return other if one is None else one if other is None else one + other


def _positions(labels: Array, classes: Array) -> Array:
    """Where each label is among the classes of a model, -1 for those it does not know."""
    known = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([known.get(label, -1) for label in labels.tolist()], np.int64)


def check_known(found: Evaluation) -> None:
    """Refuse documents none of whose labels the model knows, and warn of labels that it does not know."""
    if not len(found.labels):
        raise InputError("there are no documents with labels to compare with; give at least one")
    counts = found.confusion.sum(axis=1)
    unknown = (_positions(found.labels, found.classes) < 0) & (counts > 0)
    if not unknown.any():
        return
    others = ", ".join(map(repr, found.labels[unknown].tolist()[:MOST_NAMED]))
    known = ", ".join(map(repr, found.classes.tolist()[:MOST_NAMED]))
    if unknown.sum() == (counts > 0).sum():
        raise InputError(
            f"the model knows none of the labels of the documents: they are {others}, and it was fitted to {known}; "
            "name the column with labels of the same classes"
        )
    warn(
        f"{int(counts[unknown].sum()):,} of {found.n:,} documents have labels the model was not fitted to, {others}; "
        "they count as mistakes",
        DataWarning,
    )


def judge(task: ModelTask) -> Evaluation:
    """One task: what the model says of some rows, beside their labels. Rows without a label do not count."""
    found = Evaluation.nothing(task.model, task.keep)
    for block, batch in task.read():
        if batch is None:
            found += _judge_block(task.model, task.rows.classes, task.keep, task.trusted, block)
            continue
        labels, codes = encode(batch.labels, batch.n_documents)
        scores = task.model.scores(block, task.trusted)
        judged_batch = judged(task.model, scores, labels, codes, task.keep, block, batch, task.trusted)
        judged_batch.seen.note(batch)
        found += judged_batch
    return found


def _judge_block(model: Model, labels: Array | None, keep: int, trusted: bool, block: Block) -> Evaluation:
    assert labels is not None, "what is compared has labels"
    return judged(model, model.scores(block, trusted), labels, block.codes, keep, block, trusted=trusted)


def judged(
    model: Model,
    scores: Array,
    labels: Array,
    codes: Array,
    keep: int = 0,
    block: Block | None = None,
    batch: Batch | None = None,
    trusted: bool = True,
) -> Evaluation:
    """What scores (n, C) say beside labels; ``codes`` (n,) number these, below 0 for documents without one.

    The other arguments are those of `hardest_of`.
    """
    labels, codes = match_labels(labels, codes, model.classes)
    true = _positions(labels, model.classes)
    hardest = hardest_of(scores, codes, true, labels, keep, block, batch, trusted) if keep else None
    labelled = codes >= 0
    scores, codes = scores[labelled], codes[labelled]
    confidence = Confidence.of(model, scores, true[codes])
    ranks = None
    if model.n_classes == 2:
        odds = model.log_odds(scores) if model.has_probabilities else scores
        ranks = Ranks.of(odds[:, 1] - odds[:, 0], true[codes])
    confusion = _confusion(codes, scores, len(labels))
    return Evaluation(labels, model.classes, confusion, Seen(), confidence, hardest, ranks)


def _confusion(codes: Array, scores: Array, n_labels: int) -> Array:
    """How many documents of each label were given each class, (L, C)."""
    counts = np.zeros((n_labels, scores.shape[1]), np.int64)
    np.add.at(counts, (codes, np.argmax(scores, axis=1)), 1)
    return counts


def confusion_of(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """The labels (L,) of documents and of predictions, and how many of each were given each, (L, L)."""
    sides = [unwrapped(y_true, "y_true"), unwrapped(y_pred, "y_pred")]
    lazy = all(map(is_collection, sides))
    counts: Counter[Any] = reduced("confusion", _pairs, added, sides) if lazy else _pairs(*map(computed, sides))
    if not counts:
        raise InputError("y_true are the labels of documents, and there are none; give at least one")
    labels, codes = encode([label for pair in counts for label in pair])
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    confusion[codes[::2], codes[1::2]] = list(counts.values())
    return labels, confusion


def _pairs(y_true: Any, y_pred: Any) -> Counter[Any]:
    """How many documents have each pair of a true and a predicted label."""
    (true, codes), (predicted, given) = encode(y_true), encode(y_pred)
    if len(codes) != len(given):
        raise InputError(f"{len(codes)} true labels but {len(given)} predicted ones; give one of each")
    for what, own in (("y_true", codes), ("y_pred", given)):
        if (own == UNLABELLED).any():
            where = f"row {np.argmax(own == UNLABELLED)} has none"
            raise InputError(f"{what} are the labels of documents, and {where}; leave out rows without one")
    pairs, n = np.unique(np.stack([codes, given]), axis=1, return_counts=True)
    return Counter(
        dict(zip(zip(true[pairs[0]].tolist(), predicted[pairs[1]].tolist(), strict=True), n.tolist(), strict=True))
    )


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
