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
import os
import re
import uuid
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import MOST_JSON, sealed, unsealed
from nfs_dask.models.families import Family
from nfs_dask.models.model import Evidence, Model
from nfs_dask.registry import METHODS, family_of
from nfs_dask.store.header import MODEL, ROOT
from nfs_dask.store.states import read_array, write_arrays
from nfs_dask.store.text_models import keep_vocabulary, text_features, text_json, vocabulary_folder

KIND = "nfs-dask model"
FORMAT = 1
_FOLDER = re.compile(r"arrays-[0-9a-f]{16}")
_LABELS = {"b": bool, "i": int, "u": int, "f": float, "U": str}


def save_model(model: Model, parameters: dict[str, Any], location: str | os.PathLike[str]) -> None:
    """Save a model and the parameters it was fitted with; replaces a model that is there, and nothing else."""
    folder = Folder.of(location)
    old, was_there = _old_parts(folder), os.path.exists(folder.location)
    name = f"arrays-{uuid.uuid4().hex[:16]}"
    arrays = _arrays(model)
    new = [folder / name]
    try:
        checksums = write_arrays(folder / name, arrays)
        vocabulary = keep_vocabulary(model.text, folder)
        new += [] if vocabulary is None else [vocabulary]
        header = {
            **_header(model, parameters, name, arrays),
            "checksums": checksums,
            "text": text_json(model, vocabulary),
        }
        folder.write(MODEL, sealed(header))
    except BaseException:
        _remove(new, old)
        if not was_there:
            folder.remove_empty()
        raise
    _remove(old, new)


def read_model(location: str | os.PathLike[str]) -> tuple[Model, dict[str, Any]]:
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


def check_place(location: str | os.PathLike[str]) -> None:
    """Refuse a place that holds anything but a model: what `save_model` would do when all work is done."""
    _old_parts(Folder.of(location))


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


def _arrays(model: Model) -> dict[str, Array]:
    common = {
        "support": model.support,
        "class_count": model.class_count,
        "point": model.evidence.point,
        "second_dual": None if model.evidence.second_dual is None else np.stack(model.evidence.second_dual),
        "idf": None if model.text is None else model.text.idf,
    }
    arrays = {**common, **family_of(model.method).arrays(model)}
    return {name: array for name, array in arrays.items() if array is not None}


def _header(model: Model, parameters: dict[str, Any], name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    evidence = dataclasses.asdict(dataclasses.replace(model.evidence, point=None, second_dual=None))
    return {
        "kind": KIND,
        "format": FORMAT,
        "method": model.method,
        "parameters": parameters,
        "classes": {"type": model.classes.dtype.str, "labels": model.classes.tolist()},
        "n_features": model.n_features,
        **family_of(model.method).facts(model),
        "names": model.names,
        "evidence": evidence,
        "provenance": dict(model.provenance),
        "arrays_in": name,
        "arrays": {key: list(array.shape) for key, array in arrays.items()},
    }


def _read_header(folder: Folder) -> dict[str, Any]:
    if not folder.exists(MODEL):
        what = " but a dataset" if folder.exists(ROOT) else ""
        raise StoreError(f"{folder.location} holds no model{what}; give the folder that save() or nfs-dask fit wrote")
    if folder.size(MODEL) > MOST_JSON:
        raise StoreError(f"{folder.path(MODEL)} is larger than any model of ours; it is not one")
    try:
        header = unsealed(folder.read(MODEL), since="checksums")
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
    n_classes, n_features, support = len(header["classes"]["labels"]), header["n_features"], header["arrays"]["support"]
    k = support[0]
    shapes = {
        "support": [k],
        "class_count": [n_classes],
        "point": [n_classes],
        "second_dual": [2, min(max(header["arrays"].get("second_dual", [k])[-1], k), n_features)],
        "idf": [k],
        **_family(folder, header).shapes(header, n_classes, k, n_features),
    }
    wrong = {name: shape for name, shape in header["arrays"].items() if shapes.get(name) != shape}
    if wrong or not all(type(n) is int and 0 < n <= n_features for n in (k, *support)):
        raise StoreError(f"{folder.path(MODEL)} describes arrays {wrong or header['arrays']} that no model has")
    checksums = header.get("checksums", {})  # models from before there were any have none
    arrays = {
        name: read_array(folder / header["arrays_in"] / name, shape[-1], checksums.get(name))
        for name, shape in header["arrays"].items()
    }
    if any(list(array.shape) != shapes[name] for name, array in arrays.items()):
        raise StoreError(f"{folder.path(header['arrays_in'])} holds arrays of other shapes than {MODEL} says")
    return arrays


def _family(folder: Folder, header: dict[str, Any]) -> Family:
    method = header["method"]
    if method not in METHODS:
        raise StoreError(
            f"{folder.location} is a model of method {method!r}; this version knows {', '.join(METHODS)}: upgrade"
        )
    family: Family = family_of(method)
    return family


def _model(folder: Folder, header: dict[str, Any], arrays: dict[str, Array]) -> Model:
    names = None if header["names"] is None else tuple(str(name) for name in header["names"])
    n_features, support = int(header["n_features"]), arrays["support"]
    common = {
        "method": header["method"],
        "classes": _labels(header["classes"]["type"], header["classes"]["labels"]),
        "class_count": arrays["class_count"],
        "n_features": n_features,
        "support": support,
        "evidence": _evidence(header["evidence"], arrays.get("point"), arrays.get("second_dual")),
        "names": names,
        "text": text_features(header.get("text"), folder, support, names, arrays.get("idf"), n_features),
        "provenance": dict(header["provenance"]),
    }
    return _family(folder, header).make(header, arrays, common)


def _evidence(found: dict[str, Any], point: Array | None, second_dual: Array | None) -> Evidence:
    second = None if second_dual is None else (second_dual[0].astype(np.int64), second_dual[1])
    evidence = Evidence(**{**found, "point": point, "second_dual": second})
    if not all(type(number) in (int, float) for number in (evidence.objective, evidence.gap, evidence.n_evaluations)):
        raise ValueError(f"its evidence is {found}")
    return evidence


def _labels(dtype: str, labels: list[Any]) -> Array:
    """Classes of a plain type; nothing is converted, so that a label stays what it was."""
    kind = np.dtype(dtype).kind
    if kind not in _LABELS or not all(type(label) is _LABELS[kind] for label in labels):
        raise ValueError(f"labels of type {dtype}")
    return np.array(labels, np.dtype(dtype) if kind != "U" else np.str_)


def _check(model: Model) -> None:
    """What kernels rely on: a support that increases within the features, and classes that have documents."""
    support, count = model.support, model.class_count
    inside = support[0] >= 0 and support[-1] < model.n_features and bool(np.all(support[1:] > support[:-1]))
    if support.dtype != np.int64 or not inside:
        raise ValueError("its support is not that of a model")
    if not (np.isfinite(count).all() and (count >= 0).all() and (count > 0).any()):
        raise ValueError("none of its classes has documents, or they are no numbers")
    if model.names is not None and len(model.names) != len(support):
        raise ValueError(f"{len(model.names)} names for {len(support)} features")
