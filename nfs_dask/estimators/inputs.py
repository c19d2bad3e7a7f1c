"""What users hand to estimators, checked the way scikit-learn words it."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import column_names, is_collection, is_frame, iterated, listed, unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.documents.in_memory import PLAIN, holds_no_text, holds_texts, text_columns
from nfs_dask.errors import DataWarning, InputError, StoreError, warn
from nfs_dask.estimators.naming import stored_names
from nfs_dask.models.model import Model, Names
from nfs_dask.prediction.reader import Reader, TextSource
from nfs_dask.sources.anndata_memory import is_anndata
from nfs_dask.sources.matrices import as_numbers, as_rows
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import NAMES_AT_A_TIME, Source
from nfs_dask.text.column_names import names_with, some_of
from nfs_dask.text.stemming import other_version

_IN_ORDER = (
    "give the features of the training data, in the same order, such as by an ingest with their names as vocabulary"
)
_BY_NAME = f"{_IN_ORDER}; or Dataset.align(model), as in nfs_dask.open_dataset(X).align(model), finds them by name"


def open_labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Dataset:
    """Documents with labels, from what was given to ``fit``.

    A `Dataset` brings its own labels and weights, unless others are given for its rows.
    """
    if isinstance(y, str):
        raise InputError(
            f"y is a single value, {y!r}; give one label for each row: of a table its column, such as X[{y!r}], the "
            f"other columns as X; of an AnnData adata.obs[{y!r}]"
        )
    if isinstance(X, Dataset):
        if y is None and sample_weight is None:
            return X
        return Dataset(open_source(X.source, one_column(y), sample_weight), X.location, reuse=X.reuse)
    if isinstance(X, (str, os.PathLike)):
        raise InputError(f"X={str(X)!r} is a path; fit what nfs_dask.open_dataset or nfs_dask.ingest makes of it")
    if y is None:
        raise InputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None; give one "
            "label for each row of X, or a Dataset with labels"
        )
    return Dataset(open_source(X, one_column(y), sample_weight))


def numeric(X: Any) -> Any:
    """X itself, without what it is wrapped in, and an array of Python objects as numbers; texts are refused.

    Of an AnnData its matrix, which knows what its columns are called.
    """
    X = unwrapped(X)
    if is_anndata(X):
        return Dataset(open_source(X))
    refuse_texts(X)
    return as_numbers(X) if isinstance(X, np.ndarray) and X.dtype.kind == "O" else X


def one_column(y: Any) -> Any:
    """A column of a matrix as labels, with scikit-learn's warning."""
    y = unwrapped(y, "y")
    if not is_collection(y) and len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
        from sklearn.utils import column_or_1d

        return column_or_1d(np.asarray(y), warn=True)
    return y


def check_fitted(estimator: Any) -> None:
    """Refuse an estimator that has not been fitted."""
    if hasattr(estimator, "model_"):
        return
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "model_")


def note_features(estimator: Any, X: Any, source: Source, *, reset: bool) -> None:
    """Remember how many features there are and what they are called, or compare with what is remembered."""
    if isinstance(X, Dataset):
        if reset:
            vars(estimator).pop("feature_names_in_", None)
    else:
        from sklearn.utils.validation import validate_data

        validate_data(estimator, _named(X), reset=reset, skip_check_array=True)
    if reset:
        estimator.n_features_in_ = source.n_features
        return
    _check_width(estimator, source, _IN_ORDER)
    _check_selected(estimator, source.names, source, _IN_ORDER)
    known = getattr(estimator, "_names", None)
    if known is None or known == stored_names(source):
        return
    with suppress(StoreError):  # the store of the fit may be gone, and with it the names that were not selected
        _compare_names(np.arange(source.n_features), source.names, known.names, source, _IN_ORDER)


