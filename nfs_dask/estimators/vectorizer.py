"""Texts as sparse matrices, inside scikit-learn's Pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type, is_collection, is_frame, listed, unwrapped
from nfs_dask.documents.in_memory import holds_texts, text_columns
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.plain import plain, restored
from nfs_dask.graphs import token
from nfs_dask.ingestion.other_names import with_hints
from nfs_dask.ingestion.text_options import TermParameters, TextOptions, make_terms
from nfs_dask.prediction.counted_rows import as_scipy, no_rows
from nfs_dask.prediction.document_frequencies import ColumnTotals, TermTotals, Totals, merge_totals
from nfs_dask.prediction.lazy_chunks import fold_partitions, map_chunks, partitions
from nfs_dask.prediction.vectorizing import KnownColumns, Splitter
from nfs_dask.text.column_names import with_names
from nfs_dask.text.ordering import take
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings


class TextVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Counts of terms, or tf-idf weights, as scikit-learn's CountVectorizer and TfidfVectorizer have them.

    The vocabulary lives in memory. For one that does not fit there, or texts on disk, take `nfs_dask.ingest`: it makes
    the same columns out of core, and estimators fitted to its datasets take raw text without a vectorizer.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"}, default="word"
        What terms are made of; "char_wb" stays within words.
    ngrams : (shortest, longest), default=(1, 1)
        Lengths of n-grams; scikit-learn's ``ngram_range``.
    lowercase : bool, default=True
        Do not tell upper case from lower case.
    strip_accents : {"ascii", "unicode"}, optional
    token_pattern : str
        A regular expression of words; with one group, what that captures.
    tokenizer : callable, optional
        From a text to its tokens, instead of the pattern.
    stop_words : language or list, optional
        Words that are left out: "english" as scikit-learn has them, a list, or another language such as "german",
        which needs ``pip install 'nfs-dask[languages]'``.
    stem : language, optional
        Such as "english" or "german": what is left of words, once stop words are left out, becomes stems by Snowball's
        rules. Needs ``pip install 'nfs-dask[languages]'``.
    min_df, max_df : int or float, default=1, 1.0
        Terms of fewer or of more documents, or shares of them, are left out.
    max_features : int, optional
        Keep the terms that are there most often; of equal ones the first by name.
    vocabulary : list or mapping of terms to columns, optional
        The terms to count, instead of those that are found.
    hashed : int, optional
        Make ``2**hashed`` columns, up to 28 bits, and let a hash of a term say which is its.
    binary : bool, default=False
        1 instead of every count.
    tfidf : bool, default=False
        Weigh counts by how few documents have the term.
    sublinear_tf : bool, default=False
        With tf-idf, 1 + log of the count instead of the count.
    norm : {"l2", "l1"} or None, default="l2"
        Of rows of tf-idf weights.
    engine : SerialEngine or DaskEngine, optional
        Where a Dask collection is counted. None: the current Dask client, else threads.

    Attributes
    ----------
    vocabulary_ : dict
        Column of each term, made when it is asked for; not with ``hashed``.
    idf_ : (n_columns,) float64, with tf-idf only

    Notes
    -----
    Texts are a list, tuple, iterator, numpy array or Series of strings; or a dask bag or Series of them: then `fit`
    counts each partition where it is, and `transform` gives a lazy dask array with a chunk of unknown height for each.
    Counts are int64, weights float64, and a matrix is a scipy CSR array, also where scikit-learn is configured to make
    frames of what comes from transformers: it has none for sparse rows. It carries the terms, so that an estimator of
    this package that comes next knows them, and its model files do. With ``vocabulary`` or ``hashed``, counts need
    no `fit`; weights do.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from nfs_dask import SparseMultinomialNB, TextVectorizer
    >>> model = make_pipeline(TextVectorizer(), SparseMultinomialNB(k=2))
    >>> model = model.fit(["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"])
    >>> model.get_feature_names_out().tolist(), model.predict(["a cup of tea"]).tolist()
    (['coffee', 'tea'], ['tea'])
    """

    @with_hints
    def __init__(
        self,
        *,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        strip_accents: str | None = None,
        token_pattern: str = DEFAULT_PATTERN,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        stop_words: str | Iterable[str] | None = None,
        stem: str | None = None,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        vocabulary: Iterable[str] | Mapping[str, int] | None = None,
        hashed: int | None = None,
        binary: bool = False,
        tfidf: bool = False,
        sublinear_tf: bool = False,
        norm: str | None = "l2",
        engine: Engine | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngrams = ngrams
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.token_pattern = token_pattern
        self.tokenizer = tokenizer
        self.stop_words = stop_words
        self.stem = stem
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.hashed = hashed
        self.binary = binary
        self.tfidf = tfidf
        self.sublinear_tf = sublinear_tf
        self.norm = norm
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the terms, and with tf-idf their weights.

        Parameters
        ----------
        X : texts
        y : ignored
        """
        X = checked_texts(X)
        made = self._terms()
        splitter = Splitter(made.settings, made.tokenizer)
        columns = _known_columns(made, splitter)
        if columns is None:
            totals = self._totals(X, splitter)
            assert isinstance(totals, TermTotals)
            columns = _found_columns(totals, totals.kept(made.filters), splitter)
        elif made.settings.tfidf:
            totals = self._totals(X, columns)
            assert isinstance(totals, ColumnTotals)
            columns = columns.with_idf(totals)
        self._columns = columns
        return self

    def transform(self, X: Any) -> Any:
        """Texts as a matrix, a row for each.

        Parameters
        ----------
        X : texts

        Returns
        -------
        (n, n_columns) scipy CSR array, lazily in chunks of a dask array for a Dask collection
        """
        columns = self._ready()
        X = checked_texts(X)
        if not is_collection(X):
            return with_names(as_scipy(columns.matrix(X), columns.n_columns), columns.terms)
        meta = as_scipy(no_rows(columns.splitter.settings), columns.n_columns)
        rows = map_chunks(partitions(X), vectorize_partition, columns, "vectors", meta=meta, width=columns.n_columns)
        return with_names(rows, columns.terms)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit` and `transform` in one; in memory, texts are read once.

        Parameters
        ----------
        X : texts
        y : ignored

        Returns
        -------
        (n, n_columns) matrix, as of `transform`
        """
        X = checked_texts(X)
        if isinstance(X, Iterator):
            X = list(X)
        if is_collection(X) or self.vocabulary is not None or self.hashed is not None:
            return self.fit(X).transform(X)
        made = self._terms()
        splitter = Splitter(made.settings, made.tokenizer)
        counted = splitter.count(X)
        totals = TermTotals.of(counted, made.settings.binary)
        kept = totals.kept(made.filters)
        self._columns = _found_columns(totals, kept, splitter)
        return with_names(
            as_scipy(self._columns.matrix_of(counted, kept), self._columns.n_columns), self._columns.terms
        )

    @available_if(lambda self: self.hashed is None)
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The terms in the order of their columns, (n_columns,); not with ``hashed``.

        Parameters
        ----------
        input_features : ignored
        """
        return np.array(self._names(), object)

    @available_if(lambda self: self.hashed is None)
    def inverse_transform(self, X: Any) -> list[Array]:
        """The terms of each row, in the order of their columns; how often each was there is lost.

        Parameters
        ----------
        X : (n, n_columns) matrix
        """
        from scipy import sparse

        names, X = np.array(self._names()), sparse.csr_array(X)
        X.eliminate_zeros()
        X.sort_indices()
        if X.shape[1] != len(names):
            raise InputError(
                f"X has {X.shape[1]} columns, and there are {len(names)} terms; give a matrix of `transform`"
            )
        return [names[X.indices[start:stop]] for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True)]

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term."""
        if self.hashed is not None:
            raise AttributeError("columns that are hashes of terms have no vocabulary")
        return {name: column for column, name in enumerate(self._names())}

    @property
    def idf_(self) -> Array:
        """Inverse document frequency of each column, (n_columns,); with tf-idf only."""
        columns = self._ready()
        idf = columns.idf(np.arange(columns.n_columns))
        if idf is None:
            raise AttributeError("only tf-idf weights have an idf; set tfidf=True")
        return idf

    def _names(self) -> list[str]:
        terms = self._ready().terms
        assert terms is not None
        return terms.to_list()

    @property
    def _is_stateless(self) -> bool:
        """Whether columns and values follow from the parameters alone."""
        return (self.vocabulary is not None or self.hashed is not None) and not self.tfidf

    def _ready(self) -> KnownColumns:
        """The columns of the fit, or those that need none; a vocabulary is sorted once, and kept."""
        if hasattr(self, "_columns"):
            return self._columns
        check_is_fitted(self)
        made = self._terms()
        columns = _known_columns(made, Splitter(made.settings, made.tokenizer))
        assert columns is not None, "what is stateless has columns"
        if made.vocabulary is not None:
            self._columns = columns
        return columns

    def settings(self) -> TextSettings:
        """How texts become terms, as models of ingested texts know it."""
        return self._terms().settings

    def _terms(self) -> TextOptions:
        """The parameters, checked before anything is read."""
        return make_terms(TermParameters(**{field.name: getattr(self, field.name) for field in fields(TermParameters)}))

    def _totals(self, X: Any, counting: Splitter | KnownColumns) -> Totals:
        """The totals of all texts, counted where they are."""
        if not is_collection(X):
            return counting.count_totals(X)
        total = fold_partitions(X, count_partition, merge_totals, counting, "vocabulary")
        with choose_engine(self.engine, None).executor() as executor:
            return executor.map_values(merge_with, [total], [()])[0]

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, so that any format takes them."""
        return {name: plain(value) for name, value in super().__getstate__().items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: restored(value) for name, value in state.items()})

    __dask_tokenize__ = token

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns") or self._is_stateless

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = not self._is_stateless
        return tags


def checked_texts(X: Any) -> Any:
    """X without what it is wrapped in; what is not one text for each document is refused, as far as can be seen."""
    X = unwrapped(X)
    if isinstance(X, (Mapping, Set)):
        X = listed(X)
    several = is_frame(X) or getattr(X, "ndim", 1) != 1
    if several or isinstance(X, (str, bytes)) or not (is_collection(X) or isinstance(X, Iterable)):
        raise InputError(
            f"X is of type {type(X).__name__}; TextVectorizer takes a list, array, Series or dask bag with one string "
            f"for each document: of a DataFrame give the column of texts{_such_as(X)}"
        )
    if is_collection(X) and not holds_texts(X):
        raise InputError(f"X is {a_type(X)} that does not hold strings; give a dask bag or Series of them")
    return X


def _such_as(X: Any) -> str:
    """The column of texts that may be meant."""
    names = text_columns(X) if is_frame(X) else ()
    return f", such as X[{names[0]!r}]" if names else ""


def count_partition(counting: Splitter | KnownColumns, partition: Any, number: int) -> Totals:
    """One task of `fit`."""
    return counting.count_totals(partition, _where(number))


def vectorize_partition(columns: KnownColumns, partition: Any, number: int) -> Any:
    """One lazy chunk of `transform`."""
    return as_scipy(columns.matrix(partition, _where(number)), columns.n_columns)


def merge_with(total: Totals, others: Sequence[Totals]) -> Totals:
    """The last task of `fit`."""
    return merge_totals([total, *others])


def _where(number: int) -> str:
    return f"partition {number:,}, document"


def _known_columns(made: TextOptions, splitter: Splitter) -> KnownColumns | None:
    """Columns that do not depend on the texts; None where they do."""
    if made.settings.hashed is not None:
        return KnownColumns(splitter, 2**made.settings.hashed, None)
    if made.vocabulary is None:
        return None
    terms, columns = made.vocabulary
    return KnownColumns(splitter, len(terms), take(terms, np.argsort(columns)))


def _found_columns(totals: TermTotals, kept: Array, splitter: Splitter) -> KnownColumns:
    """Some of the terms that were found, in the order of their names."""
    columns = KnownColumns(splitter, len(kept), take(totals.terms, kept))
    return columns.with_idf(ColumnTotals(np.arange(len(kept)), totals.documents[kept], totals.n_documents))
