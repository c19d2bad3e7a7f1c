"""`ingest`: whatever a user has, into a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any

from nfs_dask.containers import column_names, is_collection, is_frame, listed, of_columns, split_off, unwrapped
from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.documents.archives import SUFFIXES
from nfs_dask.documents.in_memory import TEXT, DaskDocuments, text_columns
from nfs_dask.documents.lines import OPENERS
from nfs_dask.documents.locations import FORMATS, MATRICES
from nfs_dask.documents.number_tables import open_numbers
from nfs_dask.documents.open_documents import is_documents, open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.other_names import with_hints
from nfs_dask.ingestion.text_ingest import TextIngest
from nfs_dask.ingestion.text_options import TermParameters, make_terms
from nfs_dask.sources.anndata_memory import column_of, is_anndata
from nfs_dask.sources.chosen_rows import rows_where
from nfs_dask.sources.labels import warn_of_classes
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import Source
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.publish import check_place
from nfs_dask.store.writer import write_store
from nfs_dask.text.settings import DEFAULT_PATTERN, Filters, Tokenizer
from nfs_dask.units import MiB, parse_bytes

RUN_NBYTES = 128 * MiB  # of a source, that one task of an ingest reads
ENTRY_NBYTES = 12  # of a block in memory, about


@with_hints
def ingest(
    source: Any,
    store: str | os.PathLike[str],
    *,
    labels: Any = None,
    label_column: str | None = None,
    weights: Any = None,
    weight_column: str | None = None,
    names: Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    text_column: str | None = None,
    regions: Sequence[str] | Mapping[str, str] | None = None,
    analyzer: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    strip_accents: str | None = None,
    token_pattern: str = DEFAULT_PATTERN,
    tokenizer: Tokenizer | None = None,
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
    encoding: str = "utf-8",
    delimiter: str | None = None,
    block_bytes: int | str | None = None,
    on_error: str = "fail",
    keep: Sequence[str] = (),
    append: bool = False,
    overwrite: bool = False,
    engine: Engine | None = None,
) -> Dataset:
    """Write documents, or a matrix, into a store of ours, from which every pass reads fastest.

    Texts become counts, or tf-idf weights, of the terms that scikit-learn's vectorizers find, under the same names and
    in the same order, however the documents are cut and wherever the work is done. No machine holds the corpus or its
    vocabulary. An ingest that was killed goes on when it is called again.

    Parameters
    ----------
    source : str, path, list, table or matrix
        Documents: Parquet, CSV, Excel, JSON lines, lines of text, or folders, tar or zip archives with a folder for
        each class, as a path, URL or pattern, or a list of `Path`. Any other list, array or Series of strings is
        documents; so is a Dask bag of strings, (text, label) pairs or dicts, and a table with ``text_column``: a
        DataFrame, a pyarrow Table, a relation of DuckDB, a dataset of Hugging Face. Or a matrix: in memory, a Dask
        array, or files that `open_dataset` opens. A matrix of Dask is computed twice, to know how much there is and to
        write it, its labels once: ``persist()`` it before, if it is costly to make and fits in the memory of the
        cluster.
    store : str or path
        A new path or URL; with ``append`` or ``overwrite``, that of a store.
    labels, label_column : (n,) labels; str, optional
        One label for each document, or the column that holds them. Folders name the classes by themselves.
    weights, weight_column : (n,) numbers of zero or more; str, optional
        One weight for each document, or the column that holds them.
    names : (m,) str, optional
        Of a matrix: one name for each feature.
    where : dict, optional
        Which documents, by values of columns: ``{"split": "train"}``, or a list of values of which one is there; of a
        store or AnnData by columns of its rows. ``labels`` and ``weights`` are still those of all.
    text_column : str, optional; "text" of files
        The column that holds the texts.
    regions : list of str, or dict of names and columns, optional
        Several columns of texts, such as ["subject", "body"]: each gets columns of its own, over one vocabulary.
    analyzer, ngrams, lowercase, strip_accents, token_pattern, tokenizer, stop_words : as scikit-learn's, optional
        How texts become terms, as in scikit-learn; ``ngrams`` is its ``ngram_range``. A tokenizer is never stored.
        Stop words are "english", as scikit-learn has them, a list, or another language such as "german", which needs
        ``pip install 'nfs-dask[languages]'``.
    stem : str, optional
        A language, such as "english" or "german": what is left of words, once stop words are left out, becomes stems by
        Snowball's rules. Needs ``pip install 'nfs-dask[languages]'``, here, on workers, and to predict.
    min_df, max_df, max_features : int or float in [0, 1]; of the last int, optional
        Which terms become columns: those of so many documents, or of such a share; and the most frequent ones.
    vocabulary : list of str, or dict of columns, optional
        The terms to count, instead of those that are found.
    hashed : int from 1 to 28, optional
        Number the columns by this many bits of a hash, instead of giving each term one of its own.
    binary, tfidf, sublinear_tf, norm : bool; of the last "l2", "l1" or None
        What the values are, as in scikit-learn.
    encoding : str, default="utf-8"
        Of files of text.
    delimiter : str of one character, optional
        Of CSV files; by default a tab in ``.tsv`` and ``.tab`` files, and a comma in others.
    block_bytes : int or str, optional
        What a block of a new store takes in memory, such as "64MiB".
    on_error : {"fail", "skip"}, default="fail"
        What to do about an undecodable, missing, unlabelled or broken document: "fail", or "skip" it and say so. An
        empty text is none of these: it is a document without words.
    keep : list of str
        Further columns of documents, whose values the store has for each row, as text: for ``where=`` of
        `open_dataset`, for ``folds=``, and for people. Of an AnnData all columns of rows are kept anyway.
    append : bool, default=False
        Add the rows to the store; texts are read with its own settings, which have to be given again, and its own
        vocabulary, whatever ``min_df``, ``max_df`` and ``max_features`` say.
    overwrite : bool, default=False
        Replace a store that is there: on a local disk once the new one is complete, behind a URL before it is written.
    engine : SerialEngine or DaskEngine, optional
        Where the work runs; None chooses as for a pass.

    Returns
    -------
    Dataset
        The store, opened.

    Raises
    ------
    InputError
        A document, a label or a parameter cannot be used; which one, what was found, and what is allowed.
    PlanError
        The memory of the workers is too small, told before anything is read.

    Examples
    --------
    >>> import tempfile
    >>> import nfs_dask as nfs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     texts, labels = ["green tea", "black tea", "black coffee"], ["tea", "tea", "coffee"]
    ...     dataset = nfs.ingest(texts, f"{folder}/drinks.zarr", labels=labels)
    ...     dataset.names(range(dataset.n_features)), dataset.classes.tolist()
    (['black', 'coffee', 'green', 'tea'], ['coffee', 'tea'])
    """
    columns = DocumentParameters(
        text_column, regions, label_column, weight_column, where, encoding, on_error, delimiter, keep
    )
    terms = TermParameters(
        analyzer=analyzer,
        ngrams=ngrams,
        lowercase=lowercase,
        strip_accents=strip_accents,
        token_pattern=token_pattern,
        tokenizer=tokenizer,
        stop_words=stop_words,
        stem=stem,
        min_df=min_df,
        max_df=max_df,
        max_features=max_features,
        vocabulary=vocabulary,
        hashed=hashed,
        binary=binary,
        tfidf=tfidf,
        sublinear_tf=sublinear_tf,
        norm=norm,
    )
    asked = open_ingest(
        source,
        store,
        columns,
        terms,
        labels=labels,
        weights=weights,
        names=names,
        block_bytes=block_bytes,
        append=append,
        overwrite=overwrite,
    )
    asked.write(choose_engine(engine, asked.data))
    made = open_dataset(asked.store.location)
    if made.classes is not None and len(made.classes) > 1:  # a part of the documents may have one
        warn_of_classes(made.classes, made.n_rows)
    return made


@dataclass(frozen=True)
class MatrixIngest:
    """All that an ingest of a matrix was asked for."""

    data: Source
    store: Folder
    names: Iterable[str] | None = None
    append: bool = False
    layout: Layout | None = None
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what would fail after all the work had been done."""
        if self.append:
            read_header(self.store)
        else:
            check_place(self.store, self.overwrite)

    def write(self, engine: Engine) -> None:
        """Write the store."""
        source, to = self.data, self.store.location
        with engine.mapping(source) as mapping:
            source.look(mapping)
            runs = max(1, min(source.n_blocks, source.read_nbytes // RUN_NBYTES))
            write_store(
                source,
                to,
                names=self.names,
                append=self.append,
                overwrite=self.overwrite,
                map=mapping,
                runs=runs,
                layout=self.layout,
            )


def open_ingest(
    source: Any,
    store: str | os.PathLike[str],
    columns: DocumentParameters,
    terms: TermParameters,
    *,
    labels: Any = None,
    weights: Any = None,
    names: Iterable[str] | None = None,
    block_bytes: int | str | None = None,
    append: bool = False,
    overwrite: bool = False,
) -> TextIngest | MatrixIngest:
    """What was asked for, with the documents or the matrix opened, and the store's place looked at.

    The other parameters are those of `ingest`.
    """
    if append and overwrite:
        raise InputError("append= adds rows to a store and overwrite= replaces it; give one of them")
    source = listed(unwrapped(source, "source"))
    target = Folder.of(store)
    if not append and target.location.lower().endswith(_OTHERS):
        raise InputError(f"{os.fspath(store)!r} ends as a file of another format; name the store as in 'mail.zarr'")
    layout = None if block_bytes is None else Layout(block=max(1, parse_bytes(block_bytes) // ENTRY_NBYTES))
    if (table := open_numbers(source, columns)) is not None:
        source, reading = table, replace(columns, label_column=None, weight_column=None, where=None)
        columns = replace(reading, encoding=DocumentParameters.encoding, delimiter=None)
    asked: TextIngest | MatrixIngest
    if is_documents(source, columns):
        asked = _of_texts(source, target, columns, terms, labels, weights, names, append)
    else:
        _refuse_text_parameters(source, columns, terms)
        asked = _of_matrix(source, target, columns, labels, weights, names, append)
    asked = replace(asked, layout=layout, overwrite=overwrite)
    asked.check()
    return asked


def _of_texts(
    source: Any,
    target: Folder,
    columns: DocumentParameters,
    terms: TermParameters,
    labels: Any,
    weights: Any,
    names: Iterable[str] | None,
    append: bool,
) -> TextIngest:
    given = (("label", columns.label_column, labels), ("weight", columns.weight_column, weights))
    for what, column, values in given:
        if column is not None and values is not None:
            raise InputError(f"{what}s= and {what}_column= both say what the {what}s are; give one of them")
    if names is not None:
        raise InputError("names= are for matrices; the features of texts are named by their terms")
    made = make_terms(terms)
    if append:  # which terms have columns was decided when the store was made
        made = replace(made, filters=Filters())
    documents = open_documents(source, columns)
    values = {"labels": unwrapped(labels, "labels"), "weights": unwrapped(weights, "weights")}
    if isinstance(documents, DaskDocuments):  # what is lazy, too, stays beside its partitions
        documents.put_beside(**{what: values.pop(what) for what in list(values) if is_collection(values[what])})
    return TextIngest(documents, target, made, **values, append=append)


def _of_matrix(
    source: Any,
    target: Folder,
    columns: DocumentParameters,
    labels: Any,
    weights: Any,
    names: Iterable[str] | None,
    append: bool,
) -> MatrixIngest:
    label_column, weight_column = columns.label_column, columns.weight_column
    _refuse_columns_of_texts(source, {labels} if isinstance(labels, str) else {label_column, weight_column})
    opened = _open_matrix(*_with_weights(source, weights, weight_column), labels, label_column)
    return MatrixIngest(rows_where(opened, columns.where), target, names, append)


# Endings by which a place would be opened as something else
_OTHERS = tuple(f"{end}{more}" for end in {*FORMATS, *MATRICES, *SUFFIXES} - {".zarr"} for more in ("", *OPENERS))
_OF_MATRICES = ("label_column", "weight_column", "where")


def _refuse_text_parameters(source: Any, *given: DocumentParameters | TermParameters) -> None:
    """Parameters that would do nothing to a matrix."""
    said = {field.name: getattr(part, field.name) != field.default for part in given for field in fields(part)}
    useless = [name for name, differs in said.items() if differs and name not in _OF_MATRICES]
    if useless:
        raise InputError(
            f"{useless[0]}= is about texts, and {_shown(source)} is a matrix; leave it out, or give documents"
        )


def _refuse_columns_of_texts(source: Any, others: Set[str | None]) -> None:
    """Refuse a table with columns of texts, of which nobody said which are the documents."""
    if not is_frame(source):
        return
    texts = [name for name in text_columns(source) if name not in others and is_documents(source[name])]
    if texts:
        raise InputError(
            f"the {type(source).__name__} {of_columns(column_names(source) or ())}, none of them {TEXT!r}; say which "
            f"holds the texts with text_column=, such as text_column={texts[0]!r}; of a matrix, leave columns of texts "
            "out"
        )


def _shown(source: Any) -> str:
    return repr(source) if isinstance(source, (str, os.PathLike)) else f"a {type(source).__name__}"


def _open_matrix(source: Any, weights: Any, labels: Any, label_column: str | None) -> Source:
    if label_column is not None and labels is not None:
        raise InputError("labels= and label_column= both say what the labels are; give one of them")
    return open_source(source, labels=label_column if labels is None else labels, sample_weight=weights, look=False)


def _with_weights(source: Any, weights: Any, column: str | None) -> tuple[Any, Any]:
    """A matrix, and weights that were given, or those in a column of it that is no feature."""
    if column is None:
        return source, weights
    if weights is not None:
        raise InputError("weights= and weight_column= both say what the weights are; give one of them")
    if is_anndata(source):
        return source, column_of(source, column)
    if is_frame(source):
        weights, rest = split_off(source, column)
        return rest, weights
    raise InputError(
        f"weight_column={column!r} names a column of documents, a table or an AnnData in memory, and {_shown(source)} "
        "is none of these; give one weight for each row as weights=, such as "
        "anndata.read_h5ad(path, backed='r').obs[column]"
    )
