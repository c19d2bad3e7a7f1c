"""What a user says of documents. Read by the command line for its help, and thus free of imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

OnError = Literal["fail", "skip"]


@dataclass(frozen=True)
class DocumentParameters:
    """The parameters of `ingest` that say what is read of documents, and how; `open_documents` checks them."""

    text_column: str | None = None  # the column of texts; by default "text" where there are columns
    regions: Sequence[str] | Mapping[str, str] | None = None  # several such columns, or columns by names of regions
    label_column: str | None = None  # folders, archives and pairs have labels by themselves
    weight_column: str | None = None
    where: Mapping[str, Any] | None = None  # which documents: values of columns, or lists of which one is there
    encoding: str = "utf-8"  # of files of text
    on_error: OnError | Any = "fail"  # at the first bad document, or "skip" bad ones and report them
    delimiter: str | None = None  # of CSV files; by default a tab in .tsv and .tab files, and a comma in others
    keep: Sequence[str] = ()  # further columns, whose values come with the documents
