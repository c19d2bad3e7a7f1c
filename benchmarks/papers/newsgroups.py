"""Pairs of newsgroups, subject and body apart, and the classifiers that HYB compares on them.

Tokens are the paper's: numbers and addresses of mail become NUMBER and EMAILADDR, words become stems by Porter's rules,
and of the headers only the subject is read. The text of the paper names no pair of groups: ours are neighbors, which
are hard to tell apart, and strangers, which are easy. Naive Bayes, the hybrid with one region and logistic regression
see subject and body as one text.

References: HYB (Raina et al. 2003) sections 2 and 3.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from benchmarks.papers import datasets
from benchmarks.papers.experiment import Settings
from nfs_dask import HybridNB, SparseMultinomialNB, TextVectorizer

PAIRS = {
    "atheism and religion": ("alt.atheism", "talk.religion.misc"),
    "PC and Mac hardware": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    "graphics and Middle East": ("comp.graphics", "talk.politics.mideast"),
    "atheism and medicine": ("alt.atheism", "sci.med"),
    "autos and motorcycles": ("rec.autos", "rec.motorcycles"),
    "hockey and Christianity": ("rec.sport.hockey", "soc.religion.christian"),
    "Windows and X": ("comp.os.ms-windows.misc", "comp.windows.x"),
    "baseball and hockey": ("rec.sport.baseball", "rec.sport.hockey"),
    "electronics and medicine": ("sci.electronics", "sci.med"),
}
QUICK_PAIRS = ("atheism and religion", "PC and Mac hardware", "graphics and Middle East")

TOKEN = re.compile(r"(?P<EMAILADDR>[\w.+-]+@[\w.-]*\w)|(?P<NUMBER>\b\d+(?:[.,]\d+)*\b)|(?P<word>\b\w\w+\b)")


@dataclass(frozen=True)
class Way:
    """A classifier, and whether it is told which words are the subject's."""

    make: Callable[[], Any]
    apart: bool = False


# The prior of logistic regression is Gaussian: of variance 1 for counts as they are, where 0.1 and 10 change little, or
# of variance 100 for counts divided by the length of their row. All else is at its defaults.
WAYS = {
    "hybrid, R = 2": Way(lambda: HybridNB(regions=2), apart=True),
    "naive Bayes": Way(lambda: SparseMultinomialNB("all")),
    "logistic regression": Way(lambda: LogisticRegression(max_iter=10_000)),
    "hybrid, R = 1": Way(HybridNB),
    "hybrid, R = 2, unnormalized": Way(lambda: HybridNB(regions=2, normalize=False), apart=True),
    "hybrid, R = 1, unnormalized": Way(lambda: HybridNB(normalize=False)),
    "logistic regression, unit rows": Way(
        lambda: make_pipeline(Normalizer(), LogisticRegression(C=100.0, max_iter=10_000))
    ),
}


def tokens(text: str) -> Iterator[str]:
    stem = stemmer()
    for found in TOKEN.finditer(text):
        kind = str(found.lastgroup)
        yield stem(found.group()) if kind == "word" else kind


@functools.cache
def stemmer() -> Callable[[str], str]:
    """Porter's, which sees each word once."""
    import Stemmer

    return functools.cache(Stemmer.Stemmer("porter").stemWord)


@dataclass(frozen=True)
class Messages:
    """Counted words of some messages: subjects and bodies side by side, and as one text."""

    apart: Any  # (n, 2 V)
    together: Any  # (n, V)
    y: np.ndarray

    @classmethod
    def of(cls, frame: Any, groups: tuple[str, str]) -> Messages:
        frame = frame[frame["group"].isin(groups)]
        counts = TextVectorizer(tokenizer=tokens).fit_transform([*frame["subject"], *frame["body"]])
        subjects, bodies = counts[: len(frame)], counts[len(frame) :]
        apart = sparse.csr_array(sparse.hstack([subjects, bodies]))
        return cls(apart, sparse.csr_array(subjects + bodies), frame["group"].to_numpy())

    @property
    def n_words(self) -> int:
        return int(self.together.shape[1])

    def only(self, rows: np.ndarray) -> Messages:
        return Messages(self.apart[rows], self.together[rows], self.y[rows])

    def knowing(self, words: np.ndarray) -> Messages:
        """The same messages, when only some words are known."""
        return Messages(self.apart[:, [*words, *(words + self.n_words)]], self.together[:, words], self.y)


def pair(settings: Settings, name: str) -> Messages:
    return Messages.of(_frame(settings.data), PAIRS[name])


@functools.cache
def _frame(folder: Any) -> Any:
    return datasets.frame(folder, "newsgroups20")


def halves(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train with, in an order of which any first rows have both groups in proportion, and rows to judge by."""
    rows = np.random.default_rng(seed).permutation(len(y))
    place = np.empty(len(y))
    for group in np.unique(y):
        own = np.flatnonzero(y[rows] == group)
        place[own] = (np.arange(len(own)) + 0.5) / len(own)
    ordered = rows[np.argsort(place, kind="stable")]
    return ordered[: len(y) // 2], ordered[len(y) // 2 :]


def odds(way: str, train: Messages, test: Messages) -> np.ndarray:
    """Log odds of the second group for the messages of a test."""
    of = WAYS[way]
    X, X_test = (train.apart, test.apart) if of.apart else (train.together, test.together)
    return np.asarray(of.make().fit(X, train.y).decision_function(X_test))