def check_features(estimator: Any, X: Any) -> None:
    """Refuse rows of other features than those of the fit: in number, and by name where both have names."""
    if isinstance(X, Dataset):
        _check_width(estimator, X.source, _BY_NAME)
        _check_selected(estimator, X.source.names, X.source, _BY_NAME)
        return
    from sklearn.utils.validation import validate_data

    if not is_collection(X):
        as_rows(X)  # says what is wrong with things that have no rows and columns
    model, columns = estimator.model_, column_names(X)
    compared = columns is not None and hasattr(estimator, "feature_names_in_")  # by scikit-learn
    names = None if compared else names_with(X)
    if names is not None and len(names) == model.n_features:
        _check_selected(estimator, partial(some_of, names), X, _BY_NAME)
    if columns is not None and not compared and model.names is not None:
        X = np.empty((1, len(columns)))  # scikit-learn would warn of names that it has not seen
    validate_data(estimator, _named(X), reset=False, skip_check_array=True)


def _check_width(estimator: Any, source: Source, advice: str) -> None:
    if source.n_features != estimator.n_features_in_:
        raise InputError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input; {advice}"
        )


def _check_selected(estimator: Any, here: Names, X: Any, advice: str) -> None:
    """Refuse rows with other names in the columns that a model has selected; one from a file knows no others."""
    support, names, known = estimator.model_.support, estimator.model_.names, getattr(estimator, "_names", None)

    def selected(columns: Array) -> Sequence[str] | None:
        if names is None:
            return None if known is None else known.names(columns)
        return [names[i] for i in np.searchsorted(support, columns)]

    _compare_names(support, here, selected, X, advice)


def _compare_names(columns: Array, here: Names, before: Names, X: Any, advice: str) -> None:
    """Refuse columns with other names than before. AnnData numbers those that have no names."""
    for first in range(0, len(columns), NAMES_AT_A_TIME):
        some = columns[first : first + NAMES_AT_A_TIME]
        found, wanted = (list(names(some) or ()) for names in (here, before))
        if not found or not wanted or list(map(str, some.tolist())) in (found, wanted):
            return
        if found != wanted:
            raise InputError(_elsewhere(some, found, wanted, X if isinstance(X, Source) else open_source(X), advice))


def _elsewhere(columns: Array, found: list[str], wanted: list[str], source: Source, advice: str) -> str:
    """Say which name is in the place of another one, and where that is."""
    others = [i for i, name in enumerate(wanted) if found[i] != name]
    places = source.columns_named([wanted[i] for i in others]) or {}
    i = next((i for i in others if wanted[i] in places), others[0])
    place = f"which is column {places[wanted[i]]} here" if places else "which is not here"
    return (
        f"column {columns[i]} is named {found[i]!r}, and the model was fitted with {wanted[i]!r} there, {place} (of "
        f"{len(wanted):,} names {len(places):,} are in other columns, and {len(others) - len(places):,} are missing); "
        f"{advice}"
    )


def _named(X: Any) -> Any:
    """Something in memory with the columns of X: scikit-learn knows no Dask data frames."""
    if is_collection(X) and hasattr(X, "columns"):
        import pandas as pd

        return pd.DataFrame(columns=X.columns)
    return X


def rows_of(estimator: Any, X: Any) -> Any:
    """X as prediction and selection take it: rows with the features of the fit, or texts and who reads them."""
    check_fitted(estimator)
    X = listed(unwrapped(X))
    if _is_text(X, estimator.model_):
        return TextSource(reader_of(estimator), X)
    X = numeric(X)
    check_features(estimator, X)
    return X


def _is_text(X: Any, model: Model) -> bool:
    """Whether X is raw text; that which a model of text cannot read is refused."""
    text = model.text
    if text is None:
        return holds_texts(X)
    if holds_texts(X, text.regions) or holds_no_text(X):
        return True
    if is_frame(X) and len(column_names(X) or ()) < model.n_features and text_columns(X):
        raise InputError(
            f"X has columns of texts, {', '.join(map(repr, text_columns(X)))}; give " + _wanted(text.regions)
        )
    return False


