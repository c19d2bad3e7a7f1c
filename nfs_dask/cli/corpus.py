"""A generated corpus whose answer is known: class words planted in a background that looks like language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.errors import InputError
from nfs_dask.sources.source import Facts, Sizes, Source

_PLANTED_SHARE = 0.06  # of all words of a document
_OWN_SHARE = 0.75  # of its planted words, those of its own class; the rest are those of any class

_TOPICS = {  # sorted, so that the labels are
    "astronomy": "planet comet galaxy orbit telescope nebula eclipse meteor asteroid crater".split(),
    "cooking": "simmer oven garlic recipe butter pepper dough saucepan flour basil".split(),
    "gardening": "compost seedling mulch prune hedge tulip trowel greenhouse weeds lawn".split(),
    "music": "melody violin chorus rhythm sonata drummer orchestra ballad soprano piano".split(),
    "sailing": "anchor mast harbour rudder spinnaker regatta keel jib starboard skipper".split(),
}


class GeneratedCorpus(Source):
    """Documents that are drawn when they are read: no files, and never more than a block in memory.

    Most words come from a background whose rank has a Zipf distribution (the word of rank r is ``w`` and r as a
    number), the same in every class. A few come from each class's planted words, that lie at random columns. A block
    depends on the seed and its number only, so it is the same wherever, whenever and after whatever it is read.

    >>> corpus = GeneratedCorpus(100, 500, planted=2)
    >>> corpus.planted_words(0)
    ['planet', 'comet']
    >>> sum(block.n_rows for block in corpus.blocks(0, corpus.n_blocks))
    100
    """

    def __init__(
        self,
        n_documents: int,
        n_features: int,
        n_classes: int = 2,
        words_per_document: float = 60.0,  # on average, duplicates counted
        planted: int = 10,  # words for each class
        seed: int = 0,
        block_rows: int = 4096,
        first_block: int = 0,  # where another corpus of the same seed ends: more documents of the same kind
    ) -> None:
        wanted = n_classes * planted
        if n_documents < 1 or n_classes < 1 or block_rows < 1 or words_per_document <= 0:
            raise InputError(
                f"a corpus of {n_documents} documents in {n_classes} classes, {words_per_document} "
                f"words each, in blocks of {block_rows} rows; all of these are at least 1"
            )
        if not 0 <= wanted < n_features:
            raise InputError(
                f"{wanted} planted words ({planted} for each of {n_classes} classes) in a vocabulary of "
                f"{n_features}; leave room for others: plant fewer, or take more features"
            )
        parameters = {
            "n_documents": n_documents,
            "n_features": n_features,
            "n_classes": n_classes,
            "words_per_document": words_per_document,
            "planted": planted,
            "seed": seed,
            "block_rows": block_rows,
            "first_block": first_block,
        }
        self.n_documents, self.n_classes, self.planted = n_documents, n_classes, planted
        self.words_per_document, self.seed = words_per_document, seed
        self.block_rows, self.first_block = block_rows, first_block
        self._facts = Facts(
            n_documents,
            n_features,
            -(-n_documents // block_rows),
            nnz=None,  # known only when all is drawn
            kind="count",
            classes=np.array([_topic(c) for c in range(n_classes)]),
            trusted=True,
            fingerprint=hashlib.blake2b(json.dumps(parameters).encode(), digest_size=16).hexdigest(),
        )
        self._longest = min(int(4 * words_per_document) + 1, np.iinfo(np.uint16).max)  # words of a document
        entries = block_rows * min(self._longest, n_features)
        read = int(n_documents * words_per_document * (8 + 2))  # as if what is drawn had been read
        self._sizes = Sizes(entries * (8 + 2) + block_rows * (8 + 4) + 8, entries, read)

    def planted_words(self, class_code: int) -> list[str]:
        """The words that mark a class: what a selection of ``planted`` features for each class should find."""
        return [_word(class_code, i) for i in range(self.planted)]

    def planted_columns(self) -> Array:
        """The (n_classes, planted) columns at which the planted words lie."""
        columns = np.random.default_rng([self.seed, 0]).choice(
            self.n_features, (self.n_classes, self.planted), replace=False, shuffle=True
        )
        return columns.astype(np.int64)

    def names(self, columns: Array) -> list[str] | None:
        planted = {int(j): _word(c, i) for (c, i), j in np.ndenumerate(self.planted_columns())}
        return [planted.get(int(j), f"w{int(j):06d}") for j in columns]

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        planted = self.planted_columns()
        for number in range(start, stop):
            yield self._block(number, planted)

    def _block(self, number: int, planted: Array) -> Block:
        rng = np.random.default_rng([self.seed, 1, self.first_block + number])
        first = number * self.block_rows
        n = min(self.block_rows, self.n_documents - first)
        codes = rng.integers(self.n_classes, size=n, dtype=np.int32)
        lengths = np.clip(rng.poisson(self.words_per_document, n), 1, self._longest)
        rows = np.repeat(np.arange(n), lengths)
        # Columns with probability proportional to log(1 + 1/rank), which needs no table of the vocabulary
        ranks = np.exp(rng.random(len(rows)) * np.log(self.n_features + 1)).astype(np.int64)
        words = np.minimum(ranks, self.n_features) - 1
        if self.planted:  # words, mostly of the class of their document, in the place of some of the background
            places = np.flatnonzero(rng.random(len(words)) < _PLANTED_SHARE)
            own = rng.random(len(places)) < _OWN_SHARE
            topics = np.where(own, codes[rows[places]], rng.integers(self.n_classes, size=len(places)))
            words[places] = planted[topics, rng.integers(self.planted, size=len(places))]
        # A sorted list of (row, word) pairs, each once, is the block in canonical form.
        pairs, counts = np.unique(rows * self.n_features + words, return_counts=True)
        indptr = np.searchsorted(pairs, np.arange(n + 1) * self.n_features)
        return Block(
            indptr=indptr.astype(np.int64),
            indices=pairs % self.n_features,
            data=counts.astype(np.uint16),
            codes=codes,
            n_features=self.n_features,
            first_row=first,
            number=number,
        )


def _topic(c: int) -> str:
    return list(_TOPICS)[c] if c < len(_TOPICS) else f"topic{c:06d}"


def _word(c: int, i: int) -> str:
    words = _TOPICS.get(_topic(c), [])
    return words[i] if i < len(words) else f"{_topic(c)}-{i}"
