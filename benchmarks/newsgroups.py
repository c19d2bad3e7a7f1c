"""The hybrid naive Bayes beside naive Bayes and logistic regression: pairs of newsgroups, subject and body.

    python benchmarks/newsgroups.py [--data DIR] [--pairs A:B C:D] [--splits 10] [--sizes 10 20 50 100 200 400]
                                    [--tokens both] [--words both] [--figure FILE.png]

Each random split halves the messages of both groups. Classifiers train on some of the first half, of both groups alike,
and at last on all of it; fewer messages are always among more. The second half judges. Tables are of means over splits:

error       against the number of messages, for each pair; then the errors of others less that of the hybrid with R = 2
coverage    the largest share of messages, the surest first, that are classified with such an accuracy, as read from
            accuracy/coverage curves averaged over the splits, with all of the first half to train on
calibration expected calibration error, in ten bins of the posterior

Tokens are those of the literature (NUMBER and EMAILADDR for numbers and addresses, words by Porter's stemmer; install
snowballstemmer), or plain words. The words that a classifier knows are those of all messages of a pair, or of those it
trains on. Naive Bayes, the hybrid with R = 1 and logistic regression see subject and body as one text. The prior of
logistic regression is Gaussian: of variance 1, for counts as they are (0.1 and 10 change little), or of variance 100,
for counts divided by the length of their row. All else is at its defaults.

References: HYB (Raina et al. 2003) section 3, Figure 1; section 5, Figure 2.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from choosing import data_folder
from learning_curves import ALL, Cells, Findings, Result
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from threadpoolctl import threadpool_limits

from nfs_dask import HybridNB, SparseMultinomialNB, TextVectorizer

PAIRS = (
    "alt.atheism:talk.religion.misc",
    "comp.sys.ibm.pc.hardware:comp.sys.mac.hardware",
    "comp.os.ms-windows.misc:comp.windows.x",
    "rec.autos:rec.motorcycles",
    "rec.sport.baseball:rec.sport.hockey",
    "sci.electronics:sci.med",
    "comp.graphics:talk.politics.mideast",
    "rec.sport.hockey:soc.religion.christian",
)
SIZES = (10, 20, 50, 100, 200, 400)

OURS = "hybrid, R = 2"
NAIVE, LOGISTIC = "naive Bayes", ("logistic regression", "logistic regression, divided")
WAYS: dict[str, tuple[Callable[[], Any], bool]] = {  # and whether they are told which words are the subject's
    NAIVE: (lambda: SparseMultinomialNB("all"), False),
    OURS: (lambda: HybridNB(regions=2), True),
    "hybrid, R = 2, unnormalised": (lambda: HybridNB(regions=2, normalize=False), True),
    "hybrid, R = 1": (HybridNB, False),
    "hybrid, R = 1, unnormalised": (lambda: HybridNB(normalize=False), False),
    LOGISTIC[0]: (lambda: LogisticRegression(max_iter=10_000), False),
    LOGISTIC[1]: (lambda: make_pipeline(Normalizer(), LogisticRegression(C=100.0, max_iter=10_000)), False),
}

TOKEN = re.compile(r"(?P<EMAILADDR>[\w.+-]+@[\w.-]*\w)|(?P<NUMBER>\b\d+(?:[.,]\d+)*\b)|(?P<word>\b\w\w+\b)")


@functools.cache
def stemmer() -> Callable[[str], str]:
    """Porter's, which sees each word once."""
    import snowballstemmer

    return functools.cache(snowballstemmer.stemmer("porter").stemWord)


def stemmed(text: str) -> Iterator[str]:
    """The tokens of the literature."""
    stem = stemmer()
    for found in TOKEN.finditer(text):
        kind = str(found.lastgroup)
        yield stem(found.group()) if kind == "word" else kind


TOKENS = {"paper": stemmed, "plain": None}
WORDS = {"all": "of all messages", "training": "of the training messages"}