def reader_of(estimator: Any) -> Reader:
    """Who reads raw text for a fitted estimator; refused where nobody can."""
    text = estimator.model_.text
    if text is None:
        raise InputError(
            f"X holds texts, and this {type(estimator).__name__} was fitted to a matrix; give a matrix of "
            f"{estimator.model_.n_features:,} features, fit it in a Pipeline after TextVectorizer(), or fit a Dataset "
            "that nfs_dask.ingest made of texts"
        )
    reader: Reader = estimator.reader_
    if text.settings.tokenizer is not None and reader.tokenizer is None:
        raise InputError(
            f"the model was made with the tokenizer {text.settings.tokenizer}, which is never stored; save the model "
            "and load it with load_model(path, tokenizer=...)"
        )
    if told := other_version(text.settings):
        warn(told, DataWarning)
    return reader


def _wanted(regions: Sequence[str]) -> str:
    if tuple(regions) == PLAIN:
        return "the one that the model reads, such as X['text']"
    return f"those that the model reads: {', '.join(map(repr, regions))}"


def refuse_texts(X: Any) -> None:
    """Texts where only numbers do."""
    if not isinstance(X, str) and holds_texts(X):
        raise InputError(
            "X holds texts, and a fit takes numbers; put TextVectorizer() before the estimator in a Pipeline, or fit "
            "the Dataset that nfs_dask.ingest(texts, store, labels=labels) makes"
        )


def check_alpha(alpha: Any) -> float:
    """The smoothing: one number of zero or more."""
    if isinstance(alpha, bool) or not isinstance(alpha, numbers.Real) or not math.isfinite(alpha) or alpha < 0:
        raise InputError(f"alpha={alpha!r}; give one finite number of 0 or more, such as 1.0")
    return float(alpha)


def check_one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name}={value!r}; give one of {', '.join(map(repr, allowed))}")
    return value


def check_floor(floor: Any) -> float:
    """A least variance: one number of zero or more."""
    if isinstance(floor, bool) or not isinstance(floor, numbers.Real) or not math.isfinite(floor) or floor < 0:
        raise InputError(f"variance_floor={floor!r}; give one finite number of 0 or more")
    return float(floor)


def check_binarize(binarize: Any) -> float | None:
    """The threshold above which a value counts as present; None: data are binary."""
    if binarize is None:
        return None
    real = isinstance(binarize, numbers.Real) and not isinstance(binarize, bool)
    if not real or not math.isfinite(binarize) or binarize < 0:
        raise InputError(
            f"binarize={binarize!r}; give a finite threshold of 0 or more (below 0 every absent entry would count "
            "as present), or None for data of 0 and 1"
        )
    return float(binarize)


def forced_columns(always: Any, source: Source) -> Array | None:
    """Indices of the features that are to be selected in any case, from indices or names."""
    if always is None:
        return None
    if isinstance(always, str):
        raise InputError(f"always={always!r} is one name; give a list, always=[{always!r}]")
    if not isinstance(always, Iterable):
        raise InputError(f"always={always!r} is no list; give a list of names or indices of features")
    wanted = list(iterated(always))
    names = [one for one in wanted if isinstance(one, str)]
    found = _columns_named(names, source) if names else {}
    for one in wanted:
        if not isinstance(one, str) and (isinstance(one, bool) or not isinstance(one, numbers.Integral)):
            raise InputError(f"always holds {one!r}; give names or indices of features")
    columns = [found[one] if isinstance(one, str) else int(one) for one in wanted]
    return np.unique(np.array(columns, np.int64))


def _columns_named(names: Sequence[str], source: Source) -> dict[str, int]:
    """Return the columns of some names; refuses those that are not there."""
    found = source.columns_named(names)
    if found is None:
        return _columns_numbered(names, source.n_features)
    if missing := [name for name in names if name not in found]:
        raise InputError(f"always={missing[0]!r} is not the name of a feature; check its spelling")
    return found


def _columns_numbered(names: Sequence[str], n_features: int) -> dict[str, int]:
    """Where some features without names are, by what they are called where they are shown."""
    known = {f"x{column}": column for column in (int(name[1:]) for name in names if name[1:].isdecimal())}
    for name in names:
        if not known.get(name, n_features) < n_features:
            raise InputError(
                f"always={name!r} is not a feature; as they have no names, they are called 'x0' to 'x{n_features - 1}'"
            )
    return known
