"""What a user gave is looked at once, and an engine chosen once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfs_dask.cli.main import cli
from nfs_dask.ingestion import ingest as ingesting
from nfs_dask.ingestion.ingest import ingest
from nfs_dask.sources import svmlight


def test_what_was_given_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command too, which needs to know what it is about before there is an engine."""
    (tmp_path / "rows.svm").write_text("1 1:1 2:3\n0 2:1\n" * 20)
    (tmp_path / "mail.csv").write_text("text,label\nham and eggs,a\nspam,b\n" * 20)
    opened: list[object] = []
    for name in ("open_source", "open_documents", "choose_engine"):
        module, real = ingesting, getattr(ingesting, name)
        monkeypatch.setattr(module, name, lambda *a, name=name, real=real, **k: opened.append(name) or real(*a, **k))
    looked: list[object] = []
    look = svmlight.look_at_lines
    monkeypatch.setattr(svmlight, "look_at_lines", lambda task: looked.append(task) or look(task))
    ingest(tmp_path / "rows.svm", tmp_path / "a.zarr")
    ingest(tmp_path / "mail.csv", tmp_path / "b.zarr", label_column="label")
    assert opened == ["open_source", "choose_engine", "open_documents", "choose_engine"] and len(looked) == 1
    opened.clear()
    for name, options in (("rows.svm", []), ("mail.csv", ["--label-column", "label"])):
        cli.main([*("ingest", *options, str(tmp_path / name), str(tmp_path / f"{name}.zarr"))], standalone_mode=False)
    assert opened == ["open_source", "open_documents"] and len(looked) == 2
