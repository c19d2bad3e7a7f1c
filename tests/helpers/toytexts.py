"""Sources of counted texts, as an ingest makes them: names as bytes, document frequencies, one region or several."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nfs_dask.store.text_facts import TextFacts
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from tests.helpers.toys import ToySource

WORDS = sorted(
    ["", "a", "ab", "abc", "b", "é", "ß", "日本", "日本語", "\U0001f600", "zz", "w\x00", "w", "w\x00\x00"]
    + [f"word {i}" for i in range(26)],
    key=str.encode,
)


class TextSource(ToySource):
    """Counts of ``terms`` in some regions, each term a column of every region."""

    def __init__(self, terms=WORDS, regions=("",), n_rows=200, *, names_sorted=True, seed=0, high=4, **options):
        rng = np.random.default_rng(seed)
        width = len(terms) * len(regions)
        dense = rng.integers(1, high + 1, (n_rows, width)) * (rng.random((n_rows, width)) < 0.15)
        super().__init__(sparse.csr_matrix(dense.astype("int32")), **options)
        self.terms, self.regions, self.names_sorted = list(terms), regions, names_sorted
        prefixes = [f"{region}:" if len(regions) > 1 else "" for region in regions]
        self.column_names = [prefix + term for prefix in prefixes for term in terms]
        present = self.X.toarray().reshape(n_rows, len(regions), len(terms)).any(axis=1)
        self.df = present.sum(axis=0)

    def names(self, columns):
        raise AssertionError("names come as bytes")

    def strings(self, start, stop):
        return Strings.of(self.column_names[start:stop])

    def frequencies(self, start, stop):
        return self.df[start:stop]

    def text_facts(self, report=None, **settings):
        return TextFacts(TextSettings(**settings), self.n_rows, len(self.terms), self.regions, report or {})

    def part(self, first, last, n_blocks=3):
        part = super().part(first, last, n_blocks)
        part.__class__ = TextSource
        part.__dict__.update({k: v for k, v in self.__dict__.items() if k not in part.__dict__})
        return part

    def lengths(self, region):
        width = len(self.terms)
        return np.asarray(self.X[:, region * width : (region + 1) * width].sum(axis=1)).ravel()
