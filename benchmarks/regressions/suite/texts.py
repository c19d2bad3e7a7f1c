"""Documents to a store, and a model applied to documents."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pandas as pd

import nfs_dask as nfs

from .cases import texts


class Ingest:
    """From each format, with 1-2-grams."""

    params = ("parquet", "csv", "jsonl")
    param_names = ("format",)
    timeout = 300

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(dir=Path.cwd())
        frame = pd.DataFrame(dict(zip(("text", "label"), texts(), strict=True)))
        frame.to_parquet(f"{folder}/mail.parquet")
        frame.to_csv(f"{folder}/mail.csv", index=False)
        frame.to_json(f"{folder}/mail.jsonl", orient="records", lines=True)
        return folder

    def setup(self, folder: str, suffix: str) -> None:
        self.store = Path(tempfile.mkdtemp(dir=folder)) / "mail.zarr"
        self.time_ingest(folder, suffix)

    def teardown(self, folder: str, suffix: str) -> None:
        shutil.rmtree(self.store.parent)

    def time_ingest(self, folder: str, suffix: str) -> None:
        columns = {"text_column": "text", "label_column": "label"}
        engine = nfs.SerialEngine()
        nfs.ingest(f"{folder}/mail.{suffix}", self.store, ngrams=(1, 2), overwrite=True, engine=engine, **columns)

    def peakmem_ingest(self, folder: str, suffix: str) -> None:
        self.time_ingest(folder, suffix)


class Predict:
    """A model of 20 words on documents that are a list."""

    timeout = 300

    def setup_cache(self) -> str:
        documents, labels = texts()
        folder = tempfile.mkdtemp(dir=Path.cwd())
        frame = pd.DataFrame({"text": documents, "label": labels})
        frame.to_parquet(f"{folder}/mail.parquet")
        columns = {"text_column": "text", "label_column": "label"}
        nfs.ingest(f"{folder}/mail.parquet", f"{folder}/mail.zarr", engine=nfs.SerialEngine(), **columns)
        model = nfs.SparseMultinomialNB(k=20, engine=nfs.SerialEngine())
        model.fit(nfs.open_dataset(f"{folder}/mail.zarr", reuse=False)).save(f"{folder}/spam.model")
        return folder

    def setup(self, folder: str) -> None:
        self.model, (self.documents, _) = nfs.load_model(f"{folder}/spam.model"), texts()
        self.time_predict(folder)

    def time_predict(self, folder: str) -> None:
        self.model.predict(self.documents)
