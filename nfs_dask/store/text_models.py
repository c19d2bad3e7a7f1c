"""What a model file keeps in order to read raw text: settings, idf, and where needed a copy of the vocabulary."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.models.model import Model
from nfs_dask.store.stored_terms import StoredTerms
from nfs_dask.text.features import TextFeatures, check_regions, terms_of
from nfs_dask.text.settings import TextSettings

_FOLDER = re.compile(r"vocabulary-[0-9a-f]{16}")


def keep_vocabulary(text: TextFeatures | None, folder: Folder) -> Folder | None:
    """The folder inside a model's own where its vocabulary is, copied there unless it was; None where it needs none."""
    if text is None or not text.needs_vocabulary or text.vocabulary is None:
        return None
    terms = StoredTerms.of(text.vocabulary)
    _check_same_vocabulary(terms, text)
    kept = terms.folder
    if kept.location.rpartition("/")[0] == folder.location.rstrip("/") and _FOLDER.fullmatch(_name(kept)):
        return kept
    copied = folder / f"vocabulary-{uuid.uuid4().hex[:16]}"
    try:
        terms.copy(copied)
    except BaseException:
        copied.remove()
        raise
    return copied


def text_json(model: Model, vocabulary: Folder | None) -> dict[str, Any] | None:
    """What `text_features` makes the same of, together with the idf among the model's arrays."""
    text = model.text
    if text is None:
        return None
    if text.terms != _terms(text.settings, text.n_terms, text.regions, model.support, model.names):
        raise InputError("the terms of a model are not those that its selected features are named by")
    return {
        "settings": text.settings.to_json(),
        "n_terms": text.n_terms,
        "n_documents": text.n_documents,
        "regions": list(text.regions),
        "lengths": text.lengths,
        "vocabulary": None if vocabulary is None else _name(vocabulary),
        "vocabulary_digest": None if vocabulary is None else StoredTerms.open(vocabulary).digest,
    }


def vocabulary_folder(found: dict[str, Any] | None, folder: Folder) -> Folder | None:
    """Where the model in a folder keeps its vocabulary."""
    name = None if found is None else found["vocabulary"]
    if name is None:
        return None
    if not isinstance(name, str) or not _FOLDER.fullmatch(name):
        raise StoreError(f"{folder.location} names a vocabulary in {name!r}, which is no folder of a model")
    return folder / name


def text_features(
    found: dict[str, Any] | None,
    folder: Folder,
    support: Array,
    names: Sequence[str] | None,
    idf: Array | None,
    n_features: int,
) -> TextFeatures | None:
    """From a model file: anything but what `text_json` makes raises one of what damaged JSON raises, or StoreError."""
    if found is None:
        return None
    settings, regions = TextSettings.from_json(found["settings"]), tuple(found["regions"])
    check_regions(regions)
    n_terms, n_documents, lengths = found["n_terms"], found["n_documents"], found["lengths"]
    whole = all(type(n) is int and 0 <= n < 2**62 for n in (n_terms, n_documents)) and type(lengths) is bool
    if not whole or len(regions) * n_terms != n_features:
        raise ValueError(f"{n_terms} terms of {n_documents} documents for {n_features} features")
    if (idf is not None) != settings.tfidf or (idf is not None and not (idf.dtype.kind == "f" and _positive(idf))):
        raise ValueError("its idf is not that of tf-idf")
    vocabulary = vocabulary_folder(found, folder)
    terms = _terms(settings, n_terms, regions, support, names)
    place = None if vocabulary is None else vocabulary.location
    text = TextFeatures(settings, n_terms, n_documents, terms, idf, regions, place, lengths)
    if vocabulary is not None:
        terms_there = StoredTerms.open(vocabulary)
        _check_same_vocabulary(terms_there, text)
        digest = found.get("vocabulary_digest")  # models from before there was one have none
        if digest is not None and terms_there.digest != digest:
            raise StoreError(f"{vocabulary.location} is the vocabulary of another model; restore it from a copy")
        terms_there.verify()
    return text


def _terms(
    settings: TextSettings, n_terms: int, regions: Sequence[str], support: Array, names: Sequence[str] | None
) -> tuple[str, ...] | None:
    return None if names is None or settings.hashed is not None else terms_of(names, support, n_terms, regions)


def _positive(idf: Array) -> bool:
    return bool(np.all(np.isfinite(idf) & (idf > 0)))


def _check_same_vocabulary(terms: StoredTerms, text: TextFeatures) -> None:
    if (terms.n_terms, terms.n_documents) != (text.n_terms, text.n_documents):
        raise StoreError(
            f"{terms.folder.location} has {terms.n_terms} terms of {terms.n_documents} documents, and the model was "
            f"fitted to {text.n_terms} of {text.n_documents}: the store was made anew since; fit again"
        )


def _name(folder: Folder) -> str:
    return folder.location.rpartition("/")[2]
