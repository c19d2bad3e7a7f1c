"""Where a model comes from: data, settings, versions, passes, memory and time, as names and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nfs_dask.estimators.classifier import parameters_of
from nfs_dask.markup import shortened_name
from nfs_dask.units import format_bytes, format_seconds

MOST_PASSES = 40  # rows of the table


def origin_of(model: Any) -> list[tuple[str, str]]:
    """Facts about a fitted estimator, those that are known of it."""
    return [(name, shortened_name(value, 300)) for name, value in _facts(model)]


def passes_of(model: Any) -> list[list[str]]:
    """The passes of the fit: name, seconds, share of the data, tasks, and memory of each process."""
    provenance = model.provenance_
    plan, reused = provenance.get("plan"), bool(provenance.get("reused"))
    passes = provenance.get("passes") or [
        {"name": name, "seconds": seconds, "share": 0.0 if reused else 1.0, "plan": plan}
        for name, seconds in (provenance.get("seconds") or {}).items()
    ]
    return [_pass(one) for one in passes[:MOST_PASSES]]


def _facts(model: Any) -> Iterator[tuple[str, str]]:
    provenance, documents = model.provenance_, model.class_count_.sum()
    yield "documents", f"{provenance.get('rows', 0):,}"
    if documents != provenance.get("rows"):
        yield "their weights together", f"{documents:,.6g}"
    yield "features of the data", f"{model.model_.n_features:,}"
    if provenance.get("fingerprint"):
        yield "fingerprint of the data", str(provenance["fingerprint"])
    for what, column in (provenance.get("columns") or {}).items():
        if column:
            yield f"column of the {what}", str(column)
    for name, value in parameters_of(model).items():
        if name != "engine" and value is not None:
            yield f"setting {name}", str(value)
    for name, version in (provenance.get("versions") or {}).items():
        yield f"version of {name}", str(version)
    if "reused" in provenance:
        yield "counts", "kept from before, no document was read" if provenance["reused"] else "from the documents"
    seconds = provenance.get("seconds")
    if isinstance(seconds, Mapping):
        yield "time of all passes", format_seconds(sum(seconds.values()))
    if "reads" in provenance:
        yield "reads of the data", f"{provenance['reads']:.3g}"


def _pass(one: Mapping[str, Any]) -> list[str]:
    plan = one.get("plan") or {}
    peak = plan.get("peak_nbytes")
    return [
        shortened_name(one["name"], 60),
        format_seconds(one["seconds"]),
        f"{one['share']:.3g}",
        f"{plan['tasks']:,}" if "tasks" in plan else "-",
        "-" if peak is None else format_bytes(peak),
    ]
