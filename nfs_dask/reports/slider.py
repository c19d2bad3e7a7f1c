"""What moving the slider over k shows: for each k its words, value and bound, and how good it is on other documents.

All of it is in the page as one compact JSON value of bounded size. A name stands in it once, as supports of different k
share most of their features.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.engine import Engine
from nfs_dask.markup import shortened_name
from nfs_dask.models.certificate_text import number
from nfs_dask.prediction.explained_text import signed
from nfs_dask.selection.make_path import tops_of_path
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.units import several

MOST_KS = 40
MOST_LISTED = 200  # features of one k
MOST_OF_A_CLASS = 20
MOST_CLASSES = 50
MOST_BYTES = 500_000
LONGEST = 60  # letters of a name

Tops = Mapping[Any, Sequence[tuple[str, float]]]


@dataclass(frozen=True)
class Step:
    """One k."""

    k: int
    facts: dict[str, str]
    said: str  # all of it in a sentence
    tops: Tops  # weights are NaN where they are not known


@dataclass(frozen=True)
class Slider:
    """The k that a reader can look at."""

    steps: tuple[Step, ...]
    start: int  # where it stands at first
    weighted: bool  # whether weights are known

    def to_json(self) -> str:
        """All of it as JSON that may stand inside a script element of a page, of bounded size."""
        listed = MOST_OF_A_CLASS
        while len((text := self._json(listed)).encode()) > MOST_BYTES and listed > 1:
            listed //= 2
        return text

    def _json(self, listed: int) -> str:
        names: dict[str, int] = {}
        labels = list(dict.fromkeys(str(label) for step in self.steps for label in step.tops))
        steps = [
            {
                "k": f"{step.k:,}",
                "said": step.said,
                "tops": [
                    [
                        [names.setdefault(shortened_name(name, LONGEST), len(names)), *_weight(weight)]
                        for name, weight in top[:listed]
                    ]
                    for top in step.tops.values()
                ],
            }
            for step in self.steps
        ]
        value = {
            "classes": [shortened_name(label, LONGEST) for label in labels],
            "names": list(names),
            "steps": steps,
            "start": self.start,
        }
        return escaped_json(value)


def escaped_json(value: Any) -> str:
    r"""JSON in which no text ends the element that it stands in.

    >>> escaped_json({"</script>": "&"})
    '{"\\u003c/script\\u003e":"\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def slider_of(
    path: Path,
    k: int,
    validated: CrossValidation | None = None,
    alpha: float | None = None,
    engine: Engine | None = None,
) -> Slider:
    """The slider of a path.

    Parameters
    ----------
    path
        Of any number of k; about forty of them are shown.
    k
        Of the model: where the slider stands at first, or nearest to it.
    validated
        How good some k are on documents they were not fitted to.
    alpha
        Of the model, if it smooths: which of the validated smoothings to show.
    engine
        Where a pass for the weights runs, if one is needed.
    """
    at = positions_of(path, k)
    ks = path.ks[at].tolist()
    listed = max(1, min(MOST_OF_A_CLASS, MOST_LISTED // len(path.classes)))
    found = tops_of_path(path, ks, listed, engine)
    tops = (_named(path, one) for one in ks) if found is None else found
    records = path.records(at)
    steps = tuple(
        _step(record, _first(top), _accuracy(validated, record["k"], alpha))
        for record, top in zip(records, tops, strict=True)
    )
    return Slider(steps, int(np.abs(np.log(path.ks[at] + 1) - np.log(k + 1)).argmin()), found is not None)


def positions_of(path: Path, k: int) -> Array:
    """Positions on the path, at most about forty, with that of the model's own k if it is there."""
    own = np.flatnonzero(path.ks == k)
    return np.unique(np.concatenate([path.sample(MOST_KS - len(own)), own]))


def _step(record: dict[str, Any], tops: Tops, accuracy: tuple[float, float] | None) -> Step:
    sure = "certified" if record["certified"] else "close" if record["close"] else "no"
    facts = {
        "gain": number(record["value"]),
        "no choice gains more than": number(record["bound"]),
        "gap": number(record["gap"]),
        "certified": {"certified": "yes", "close": "close, within a millionth", "no": "no"}[sure],
    }
    if accuracy is not None:
        facts["cross-validated accuracy"] = f"{accuracy[0]:.4f} ± {accuracy[1]:.4f}"
    return Step(record["k"], facts, _in_words(record, sure, accuracy), tops)


def _in_words(record: dict[str, Any], sure: str, accuracy: tuple[float, float] | None) -> str:
    said = f"{several(record['k'], 'feature gains', 'features gain')} {number(record['value'])}"
    said += f"; no choice of so many gains more than {number(record['bound'])}"
    said += {"certified": ": certified, the best there is", "close": ", within a millionth of it", "no": ""}[sure]
    if accuracy is None:
        return f"{said}."
    return f"{said}. Accuracy in cross-validation: {accuracy[0]:.1%}, with a standard error of {accuracy[1]:.1%}."


def _accuracy(validated: CrossValidation | None, k: int, alpha: float | None) -> tuple[float, float] | None:
    """Mean over folds and its standard error; None where this k was not validated."""
    if validated is None or k not in validated.ks:
        return None
    place = int(np.searchsorted(validated.ks, k))
    mean = validated.mean()
    row = validated.alphas.index(alpha) if alpha in validated.alphas else int(mean[:, place].argmax())
    return float(mean[row, place]), float(validated.standard_error()[row, place])


def _first(tops: Tops) -> Tops:
    """The first classes, of very many."""
    return dict(list(tops.items())[:MOST_CLASSES])


def _named(path: Path, k: int) -> Tops:
    """Names alone, of a path whose data are not at hand; the first of them."""
    support = path.support(k)[:MOST_LISTED]
    names = path.named.names(support) or [f"x{i}" for i in support]
    return {"all classes": [(name, float("nan")) for name in names]}


def _weight(weight: float) -> list[Any]:
    """A weight as text and as a number for its bar; nothing where it is not known."""
    if np.isnan(weight):
        return []
    return [signed(weight), round(weight, 3) if np.isfinite(weight) else 1e9]
