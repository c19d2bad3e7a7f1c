"""Models as graphs of ONNX: selected columns or texts come in, labels, scores and probabilities go out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nfs_dask._version import __version__
from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.export.additive import AdditiveScores, additive_scores, refuse_exact_features, refuse_unselected
from nfs_dask.export.onnx_texts import DOMAINS, counts_of_texts, weights_of_counts
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.text.features import TextFeatures

OPSET, IR_VERSION = 17, 8  # of 2022: what runs models has them for long
INPUT, TEXT = "features", "text"


def onnx_model(model: Model, names: Sequence[str], dtype: str, text: TextFeatures | None = None) -> Any:
    """The graph; all within it is reckoned in double precision.

    Parameters
    ----------
    model
    names : (k,)
        Of the selected features, which the file keeps.
    dtype : "float32" or "float64"
        What rows come in.
    text
        How texts, which come in instead, become the selected columns.
    """
    refuse_unselected(model, "ONNX")
    refuse_exact_features(model)
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype={dtype!r}; give 'float32' or 'float64'")
    try:
        from onnx import checker, helper
    except ImportError:
        raise InputError("to_onnx needs onnx; install it with: pip install 'nfs-dask[onnx]'") from None
    graph = _Graph()
    if text is None:
        inputs = [_value(INPUT, np.dtype(dtype), ["n", len(model.support)])]
        x = graph.add("Cast", INPUT, to=_kind(np.float64))
    else:
        places = [f"{TEXT}_{region}" for region in text.regions] if text.n_regions > 1 else [TEXT]
        inputs = [_value(place, object, ["n"]) for place in places]
        x = _of_texts(graph, text, model.support // text.n_terms, places)
    graph.add("Identity", _scores(graph, model, x), out="scores")
    best = graph.add("ArgMax", "scores", axis=1, keepdims=0)  # the first of equal ones
    graph.add("Gather", graph.constant(_labels(model)), best, out="label")
    outputs = [_value("label", _labels(model).dtype, ["n"]), _value("scores", np.float64, ["n", model.n_classes])]
    if model.has_probabilities:
        halves = model.log_odds(np.ones(1))[0]
        odds = graph.add("Mul", "scores", graph.constant(np.array(halves)))
        graph.add("Softmax", odds, axis=1, out="probabilities")
        outputs.append(_value("probabilities", np.float64, ["n", model.n_classes]))
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"nfs_dask_{model.method}",
            inputs,
            outputs,
            graph.constants,
            value_info=graph.types,
        ),
        opset_imports=[helper.make_opsetid(*pair) for pair in ({"": OPSET} if text is None else DOMAINS).items()],
        ir_version=IR_VERSION if text is None else 9,
        producer_name="nfs-dask",
        producer_version=__version__,
    )
    helper.set_model_props(made, {"feature_names": json.dumps(list(names)), "method": model.method})
    checker.check_model(made, full_check=True)
    return made


class _Graph:
    """Nodes that are added one after another, and constants; each has a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.types: list[Any] = []

    def add(self, kind: str, *inputs: str, out: str | None = None, also: Sequence[str] = (), **attributes: Any) -> str:
        """The name of the first output; ``also`` names further ones."""
        from onnx import helper

        name = out or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name, *also], **attributes))
        if kind == "Tokenizer":  # of which onnx does not know that it makes strings
            self.types.append(_value(name, object, None))
        return name

    def constant(self, array: Array) -> str:
        from onnx import helper, numpy_helper

        name = f"constant_{len(self.constants)}"
        if array.dtype == object:
            encoded = [text.encode() for text in array]
            tensor = helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, encoded)
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def product(self, x: str, weights: Array, start: Array) -> str:
        """``x @ weights.T + start``."""
        return self.add("Add", self.add("MatMul", x, self.constant(weights.T)), self.constant(start))


def _of_texts(graph: _Graph, text: TextFeatures, regions: Array, places: Sequence[str]) -> str:
    """The columns of the selected terms; regions without any have none."""
    assert text.terms is not None
    terms = [
        [term for term, r in zip(text.terms, regions, strict=True) if r == region] for region in range(len(places))
    ]
    parts = [
        counts_of_texts(graph, place, text.settings, wanted)
        for place, wanted in zip(places, terms, strict=True)
        if wanted
    ]
    counts = graph.add("Concat", *parts, axis=1)
    return counts if text.idf is None else weights_of_counts(graph, counts, text.settings, text.idf)


