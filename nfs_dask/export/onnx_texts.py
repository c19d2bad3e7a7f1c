"""Words of texts, counted by a graph of ONNX as they were for the fit; where it would find others, that is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.export.sql import SIGMAS
from nfs_dask.text.analysis import runs_of
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.unicode import kinds

DOMAINS = {"": 20, "ai.onnx.ml": 3, "com.microsoft": 1}  # ONNX Runtime 1.17, of 2024, has all of them
LONGEST = 511  # characters of a word: regular expressions of the runtime count to 1,000
STOP = -2  # the number of a stop word; other words that are no part of a term have -1
_ANY = {"mark": 0, "mincharnum": 1, "pad_value": "", "domain": "com.microsoft"}


def counts_of_texts(graph: Any, texts: str, settings: TextSettings, terms: Sequence[str]) -> str:
    """The counts of some terms in each text of an input, (n, len(terms)) float64."""
    _refuse(settings)
    grams = [term.split(" ") for term in terms]
    known = {word: i for i, word in enumerate(sorted({word for gram in grams for word in gram}))}
    joined = max(map(len, grams))
    if joined > 1:
        known |= {word: STOP for word in settings.stop_words or () if " " not in word}
    longest = max(map(len, known))
    if longest > LONGEST or (settings.lowercase and any(sigma in word for word in known for sigma in SIGMAS)):
        raise InputError(
            f"the features have words of more than {LONGEST} characters, or a Greek sigma, of which ONNX does not know "
            "which small form it takes; give texts=False (--counts) for a graph that takes counts"
        )
    kind, shortest = runs_of(settings.token_pattern) or (0, 0)
    size = 1 << max(longest, shortest).bit_length()
    # A last text, which is left out again, so that there is always a text, and the longest word is of this size
    every = graph.add("Concat", texts, graph.constant(np.array(["0" * size], object)), axis=0)
    words = graph.add("Tokenizer", every, tokenexp=_expression(kind, shortest, settings.lowercase), **_ANY)
    if settings.lowercase:
        words = _lowered(graph, words, set("".join(known)), kind, size)
    keys, values = list(known), list(known.values())
    numbers = graph.add(
        "LabelEncoder", words, keys_strings=keys, values_int64s=values, default_int64=-1, domain="ai.onnx.ml"
    )
    if STOP in values:
        numbers = _without_stops(graph, numbers)
    order = sorted(range(len(grams)), key=lambda i: len(grams[i]))
    counts = graph.add(
        "TfIdfVectorizer",
        numbers,
        mode="TF",
        min_gram_length=len(grams[order[0]]),
        max_gram_length=joined,
        max_skip_count=0,
        ngram_counts=[sum(len(gram) for gram in grams if len(gram) < n) for n in range(1, joined + 1)],
        ngram_indexes=order,
        pool_int64s=[known[word] for i in order for word in grams[i]],
    )
    counts = graph.add("Slice", counts, *(graph.constant(np.array([i])) for i in (0, -1, 0)))
    return str(graph.add("Cast", graph.add("Sign", counts) if settings.binary else counts, to=11))


def weights_of_counts(graph: Any, counts: str, settings: TextSettings, idf: Array) -> str:
    """tf-idf without a norm."""
    if settings.sublinear_tf:
        one = graph.constant(np.array(1.0))
        logs = graph.add("Add", graph.add("Log", graph.add("Max", counts, one)), one)
        counts = graph.add("Mul", graph.add("Sign", counts), logs)
    return str(graph.add("Mul", counts, graph.constant(idf)))


def _refuse(settings: TextSettings) -> None:
    unknown = {
        "analyzer": None if settings.analyzer == "word" else settings.analyzer,
        "tokenizer": settings.tokenizer,
        "token_pattern": None if runs_of(settings.token_pattern) else settings.token_pattern,
        "strip_accents": settings.strip_accents,
        "stem": settings.stem,
        "hashed": settings.hashed,
        "norm": settings.norm if settings.tfidf else None,
    }
    for name, value in unknown.items():
        if value is not None:
            raise InputError(
                f"texts of the fit were read with {name}={value!r}, which a graph of ONNX cannot do; give texts=False "
                "(--counts) for a graph that takes counts, or fit without it"
            )


def _expression(kind: int, shortest: int, lowercase: bool) -> str:
    """Runs of characters of a kind, by their numbers, as the Unicode of the runtime may be another.

    One capital becomes two characters in lower case, of which the second ends a word.
    """
    there = (kinds() & kind).astype(bool)
    there[0xD800:0xE000] = False  # surrogates, which no text has
    split = lowercase and not kinds()[ord("İ".lower()[1])] & kind
    there[ord("İ")] &= not split
    edges = np.flatnonzero(np.diff(there, prepend=False, append=False)).reshape(-1, 2).tolist()
    one = "[" + "".join(rf"\x{{{first:x}}}-\x{{{stop - 1:x}}}" for first, stop in edges) + "]"
    runs = f"{one}{{{shortest},}}"
    return f"{one}{{{shortest - 1},}}İ|{runs}" if split else runs


def _lowered(graph: Any, words: str, alphabet: set[str], kind: int, size: int) -> str:
    """The words in lower case, of up to ``size`` characters; all that no term has become blanks.

    By a table of characters: the operator for it knows only what the locale of a machine knows.
    """
    codes = np.flatnonzero(kinds() & kind)
    lower = {chr(code): "".join(c for c in chr(code).lower() if kinds()[ord(c)] & kind) for code in codes.tolist()}
    keys, values = map(
        list, zip(("", ""), *((c, to) for c, to in lower.items() if alphabet.issuperset(to)), strict=True)
    )
    distinct = graph.add("Unique", words, also=["", f"{words}_places"])
    fits = graph.add("RegexFullMatch", distinct, pattern=f"(?s).{{0,{size}}}")
    short = graph.add("Where", fits, distinct, graph.constant(np.array([""], object)))
    found = graph.add("Tokenizer", short, separators=[""], **_ANY)
    found = graph.add(
        "LabelEncoder", found, keys_strings=keys, values_strings=values, default_string=" ", domain="ai.onnx.ml"
    )
    ends, axis, two = (graph.constant(np.array([i])) for i in (size, 1, 2))
    while size > 1:  # join each character to the next one, each pair to the next pair
        halves = (graph.add("Slice", found, graph.constant(np.array([i])), ends, axis, two) for i in (0, 1))
        found, size = graph.add("StringConcat", *halves), size // 2
    every = graph.add("Gather", found, f"{words}_places")
    return str(graph.add("Reshape", every, graph.add("Shape", words)))


def _without_stops(graph: Any, numbers: str) -> str:
    """The words of each text that are no stop words, in their order, and the stop words after them."""
    width = graph.add("Gather", graph.add("Shape", numbers), graph.constant(np.array(1)))
    places = graph.add("Range", graph.constant(np.array(0)), width, graph.constant(np.array(1)))
    stops = graph.add("Equal", numbers, graph.constant(np.array(STOP)))
    last = graph.add("Mul", graph.add("Cast", stops, to=7), width)
    columns = graph.add("Reshape", width, graph.constant(np.array([1])))
    graph.add("TopK", graph.add("Add", places, last), columns, largest=0, also=[f"{numbers}_kept"])
    return str(graph.add("GatherElements", numbers, f"{numbers}_kept", axis=1))
