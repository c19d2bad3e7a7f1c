"""Predictions as rows of CSV, and how many there are of each class."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import click
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.errors import InputError
from nfs_dask.export.feature_table import harmless
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.prediction.model_rows import Asked
from nfs_dask.prediction.scoring import Verdicts, verdicts
from nfs_dask.sources.chosen_rows import ChosenRows
from nfs_dask.sources.conditions import text_of


class PredictedRows:
    """Predictions of documents, part by part, and how many documents there are of each class.

    Parameters
    ----------
    estimator
        That was loaded.
    asked
        A dataset, or documents.
    id_column
        The column that names documents, in addition to their numbers.
    every
        Have the probabilities of all classes.
    """

    def __init__(self, estimator: Any, asked: Asked, id_column: str | None = None, every: bool = False) -> None:
        self._model, self._asked = estimator.model_, asked
        self._source = asked.source if isinstance(asked, Dataset) else None
        self._classes, self._id, self._every = estimator.classes_, id_column, every
        self._measure = "probability" if self._model.has_probabilities else "margin"
        self.n = self.seen = self.left_out = 0
        self.first = ""
        self.predicted = {str(label): 0 for label in self._classes}
        if every and not self._model.has_probabilities:
            raise click.UsageError(
                "--all-probabilities is for models with probabilities; this one has margins, leave it out"
            )
        if id_column is not None and self._source is not None:
            if self._source.origin.annotations is None:
                raise InputError(f"{asked!r} has no table of rows; leave --id-column out")
            self._names(np.zeros(0, np.int64))  # refuses a column that is not there

    def parts(self, engine: Any) -> Iterator[Verdicts]:
        """The parts, counted; at their end it is known whether any document was asked for."""
        met = Seen()
        for part in verdicts(self._asked, self._model, engine, posteriors=self._every):
            met += part.met
            yield self._counted(part)
        if not isinstance(self._asked, Dataset):
            met.check(self._asked.documents.columns.where)

    def _counted(self, part: Verdicts) -> Verdicts:
        """The part, with rows numbered over all parts, and as in the dataset that they were chosen from."""
        rows = part.rows + self.seen
        if isinstance(self._source, ChosenRows) and len(rows):
            rows = np.asarray(self._source.choice.rows(int(rows[0]), int(rows[-1]) + 1)[rows - rows[0]])
        self.n += len(rows)
        self.seen += part.seen
        if part.first is not None and not self.left_out:
            self.first = f"{part.first.where}: {part.first.what}"
        self.left_out += part.left_out
        for code, label in enumerate(self.predicted):
            self.predicted[label] += int((part.best == code).sum())
        return replace(part, rows=rows)

    def values(self, parts: list[Verdicts]) -> dict[str, Any]:
        """Predictions for programs."""
        several = {"probability": "probabilities", "margin": "margins"}[self._measure]
        found: dict[str, Any] = {
            "rows": [row for part in parts for row in part.rows.tolist()],
            "labels": [label for part in parts for label in self._classes[part.best].tolist()],
            several: [value for part in parts for value in self._measured(part).tolist()],
        }
        if self._id is not None:
            found["ids"] = [name for part in parts for name in self._ids(part)]
        if self._every:
            found["classes"] = self._classes
            found["all_probabilities"] = [row for part in parts for row in _posteriors(part).tolist()]
        return found

    def lines(self, parts: Iterable[Verdicts]) -> Iterator[str]:
        """Rows of CSV; texts are quoted where they hold commas and line ends, and no formulas."""
        labels = [str(label) for label in self._classes.tolist()]
        heads = [f"{self._measure}_{label}" for label in labels if self._every]
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(
            map(harmless, ["row", *([] if self._id is None else [self._id]), "label", self._measure, *heads])
        )
        yield out.getvalue()
        quoted = list(map(_quoted, labels))
        for part in parts:
            ids = [""] * len(part.rows) if self._id is None else [f"{_quoted(name)}," for name in self._ids(part)]
            rest = [""] * len(part.rows)
            if self._every:
                rest = ["".join(f",{value:.6g}" for value in row) for row in _posteriors(part).tolist()]
            columns = (part.rows.tolist(), ids, part.best.tolist(), self._measured(part).tolist(), rest)
            for row, name, code, value, others in zip(*columns, strict=True):
                yield f"{row},{name}{quoted[code]},{value:.6g}{others}"

    def columns(self, part: Verdicts) -> dict[str, Any]:
        """Values of a part by the names of the columns that `lines` have, labels as the model has them."""
        found: dict[str, Any] = {"label": self._classes[part.best], self._measure: self._measured(part)}
        if self._every:
            of_classes = zip(self._classes.tolist(), _posteriors(part).T, strict=True)
            found |= {f"{self._measure}_{label}": values for label, values in of_classes}
        if self._id is None:
            return {"row": part.rows, **found}
        if self._id in ("row", *found):
            raise InputError(f"--id-column {self._id!r} is what predictions have a column for; write a .csv file")
        return {"row": part.rows, self._id: np.array(self._ids(part), str), **found}

    def _measured(self, part: Verdicts) -> Array:
        """Probabilities or margins of the predictions of a part."""
        found = part.chances if self._measure == "probability" else part.margins
        assert found is not None
        return found

    def _ids(self, part: Verdicts) -> list[str]:
        if self._source is not None:
            return self._names(part.rows)
        return list(map(text_of, part.others.get(self._id or "", [])))

    def _names(self, rows: Array) -> list[str]:
        """Names of ascending rows of a dataset."""
        assert self._source is not None and self._id is not None
        table = self._source.origin.annotations
        assert table is not None
        first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return list(map(text_of, table.read(self._id, first, last)[rows - first].tolist()))


def _posteriors(part: Verdicts) -> Array:
    assert part.posteriors is not None
    return part.posteriors


def _quoted(text: str) -> str:
    text = harmless(text)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
