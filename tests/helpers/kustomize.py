"""As much of kustomize as deploy/kubernetes uses, for machines without kubectl; where it is, the two are compared."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]


def kustomized(folder: Path) -> list[Manifest]:
    """The manifests of an overlay."""
    return _with(folder, [])


def _with(folder: Path, before: list[Manifest]) -> list[Manifest]:
    """Those of a kustomization, laid over those that were there before."""
    said = yaml.safe_load((folder / "kustomization.yaml").read_text())
    known = {"apiVersion", "kind", "resources", "components", "patches", "replacements", "images"}
    assert set(said) <= known, f"{folder}: this helper does not know {set(said) - known}"
    manifests = list(before)
    for name in said.get("resources", ()):
        manifests += kustomized(folder / name) if (folder / name).is_dir() else _documents(folder / name)
    for name in said.get("components", ()):
        manifests = _with(folder / name, manifests)
    for one in said.get("patches", ()):
        manifests = _patched(manifests, one)
    for one in said.get("replacements", ()):
        _replace(manifests, one)
    for one in said.get("images", ()):
        manifests = _with_image(manifests, one["name"], f"{one['newName']}@{one['digest']}")
    return manifests


def _with_image(value: Any, old: str, new: str) -> Any:
    """With a new image in place of any version of the old one."""
    if isinstance(value, list):
        return [_with_image(one, old, new) for one in value]
    if isinstance(value, dict):
        changed = {"image": new} if str(value.get("image", "")).startswith(f"{old}:") else {}
        return {key: _with_image(one, old, new) for key, one in value.items()} | changed
    return value


def _documents(path: Path) -> list[Manifest]:
    found = list(yaml.safe_load_all(path.read_text()))
    return list(json.loads(json.dumps(found)))  # what YAML refers to twice is two things


def _patched(manifests: list[Manifest], patch: Manifest) -> list[Manifest]:
    content = yaml.safe_load(patch["patch"])
    if isinstance(content, dict):
        assert content["$patch"] == "delete"
        return [one for one in manifests if (one["kind"], one["metadata"]) != (content["kind"], content["metadata"])]
    targets = [one for one in manifests if one["kind"] == patch["target"]["kind"]]
    assert targets, f"there is no {patch['target']} to patch"
    for one in targets:
        for operation in content:
            _operate(one, **operation)
    return manifests


def _operate(manifest: Manifest, op: str, path: str, value: Any = None) -> None:
    """One operation of RFC 6902."""
    *parents, last = path.removeprefix("/").split("/")
    place: Any = manifest
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    key: Any = int(last) if isinstance(place, list) and last != "-" else last
    if op == "add" and key == "-":
        place.append(value)
    elif op == "add":
        assert isinstance(place, dict) and key not in place, f"{path} is there already"
        place[key] = copy.deepcopy(value)
    elif op == "replace":
        place[key]  # has to be there
        place[key] = copy.deepcopy(value)
    else:
        assert op == "remove"
        del place[key]


def _replace(manifests: list[Manifest], said: Manifest) -> None:
    (source,) = [one for one in manifests if one["kind"] == said["source"]["kind"]]
    for part in said["source"]["fieldPath"].split("."):
        source = source[part]
    for target in said["targets"]:
        (place,) = [one for one in manifests if one["kind"] == target["select"]["kind"]]
        for path in target["fieldPaths"]:
            _set(place, re.findall(r"\[[^]]+\]|[^.\[\]]+", path), source)


def _set(place: Any, parts: list[str], value: Any) -> None:
    """Where a path such as ``containers.[name=job].image`` leads to; what was text stays text."""
    *parents, last = parts
    for part in parents:
        place = _entry(place, part) if part.startswith("[") else place.setdefault(part, {})
    place[last] = str(value) if isinstance(place.get(last), str) else copy.deepcopy(value)


def _entry(entries: list[Manifest], said: str) -> Manifest:
    key, _, value = said.strip("[]").partition("=")
    return next(one for one in entries if one[key] == value)