def _scores(graph: _Graph, model: Model, x: str) -> str:
    """The scores of rows, (n, C), -inf for classes that are ruled out."""
    if isinstance(model, CentersModel):
        return _ruled(graph, _of_centers(graph, model, x), model)
    scores = additive_scores(model)
    if scores is not None:
        return _of_additive(graph, scores, x)
    assert isinstance(model, HybridModel), "all other models are additive"
    return _ruled(graph, _of_shares(graph, model, x), model)


def _ruled(graph: _Graph, scores: str, model: Model) -> str:
    """The same, with classes without documents ruled out."""
    unseen = model.class_count == 0
    return graph.add("Add", scores, graph.constant(np.where(unseen, -np.inf, 0.0))) if unseen.any() else scores


def _of_additive(graph: _Graph, scores: AdditiveScores, x: str) -> str:
    if scores.threshold is not None:
        present = graph.add("Greater", x, graph.constant(np.array(scores.threshold)))
        x = graph.add("Cast", present, to=_kind(np.float64))
    found = graph.product(x, scores.steps.finite, scores.start.finite)
    if scores.certain and not scores.start.zeros.any():
        return found
    if scores.threshold is None:
        there = graph.add("Not", graph.add("Equal", x, graph.constant(np.array(0.0))))
        x = graph.add("Cast", there, to=_kind(np.float64))
    zeros = graph.product(x, scores.steps.zeros.astype(np.float64), scores.start.zeros.astype(np.float64))
    out = graph.add("Greater", zeros, graph.constant(np.array(0.0)))
    found = graph.add("Where", out, graph.constant(np.array(-np.inf)), found)
    if scores.otherwise is None:
        return found
    possible = graph.add("Cast", graph.add("Not", out), to=_kind(np.float64))
    how_many = graph.add("ReduceSum", possible, graph.constant(np.array([1])), keepdims=1)
    nowhere = graph.add("Equal", how_many, graph.constant(np.array(0.0)))
    return graph.add("Where", nowhere, graph.constant(scores.otherwise), found)


def _of_centers(graph: _Graph, model: CentersModel, x: str) -> str:
    """About the common center, so that no digits are lost to what values have in common."""
    beyond = graph.add("Sub", x, graph.constant(model.pooled))
    apart = model.centers - model.pooled
    if model.method == "l1":
        axes = graph.constant(np.array([1]))
        by_class = graph.add("Abs", graph.add("Sub", graph.add("Unsqueeze", beyond, axes), graph.constant(apart)))
        far = graph.add("ReduceSum", by_class, graph.constant(np.array([2])), keepdims=0)
        common = graph.add("ReduceSum", graph.add("Abs", beyond), axes, keepdims=1)
        return graph.add("Sub", common, far)
    slopes = apart
    if model.variances is not None:
        slopes = np.divide(apart, model.variances, where=model.variances > 0, out=np.zeros(apart.shape))
    return graph.product(beyond, 2 * slopes, -(slopes * apart).sum(axis=1))


def _of_shares(graph: _Graph, model: HybridModel, x: str) -> str:
    """Regions whose sums are divided by their numbers of words."""
    n_regions, logs = model.n_regions, model.log_probabilities
    n_words = len(model.support) // n_regions
    tables = np.broadcast_to(logs[:, None, :] if logs.ndim == 2 else logs, (model.n_classes, n_regions, n_words))
    if model.n_classes == 2:  # of which only the difference is looked at
        tables = np.stack([np.zeros(tables.shape[1:]), tables[1] - tables[0]])
    one, axis, total = graph.constant(np.array(1.0)), graph.constant(np.array([1])), graph.constant(model.intercepts)
    for region, slope in enumerate(model.slopes):  # one by one: transposed doubles are more than some runtimes multiply
        ends = (graph.constant(np.array([r * n_words])) for r in (region, region + 1))
        words = graph.add("Slice", x, *ends, axis)
        size = graph.add("ReduceSum", words, axis, keepdims=1)
        size = graph.add("Where", graph.add("Equal", size, graph.constant(np.array(0.0))), one, size)
        shares = graph.add("Div", graph.add("MatMul", words, graph.constant(tables[:, region].T)), size)
        total = graph.add("Add", total, graph.add("Mul", shares, graph.constant(slope[None])))
    return total


def _labels(model: Model) -> Array:
    """The classes as ONNX has them: strings as objects."""
    return model.classes.astype(object) if model.classes.dtype.kind == "U" else model.classes


def _kind(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _value(name: str, dtype: Any, shape: list[Any] | None) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, _kind(dtype), shape)
