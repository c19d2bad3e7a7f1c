"""What estimators remember of raw text at the fit: how it is read at prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nfs_dask.arrays.block import Array
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.models.model import Model
from nfs_dask.prediction.reader import Reader
from nfs_dask.sources.source import Source
from nfs_dask.text.backtracking import may_take_for_ever
from nfs_dask.text.features import TextFeatures, terms_of
from nfs_dask.text.tfidf import inverse_document_frequencies


def text_features(
    source: Source, support: Array, names: Sequence[str] | None, lengths: bool = False
) -> TextFeatures | None:
    """How raw text becomes the selected columns of a source; None where its rows were not texts.

    Parameters
    ----------
    source
        The data of the fit.
    support : (k,) columns, ascending
    names
        Those of the selected columns; None where they are too many. Terms are then looked up in the vocabulary.
    lengths
        Whether it matters how many other terms of the vocabulary a document has.
    """
    if (facts := source.text) is None:
        return None
    idf, terms, place = None, None, None
    if facts.settings.hashed is None and names is not None:
        terms = terms_of(names, support, facts.n_terms, facts.regions)
    if facts.settings.tfidf or (facts.settings.hashed is None and (names is None or lengths)):
        table = source.table()
        assert table is not None, "a store of texts keeps its vocabulary, with document frequencies"
        place = table.terms.folder.location
        if facts.settings.tfidf:
            idf = inverse_document_frequencies(table.frequencies(support % facts.n_terms), facts.n_documents)
    return TextFeatures(facts.settings, facts.n_terms, facts.n_documents, terms, idf, facts.regions, place, lengths)


def reader_for(model: Model, tokenizer: Callable[..., Any] | None = None) -> Reader | None:
    """Who reads raw text for a model; None for models of other data. Refuses a tokenizer the model has no use for."""
    wanted = None if model.text is None else model.text.settings.tokenizer
    if tokenizer is not None:
        if not callable(tokenizer):
            raise InputError(f"tokenizer={tokenizer!r}; give a function from a text to a list of tokens")
        endless = model.text is not None and may_take_for_ever(model.text.settings.token_pattern)
        if wanted is None and not endless:
            what = "text" if model.text is None else "text with a tokenizer of its own"
            raise InputError(f"the model was not made from {what}; leave tokenizer= out")
        given = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
        if wanted is not None and given.rpartition(".")[2] != wanted.rpartition(":")[2].rpartition(".")[2]:
            warn(f"the model was made with the tokenizer {wanted}, and is given {given}", DataWarning)
    return None if model.text is None else Reader(model, tokenizer)
