"""Predictions as rows of CSV, and how many there are of each class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from nfs_dask.dataset import Dataset
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.prediction.model_rows import Asked
from nfs_dask.prediction.scoring import Verdicts
from nfs_dask.sources.chosen_rows import ChosenRows


class PredictedRows:
    """Counts what was predicted, part by part."""

    def __init__(self, classes: Any, measure: str, asked: Asked) -> None:
        self._asked = asked
        self._classes = classes
        self._measure = measure
        self.n = self.seen = self.left_out = 0
        self.first = ""
        self.predicted = {str(label): 0 for label in classes}

    def counted(self, parts: Iterable[Verdicts]) -> Iterator[Verdicts]:
        """The parts, counted; at their end it is known whether any document was asked for."""
        met = Seen()
        for part in parts:
            met += part.met
            yield self.add(part)
        if not isinstance(self._asked, Dataset):
            met.check(self._asked.documents.columns.where)

    def _numbered(self, rows: Any) -> Any:
        """Rows numbered as in the dataset that they were chosen from."""
        source = self._asked.source if isinstance(self._asked, Dataset) else None
        return source.rows[rows] if isinstance(source, ChosenRows) else rows

    def add(self, part: Verdicts) -> Verdicts:
        """Count a part; the same, with rows numbered over all parts."""
        rows = self._numbered(part.rows + self.seen)
        self.n += len(rows)
        self.seen += part.seen
        if part.first is not None and not self.left_out:
            self.first = f"{part.first.where}: {part.first.what}"
        self.left_out += part.left_out
        for code, label in enumerate(self.predicted):
            self.predicted[label] += int((part.best == code).sum())
        return replace(part, rows=rows)

    def measured(self, part: Verdicts) -> Any:
        """How sure the predictions of a part are."""
        return part.chances if self._measure == "probability" else part.margins

    def lines(self, parts: Iterable[Verdicts]) -> Iterator[str]:
        """Rows of CSV; labels are quoted as they may hold commas and line ends."""
        yield f"row,label,{self._measure}"
        quoted = [_quoted(str(label)) for label in self._classes.tolist()]
        for part in parts:
            columns = (part.rows, part.best, self.measured(part))
            for row, code, value in zip(*(column.tolist() for column in columns), strict=True):
                yield f"{row},{quoted[code]},{value:.6g}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