@dataclass(frozen=True)
class Messages:
    """Counted words of some messages: subjects and bodies side by side, and as one text."""

    apart: Any  # (n, 2 V)
    together: Any  # (n, V)
    y: np.ndarray

    @classmethod
    def of(cls, frame: Any, groups: list[str], tokens: str) -> Messages:
        frame = frame[frame["group"].isin(groups)]
        texts = [*frame["subject"], *frame["body"]]
        counts = TextVectorizer(tokenizer=TOKENS[tokens]).fit_transform(texts)
        subjects, bodies = counts[: len(frame)], counts[len(frame) :]
        apart = sparse.csr_array(sparse.hstack([subjects, bodies]))
        return cls(apart, sparse.csr_array(subjects + bodies), frame["group"].to_numpy())

    @property
    def n_words(self) -> int:
        return self.together.shape[1]

    def only(self, rows: np.ndarray) -> Messages:
        return Messages(self.apart[rows], self.together[rows], self.y[rows])

    def knowing(self, words: np.ndarray) -> Messages:
        """The same messages, when only some words are known."""
        return Messages(self.apart[:, [*words, *(words + self.n_words)]], self.together[:, words], self.y)


def halves(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train with, in an order of which any first rows have both groups in proportion, and rows to judge by."""
    rows = np.random.default_rng(seed).permutation(len(y))
    place = np.empty(len(y))
    for group in np.unique(y):
        own = np.flatnonzero(y[rows] == group)
        place[own] = (np.arange(len(own)) + 0.5) / len(own)
    ordered = rows[np.argsort(place, kind="stable")]
    return ordered[: len(y) // 2], ordered[len(y) // 2 :]


def compare(train: Messages, test: Messages, words: str) -> dict[str, Result]:
    """All ways, with one training set."""
    if words == "training":
        known = np.unique(train.together.indices)
        train, test = train.knowing(known), test.knowing(known)
    results = {}
    for way, (make, apart) in WAYS.items():
        X, X_test = (train.apart, test.apart) if apart else (train.together, test.together)
        results[way] = Result.of(make().fit(X, train.y), X_test, test.y)
    return results


def measure(messages: Messages, words: str, n_splits: int, sizes: Iterable[int]) -> Cells:
    """All ways and training sets, averaged over splits."""
    found: dict[tuple[str, str], list[Result]] = {}
    for seed in range(n_splits):
        train, test = halves(messages.y, seed)
        judges = messages.only(test)
        for size, rows in {**{str(size): train[:size] for size in sizes}, ALL: train}.items():
            for way, result in compare(messages.only(rows), judges, words).items():
                found.setdefault((way, size), []).append(result)
    return {cell: Result.mean(results) for cell, results in found.items()}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="A:B")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="2 or more each")
    parser.add_argument("--tokens", choices=[*TOKENS, "both"], default="both")
    parser.add_argument("--words", choices=[*WORDS, "both"], default="both")
    parser.add_argument("--figure", type=Path, metavar="FILE.png", help="one of each kind of tokens; needs matplotlib")
    options = parser.parse_args()
    if options.figure is not None and importlib.util.find_spec("matplotlib") is None:
        parser.error("--figure needs matplotlib, which is not installed")
    return options


def main() -> None:
    import pandas as pd

    options = parsed()
    frame = pd.read_parquet(options.data / "newsgroups20.parquet", columns=["group", "subject", "body"])
    if unknown := {group for pair in options.pairs for group in pair.split(":")} - {*frame["group"]}:
        raise SystemExit(f"no newsgroups: {', '.join(unknown)}; there are {', '.join(frame['group'].unique())}")
    sizes = sorted({*options.sizes})
    others = [way for way in WAYS if way != OURS]
    for tokens in TOKENS if options.tokens == "both" else [options.tokens]:
        pairs = {pair.replace(":", " and "): Messages.of(frame, pair.split(":"), tokens) for pair in options.pairs}
        for words in WORDS if options.words == "both" else [options.words]:
            started = time.perf_counter()
            results = {pair: measure(messages, words, options.splits, sizes) for pair, messages in pairs.items()}
            findings = Findings(OURS, list(WAYS), [*map(str, sizes), ALL], results)
            print(f"\n## Tokens: {tokens}; words {WORDS[words]}; {options.splits} splits\n")
            for pair, messages in pairs.items():
                print(f"* {pair}: {len(messages.y):,} messages, {messages.n_words:,} words in all")
            print()
            findings.print({"naive Bayes and logistic regression": [NAIVE, *LOGISTIC], "all others": others})
            print(f"{time.perf_counter() - started:.0f} s", flush=True)
            if options.figure is not None:
                findings.draw(options.figure.with_stem(f"{options.figure.stem}-{tokens}-{words}"))


if __name__ == "__main__":
    # Vectors of some thousand numbers gain nothing by threads of BLAS, which on busy cores wait long for each other.
    with threadpool_limits(1):
        main()
