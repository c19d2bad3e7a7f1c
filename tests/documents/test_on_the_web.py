"""Documents behind signed URLs of a web server: told by their paths, read in parts, and the same as on a disk."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import nfs_dask as nfs
from nfs_dask.cli.options import Location
from nfs_dask.documents import lines
from nfs_dask.errors import NfsDaskError
from nfs_dask.files.data_files import fingerprint
from nfs_dask.files.remote import unsigned
from tests.helpers.stored import assert_same_matrix, labels, matrix, names
from tests.helpers.web_server import signed_server

QUERY = "X-Amz-Credential=me/2026/us-east-1&X-Amz-Signature=0af*3/.csv"  # what must not be looked at for a format
FRAME = pd.DataFrame({"text": ["a fine film", "a dull film", "so so", "great"] * 50, "label": list("pnnp") * 50})
MATRIX = sparse.csr_matrix(np.eye(4, dtype=int))
OPTIONS: dict[str, Any] = {"text_column": "text", "label_column": "label"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every sort, as a disk has them."""
    folder = tmp_path_factory.mktemp("web")
    FRAME.to_csv(folder / "mail.csv", index=False)
    FRAME.to_csv(folder / "mail.tsv", index=False, sep="\t")
    FRAME.to_parquet(folder / "mail.parquet")
    FRAME.to_json(folder / "mail.jsonl.gz", orient="records", lines=True)
    (folder / "lines.txt.gz").write_bytes(gzip.compress("\n".join(FRAME.text).encode()))
    with zipfile.ZipFile(folder / "films.zip", "w") as archive:
        for number, (text, label) in enumerate(zip(FRAME.text, FRAME.label, strict=True)):
            archive.writestr(f"train/{label}/{number}.txt", text)
    (folder / "mail.docx").write_bytes(b"text")
    sparse.save_npz(folder / "matrix.npz", MATRIX)
    dump_svmlight_file(MATRIX, [0, 1, 0, 1], str(folder / "matrix.svm"), zero_based=False)
    return folder


@pytest.fixture
def web(folder: Path) -> Iterator[tuple[str, list[str]]]:
    with signed_server(folder, QUERY) as (host, asked):
        yield f"http://{host}", asked


CASES: dict[str, dict[str, Any]] = {
    "mail.csv": OPTIONS,
    "mail.tsv": OPTIONS,
    "mail.parquet": OPTIONS,
    "mail.jsonl.gz": OPTIONS,
    "lines.txt.gz": {"labels": FRAME.label.tolist()},
    "films.zip": {},
    "films.zip/train": {},
}


def assert_same(there: nfs.Dataset, here: nfs.Dataset) -> None:
    assert_same_matrix(there, matrix(here))
    assert names(there) == names(here)
    assert labels(there).tolist() == labels(here).tolist()


@pytest.mark.parametrize("name", CASES)
def test_a_signed_url_is_read_as_the_file_is(name: str, folder: Path, web: Any, tmp_path: Path) -> None:
    address, asked = web
    there = nfs.ingest(f"{address}/{name}?{QUERY}", tmp_path / "there.zarr", **CASES[name])
    here = nfs.ingest(folder / name, tmp_path / "here.zarr", **CASES[name])
    assert_same(there, here)
    assert there.n_rows == len(FRAME)
    assert {urlsplit(request.split()[1]).query for request in asked} == {QUERY}


def test_several_are_read_in_their_order(folder: Path, web: Any, tmp_path: Path) -> None:
    there = nfs.ingest([Location(f"{web[0]}/mail.csv?{QUERY}")] * 2, tmp_path / "there.zarr", **OPTIONS)
    here = nfs.ingest([folder / "mail.csv"] * 2, tmp_path / "here.zarr", **OPTIONS)
    assert_same(there, here)
    assert there.n_rows == 2 * len(FRAME)


def test_large_files_are_never_asked_for_as_a_whole(
    folder: Path, web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other than for their size, which takes an answer that nobody reads, where HEAD is refused."""
    monkeypatch.setattr(lines, "PIECE_NBYTES", 1000)
    nfs.ingest(f"{web[0]}/mail.csv?{QUERY}", tmp_path / "there.zarr", **OPTIONS)
    whole = [i for i, request in enumerate(web[1]) if request.startswith("GET") and request.endswith("whole")]
    assert whole and all(web[1][i - 1].startswith("HEAD") for i in whole)
    pieces = {request.split()[-1] for request in web[1]} - {"whole"}
    assert len(pieces) > 1


@pytest.mark.parametrize("name", ["matrix.npz", "matrix.svm"])
def test_matrices_are_too(name: str, folder: Path, web: Any) -> None:
    dataset = nfs.open_dataset(f"{web[0]}/{name}?{QUERY}", labels=[0, 1, 0, 1] if name.endswith("npz") else None)
    assert_same_matrix(dataset, MATRIX.copy())
    assert labels(dataset).tolist() == [0, 1, 0, 1]


def test_a_url_whose_signature_has_expired_is_refused_without_it(web: Any, tmp_path: Path) -> None:
    for name in CASES:
        with pytest.raises(NfsDaskError, match="signed URL has expired") as caught:
            nfs.ingest(f"{web[0]}/{name}?X-Amz-Signature=0123", tmp_path / "none.zarr", **CASES[name])
        assert ("0123" not in str(caught.value) and "/mail.c" in str(caught.value)) or name != "mail.csv"


def test_what_ends_in_nothing_known_is_refused_whatever_its_query(web: Any, tmp_path: Path) -> None:
    with pytest.raises(NfsDaskError, match=r"/mail.docx\?\*\*\* is of no known format"):
        nfs.ingest(f"{web[0]}/mail.docx?{QUERY}", tmp_path / "none.zarr")


def test_the_same_documents_signed_anew_are_the_same_data(folder: Path) -> None:
    """So that an ingest goes on where it was, with a URL that has not expired."""
    queries = [f"{more}X-Amz-Date=2026{day}&X-Amz-Signature={day}" for more in ("", "versionId=2&") for day in (1, 2)]
    with signed_server(folder, *queries) as (host, _):
        found = [fingerprint([f"http://{host}/mail.csv?{query}"]) for query in queries]
    assert found[0] == found[1] != found[2] == found[3]
    assert unsigned("https://host/mail.csv?sv=2026&sp=r&sig=x%3D") == "https://host/mail.csv"
    assert unsigned("https://host/mail?sp=3&st=4") == "https://host/mail?sp=3&st=4"
