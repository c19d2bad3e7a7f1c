"""Test error against the number of messages to train on, for pairs of newsgroups. HYB Figure 1.

Each random split halves the messages of a pair. Classifiers train on some of the first half, of both groups alike, and
at last on all of it; fewer messages are always among more. The second half judges. The words that a classifier knows
are those of the messages it trains on, or those of all messages of the pair: the paper does not say which.

References: HYB (Raina et al. 2003) section 3, Figure 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.papers import newsgroups
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.newsgroups import Messages
from benchmarks.papers.tables import markdown

TITLE = "Test error by the number of training messages, pairs of newsgroups"
SIZES = (10, 20, 50, 100, 200, 400)
HALF = "half"
WORDS = ("of the training messages", "of all messages")
OURS = "hybrid, R = 2"
SHOWN = (OURS, "naive Bayes", "logistic regression", "logistic regression, unit rows")
RIVALS = SHOWN[1:]
NEAR = 0.01  # an error so much above the lowest one is near it

Errors = dict[str, dict[str, dict[str, list[float]]]]  # by words, way and size; of each split


def wrong(train: Messages, test: Messages) -> dict[str, float]:
    """Shares of messages that are decided wrongly, by way; odds of 1 to 1 are for the second group."""
    first, second = np.unique(train.y)
    said = {way: newsgroups.odds(way, train, test) >= 0 for way in newsgroups.WAYS}
    return {way: float(np.mean(np.where(one, second, first) != test.y)) for way, one in said.items()}


def one_pair(name: str, settings: Settings) -> dict[str, Any]:
    messages = newsgroups.pair(settings, name)
    sizes = settings.either((10, 50, 200), SIZES)
    errors: Errors = {words: {way: {} for way in newsgroups.WAYS} for words in WORDS}
    for split in range(settings.either(3, 10)):
        rows, judges = newsgroups.halves(messages.y, settings.seed + split)
        test = messages.only(judges)
        for size, some in {**{str(size): rows[:size] for size in sizes}, HALF: rows}.items():
            train = messages.only(some)
            known = np.unique(train.together.indices)
            knowing = (train.knowing(known), test.knowing(known)), (train, test)
            for words, both in zip(WORDS, knowing, strict=True):
                for way, error in wrong(*both).items():
                    errors[words][way].setdefault(size, []).append(error)
    return {"messages": len(messages.y), "words": messages.n_words, "errors": errors}


def run(settings: Settings) -> dict[str, Any]:
    names = settings.either(newsgroups.QUICK_PAIRS, tuple(newsgroups.PAIRS))
    # Vectors of some thousand numbers gain nothing by threads of BLAS, which on busy cores wait long for each other.
    with threadpool_limits(1):
        return settings.each(names, lambda name: one_pair(name, settings))


def mean(errors: Errors, words: str, way: str, size: str) -> float:
    return float(np.mean(errors[words][way][size]))


def found_errors(values: dict[str, Any]) -> dict[str, Errors]:
    return {name: found["errors"] for name, found in there(values).items()}


def summary(values: dict[str, Any]) -> str:
    """What all pairs say together: mean errors by way and size, and in how many pairs ours is as good as any."""
    pairs = found_errors(values)
    tables = [averages(pairs, words) for words in WORDS if pairs]
    return "\n\n".join(tables) + "\n" + left_out(values)


def table(values: dict[str, Any]) -> str:
    return f"{summary(values)}\n\n{by_pair(found_errors(values))}"


def sizes_of(pairs: dict[str, Errors]) -> list[str]:
    return list(next(iter(pairs.values()))[WORDS[0]][OURS]) if pairs else []


def averages(pairs: dict[str, Errors], words: str) -> str:
    sizes = sizes_of(pairs)
    rows = [
        [way, *(f"{np.mean([mean(errors, words, way, size) for errors in pairs.values()]):.3f}" for size in sizes)]
        for way in newsgroups.WAYS
    ]
    rows.append([f"pairs where {OURS} is lowest or within {NEAR}", *(won(pairs, words, size) for size in sizes)])
    return markdown([f"mean error of {len(pairs)} pairs, words {words}", *sizes], rows)


def won(pairs: dict[str, Errors], words: str, size: str) -> str:
    """In how many pairs no other of the paper's classifiers is better by more than a little."""
    above = [
        mean(errors, words, OURS, size) - min(mean(errors, words, way, size) for way in RIVALS)
        for errors in pairs.values()
    ]
    return f"{sum(one <= NEAR for one in above)} of {len(above)}"


def by_pair(pairs: dict[str, Errors]) -> str:
    """Errors of the classifiers of the figure, where words are those of the training messages."""
    rows, sizes = [], sizes_of(pairs)
    for name, errors in pairs.items():
        for way in SHOWN:
            of = errors[WORDS[0]][way]
            rows.append([f"{name}: {way}", *(f"{np.mean(of[size]):.3f} ± {np.std(of[size]):.3f}" for size in sizes)])
    return markdown([f"error, words {WORDS[0]}", *sizes], rows)


def draw(values: dict[str, Any]) -> Any:
    pairs = there(values)
    columns = 3
    figure, axes = panels(-(-len(pairs) // columns) or 1, columns, width=3, height=2.3)
    for one, (name, found) in zip(axes.flat, pairs.items(), strict=False):
        errors = found["errors"][WORDS[0]]
        for way, look in styles(SHOWN).items():
            sizes = [size for size in errors[way] if size != HALF]
            places = [*map(int, sizes), found["messages"] // 2]
            one.plot(places, [np.mean(errors[way][size]) for size in (*sizes, HALF)], **look)
        one.set(title=name, xscale="log", xlabel="training messages", ylabel="test error", ylim=(0, None))
    for one in list(axes.flat)[len(pairs) :]:
        one.axis("off")
    legend(figure, axes[0, 0])
    return figure
