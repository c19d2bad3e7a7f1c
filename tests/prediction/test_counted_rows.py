"""Counted terms as rows of documents, beside the same added up one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.prediction.counted_rows import documents
from nfs_dask.text.strings import Strings, TermCounts

N_TERMS, N_COLUMNS = 5, 3
texts = st.dictionaries(st.integers(0, N_TERMS - 1), st.integers(1, 4), max_size=N_TERMS)


@given(
    st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.lists(texts, min_size=n, max_size=n)))),
    st.lists(st.integers(0, N_COLUMNS - 1), min_size=N_TERMS, max_size=N_TERMS),
    st.one_of(st.none(), st.lists(st.booleans(), min_size=9, max_size=9)),
)
def test_terms_of_a_column_are_added_up_within_documents(regions, ranks, some):
    n_regions, given_texts = regions
    rows = [text for document in given_texts for text in document]
    wanted = np.ones(n_regions * N_COLUMNS, bool) if some is None else np.array(some)[: n_regions * N_COLUMNS]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    ids = np.array([term for text in rows for term in text], np.int32)
    counts = np.array([count for text in rows for count in text.values()], np.int32)
    counted = TermCounts(Strings.of("abcde"), indptr, ids.copy(), counts.copy())
    found, columns, values = documents(counted, np.array(ranks), wanted, n_regions)
    for document, own in enumerate(given_texts):
        expected: dict[int, int] = {}
        for region, text in enumerate(own):
            for term, count in text.items():
                column = region * N_COLUMNS + ranks[term]
                if wanted[column]:
                    expected[column] = expected.get(column, 0) + count
        part = slice(found[document], found[document + 1])
        assert list(zip(columns[part].tolist(), values[part].tolist(), strict=True)) == sorted(expected.items())
    assert len(found) == len(given_texts) + 1 and found[-1] == len(columns) == len(values)
    np.testing.assert_array_equal(counted.ids, ids)
    np.testing.assert_array_equal(counted.counts, counts)
