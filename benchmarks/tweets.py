"""Generated tweets: Parquet files of as many short texts as wanted, with the statistics that make tweets hard.

    python benchmarks/tweets.py --documents 1600000 --data DIR

A tweet has about 13 words from a vocabulary of 700,000, drawn by Zipf's law; one in three follows from the word before
it, so that pairs of words repeat as in language. 1.6 million have some 11 million distinct words and pairs. Labels are
0 and 1, and twenty words in each class are twice as frequent as in the other. A file depends on the seed and its number
alone.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

VOCABULARY = 700_000
PLANTED = 20  # words of each class
ROWS = 100_000  # of a file
GROUP = 50_000  # rows of a row group
SYLLABLES = [c + v for c in "bcdfghjklmnprstvwyz" for v in ("a", "e", "i", "o", "u", "ee", "ou")]


def vocabulary(size: int = VOCABULARY) -> np.ndarray:
    """Distinct words, short ones first, as frequent words are; a dash of capitals and accents."""
    words, base = [], len(SYLLABLES)
    for number in range(size):
        word, rest = "", number + base
        while rest:
            rest, digit = divmod(rest, base)
            word += SYLLABLES[digit]
        words.append(word.replace("ou", "é") if number % 50 == 7 else word.capitalize() if number % 9 == 4 else word)
    return np.array(words, object)


def tweets(number: int, words: np.ndarray, seed: int = 7) -> tuple[list[str], np.ndarray]:
    """The texts and labels of one file."""
    rng = np.random.default_rng([seed, number])
    labels = rng.integers(2, size=ROWS).astype(np.int8)
    lengths = 1 + rng.poisson(12, ROWS)
    ids = np.exp(rng.random(lengths.sum()) * np.log(len(words) - 2 * PLANTED)).astype(np.int64) - 1
    follows = np.flatnonzero(rng.random(len(ids) - 1) < 0.33)
    ids[follows + 1] = ids[follows] * 7919 % 20_011  # the usual next word
    planted = np.flatnonzero(rng.random(len(ids)) < 0.02)
    own = rng.random(len(planted)) < 2 / 3
    of_class = np.repeat(labels, lengths).astype(np.int64)[planted] ^ ~own
    ids[planted] = len(words) - 2 * PLANTED + (of_class & 1) * PLANTED + rng.integers(PLANTED, size=len(planted))
    tokens = words[ids].tolist()
    ends = np.cumsum(lengths).tolist()
    marks = rng.choice([" ", "! ", ", ", " :) ", " http://t.co/"], size=ROWS).tolist()
    texts = [
        marks[i].join([" ".join(tokens[end - n : end - n // 2]), " ".join(tokens[end - n // 2 : end])])
        for i, (n, end) in enumerate(zip(lengths.tolist(), ends, strict=True))
    ]
    return texts, labels


def parquet(documents: int, folder: Path) -> list[Path]:
    """Files of generated tweets; written unless they are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [folder / f"tweets-{number:04d}.parquet" for number in range(-(-documents // ROWS))]
    missing = [(number, path) for number, path in enumerate(paths) if not path.exists()]
    words = vocabulary() if missing else None
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in missing:
        assert words is not None
        texts, labels = tweets(number, words)
        partial = path.with_suffix(".partial")
        pq.write_table(pa.table({"text": texts, "label": labels}), partial, row_group_size=GROUP, compression="zstd")
        partial.rename(path)
    return paths


def written(paths: list[Path], kind: str) -> list[Path]:
    """The same documents as ``"csv"`` or ``"jsonl"``, beside their Parquet files; written unless they are there."""
    import pyarrow.parquet as pq

    write = {"csv": _write_csv, "jsonl": _write_json_lines}[kind]
    for path in paths:
        if not path.with_suffix(f".{kind}").exists():
            table = pq.read_table(path)
            partial = path.with_suffix(".partial")
            write(partial, zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True))
            partial.rename(path.with_suffix(f".{kind}"))
    return [path.with_suffix(f".{kind}") for path in paths]


def _write_csv(path: Path, rows: Iterable[tuple[str, int]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(chain([("text", "label")], rows))


def _write_json_lines(path: Path, rows: Iterable[tuple[str, int]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_600_000)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    options = parser.parse_args()
    paths = parquet(options.documents, options.data / "tweets")
    print(f"{len(paths)} files, {sum(path.stat().st_size for path in paths):,} bytes in {options.data / 'tweets'}")


if __name__ == "__main__":
    main()
