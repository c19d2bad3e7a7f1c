"""Models at rest: JSON and Zarr arrays, with a version, and nothing that could run.

    model.json            everything but the arrays; written last, and naming the folders
    arrays-<random>/      one Zarr group
    vocabulary-<random>/  all terms, of models of texts whose features depend on all terms of a document

Saving over a model fills new folders and then replaces `model.json` in one step: whoever loads gets the old one or the
new one. A model looks terms up in the folder it was loaded from, and keeps that vocabulary when it is saved there
again. Another model in its place takes the vocabulary away from whoever still uses the old one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import uuid
from typing import Any

import numpy as np

from nfs_dask.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.models.base import Evidence
from nfs_dask.models.bayes import NaiveBayesModel
from nfs_dask.storage.folder import Folder
from nfs_dask.storage.states import read_array, write_arrays
from nfs_dask.storage.textmodels import keep_vocabulary, text_features, text_json, vocabulary_folder

MODEL = "model.json"
KIND = "nfs-dask model"
FORMAT = 1
MOST_JSON = 256 << 20
_FOLDER = re.compile(r"arrays-[0-9a-f]{16}")
_LABELS = {"b": bool, "i": int, "u": int, "f": float, "U": str}


def save_model(model: NaiveBayesModel, parameters: dict[str, Any], location: str | os.PathLike[str]) -> None:
    """Save a model and the parameters it was fitted with; replaces a model that is there, and nothing else."""
    folder = Folder.of(location)
    old = _old_parts(folder)
    name = f"arrays-{uuid.uuid4().hex[:16]}"
    arrays = _arrays(model)
    new = [folder / name]
    try:
        write_arrays(folder / name, arrays)
        vocabulary = keep_vocabulary(model.text, folder)
        new += [] if vocabulary is None else [vocabulary]
        header = {**_header(model, parameters, name, arrays), "text": text_json(model, vocabulary)}
        folder.write(MODEL, json.dumps(header).encode())
    except BaseException:
        _remove(new, old)
        raise
    _remove(old, new)


def read_model(location: str | os.PathLike[str]) -> tuple[NaiveBayesModel, dict[str, Any]]:
    """A saved model, and the parameters it was fitted with. Anything that is not one is refused."""
    folder = Folder.of(location)
    header = _read_header(folder)
    try:
        arrays = _read_arrays(folder, header)
        model = _model(folder, header, arrays)
        _check(model)
        return model, dict(header["parameters"])
    except StoreError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(
            f"{folder.path(MODEL)} is damaged ({type(error).__name__}: {error}); save the model again"
        ) from error


def is_model(location: str | os.PathLike[str]) -> bool:
    """Whether a model, of any version, lies there."""
    folder = Folder.of(location)
    return folder.exists(MODEL)


def _old_parts(folder: Folder) -> list[Folder]:
    """The folders of the model that is about to be replaced; refuses to write over anything else."""
    if folder.exists(MODEL):
        header = _read_header(folder)
        vocabulary = vocabulary_folder(header.get("text"), folder)
        return [folder / header["arrays_in"]] + ([] if vocabulary is None else [vocabulary])
    if folder.names() or (not folder.remote and os.path.exists(folder.location) and not os.path.isdir(folder.location)):
        raise StoreError(f"{folder.location} exists and is not a model; name a new place, or a model to replace")
    return []


def _remove(parts: list[Folder], but: list[Folder]) -> None:
    for part in parts:
        if part not in but:
            part.remove()


def _arrays(model: NaiveBayesModel) -> dict[str, Array]:
    idf = None if model.text is None else model.text.idf
    optional = {"absent": model.absent, "point": model.evidence.point, "idf": idf}
    return {
        "support": model.support,
        "present": model.present,
        "class_count": model.class_count,
        "class_log_prior": model.class_log_prior,
        **{name: array for name, array in optional.items() if array is not None},
    }


def _header(model: NaiveBayesModel, parameters: dict[str, Any], name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    evidence = dataclasses.asdict(dataclasses.replace(model.evidence, point=None))
    return {
        "kind": KIND,
        "format": FORMAT,
        "method": model.method,
        "parameters": parameters,
        "classes": {"type": model.classes.dtype.str, "labels": model.classes.tolist()},
        "n_features": model.n_features,
        "alpha": model.alpha,
        "threshold": model.threshold,
        "binary_only": model.binary_only,
        "names": model.names,
        "evidence": evidence,
        "provenance": dict(model.provenance),
        "arrays_in": name,
        "arrays": {key: list(array.shape) for key, array in arrays.items()},
    }


def _read_header(folder: Folder) -> dict[str, Any]:
    if not folder.exists(MODEL):
        raise StoreError(f"{folder.location} holds no model; give the folder that save() or nfs-dask fit wrote")
    if folder.size(MODEL) > MOST_JSON:
        raise StoreError(f"{folder.path(MODEL)} is larger than any model of ours; it is not one")
    try:
        header = json.loads(folder.read(MODEL))
        kind, version, place = header["kind"], header["format"], header["arrays_in"]
        vocabulary_folder(header.get("text"), folder)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{folder.path(MODEL)} is not a model of ours, or is damaged ({error})") from error
    if kind != KIND:
        raise StoreError(f"{folder.path(MODEL)} describes {kind!r}, not a model of ours")
    if version != FORMAT:
        raise StoreError(
            f"{folder.location} is a model of format {version}; this version reads {FORMAT}: upgrade, or fit again"
        )
    if not isinstance(place, str) or not _FOLDER.fullmatch(place):
        raise StoreError(f"{folder.path(MODEL)} names arrays in {place!r}, which is no folder of a model")
    return dict(header)


def _read_arrays(folder: Folder, header: dict[str, Any]) -> dict[str, Array]:
    """The arrays, of the shapes that classes and support ask for and no others."""
    n_classes, support = len(header["classes"]["labels"]), header["arrays"]["support"]
    k = support[0]
    shapes = {
        "support": [k],
        "present": [n_classes, k],
        "absent": [n_classes, k],
        "class_count": [n_classes],
        "class_log_prior": [n_classes],
        "point": [n_classes],
        "idf": [k],
    }
    wrong = {name: shape for name, shape in header["arrays"].items() if shapes.get(name) != shape}
    if wrong or not all(type(n) is int and 0 < n <= header["n_features"] for n in (k, *support)):
        raise StoreError(f"{folder.path(MODEL)} describes arrays {wrong or header['arrays']} that no model has")
    arrays = {
        name: read_array(folder / header["arrays_in"] / name, shape[-1]) for name, shape in header["arrays"].items()
    }
    if any(list(array.shape) != shapes[name] for name, array in arrays.items()):
        raise StoreError(f"{folder.path(header['arrays_in'])} holds arrays of other shapes than {MODEL} says")
    return arrays


def _model(folder: Folder, header: dict[str, Any], arrays: dict[str, Array]) -> NaiveBayesModel:
    evidence = Evidence(**{**header["evidence"], "point": arrays.get("point")})
    names = None if header["names"] is None else tuple(str(name) for name in header["names"])
    n_features, support = int(header["n_features"]), arrays["support"]
    return NaiveBayesModel(
        method=str(header["method"]),
        classes=_labels(header["classes"]["type"], header["classes"]["labels"]),
        class_count=arrays["class_count"],
        class_log_prior=arrays["class_log_prior"],
        n_features=n_features,
        alpha=float(header["alpha"]),
        support=support,
        present=arrays["present"],
        absent=arrays.get("absent"),
        evidence=evidence,
        threshold=None if header["threshold"] is None else float(header["threshold"]),
        binary_only=bool(header["binary_only"]),
        names=names,
        text=text_features(header.get("text"), folder, support, names, arrays.get("idf"), n_features),
        provenance=dict(header["provenance"]),
    )


def _labels(dtype: str, labels: list[Any]) -> Array:
    """Classes of a plain type; nothing is converted, so that a label stays what it was."""
    kind = np.dtype(dtype).kind
    if kind not in _LABELS or not all(type(label) is _LABELS[kind] for label in labels):
        raise ValueError(f"labels of type {dtype}")
    return np.array(labels, np.dtype(dtype) if kind != "U" else np.str_)


def _check(model: NaiveBayesModel) -> None:
    """What kernels rely on: a support that increases within the features, and weights that are numbers."""
    support = model.support
    inside = support[0] >= 0 and support[-1] < model.n_features and bool(np.all(support[1:] > support[:-1]))
    weights = (model.present, *(() if model.absent is None else (model.absent,)), model.class_log_prior)
    if support.dtype != np.int64 or not inside or any(w.dtype.kind != "f" or np.isnan(w).any() for w in weights):
        raise ValueError("its support or its weights are not those of a model")
    if model.names is not None and len(model.names) != len(support):
        raise ValueError(f"{len(model.names)} names for {len(support)} features")
