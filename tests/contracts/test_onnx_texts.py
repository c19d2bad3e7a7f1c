"""Graphs of ONNX that read texts say what the model says, whatever is written there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'nfs-dask[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
NFS_DASK = Path(sys.executable).with_name("nfs-dask")
WORDS = [
    "Spam", "ham", "ÄRGER", "ärger", "Ünïcödé", "naïve", "x1", "42", "foo_bar", "İstanbul", "XİY", "xİ", "ELİ", "İİ",
    "ﬃ", "DŽ", "I", "a", "B", "İ", "😀", "don't", "co-op", "e\u0301te\u0301", "ẞtraße", "日本語", "Привет", "ᏣᎳᎩ",
    "\u0307", "the", "The", "of", "K", "Å", "𐐀𐐨", "\x1c", "z\0z", "ﷺ", "٣٤", "²³", "Ⅷ", "\u200d", "w\u00a0w", "q\ud7ff",
]  # fmt: skip


def texts_of(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    made = [" ".join(rng.choice(WORDS, rng.integers(1, 25))) for _ in range(n - 4)]
    return [*made, "", "  \n\t ", "?! a", "nowhere else"]


def outputs(graph: Any, **inputs: list[str]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = {name: np.array(texts, object) for name, texts in inputs.items()}
    return dict(zip(names, session.run(None, feeds), strict=True))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"lowercase": False},
    {"ngrams": (1, 3)},
    {"ngrams": (2, 2), "stop_words": ["the", "of", "spam", "a b"]},
    {"ngrams": (1, 2), "stop_words": "english", "lowercase": False},
    {"token_pattern": r"(?u)\b\w+\b", "binary": True},
    {"token_pattern": r"\S+", "ngrams": (1, 2)},
    {"token_pattern": r"\w\w\w+"},
    {"tfidf": True, "norm": None},
    {"tfidf": True, "norm": None, "sublinear_tf": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_graph_that_reads_texts_says_what_the_model_says(options: dict[str, Any], tmp_path: Path) -> None:
    texts = texts_of(150)
    y = np.array(["no", "yes"])[np.random.default_rng(1).integers(2, size=len(texts))]
    nfs.ingest(pd.DataFrame({"t": texts, "y": y}), tmp_path / "s", text_column="t", label_column="y", **options)
    others = [*texts, "x" * 700 + " ham", *texts_of(150, seed=2)]
    data = nfs.open_dataset(tmp_path / "s")
    for estimator in (nfs.SparseMultinomialNB(k=8), nfs.SparseBernoulliNB(k="all"), nfs.SparseCentroid(k=12)):
        model = estimator.fit(data)
        found = outputs(model.to_onnx(), text=others)
        difference = found["scores"][:, 1] - found["scores"][:, 0]
        np.testing.assert_allclose(difference, model.decision_function(others), rtol=1e-9, atol=1e-9)
        assert found["label"].tolist() == model.predict(others).tolist()
        if "probabilities" in found:
            np.testing.assert_allclose(found["probabilities"], model.predict_proba(others), atol=1e-9)


def test_every_character_is_read_as_python_reads_it() -> None:
    every = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    lines = ["".join(f"{c}{c}b{c} " for c in every[i : i + 300]) for i in range(0, len(every), 300)]
    lines = [re.sub("(?i)\\u03c3", "", line) for line in lines]
    y = np.arange(len(lines)) % 2
    vectorizer = nfs.TextVectorizer()
    model = nfs.SparseMultinomialNB(k=60_000).fit(vectorizer.fit_transform(lines), y)
    graph = model.to_onnx(vectorizer=vectorizer)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for i in range(0, len(lines), 500):
        (scores,) = session.run(["scores"], {"text": np.array(lines[i : i + 500], object)})
        expected = model.decision_function(vectorizer.transform(lines[i : i + 500]))
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_batches_of_any_size_are_read(tmp_path: Path) -> None:
    vectorizer = nfs.TextVectorizer(ngrams=(1, 2))
    model = nfs.SparseMultinomialNB(k=3).fit(vectorizer.fit_transform(["good film", "bad film"]), ["a", "b"])
    for lowercase in (True, False):
        graph = model.to_onnx(vectorizer=vectorizer.set_params(lowercase=lowercase))
        for texts in ([], [""], ["", "."], ["good film"], ["bad"] * 1000, ["é" * 100_000]):
            assert len(outputs(graph, text=texts)["label"]) == len(texts)


def test_regions_are_inputs_of_their_own(tmp_path: Path) -> None:
    subjects, bodies = texts_of(120, seed=3), texts_of(120, seed=4)
    y = np.arange(120) % 3
    frame = pd.DataFrame({"subject": subjects, "body": bodies, "y": y})
    nfs.ingest(frame, tmp_path / "s", regions=["subject", "body"], label_column="y")
    for estimator in (nfs.HybridNB(k=20), nfs.SparseBernoulliNB(k=1), nfs.SparseMultinomialNB(k=30)):
        model = estimator.fit(nfs.open_dataset(tmp_path / "s"))
        found = outputs(model.to_onnx(), text_subject=subjects, text_body=bodies)
        expected = model.predict_proba(frame[["subject", "body"]])
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"analyzer": "char"},
        {"strip_accents": "unicode"},
        {"tfidf": True},
        {"hashed": 8},
        {"token_pattern": "[a-z]+"},
    ],
    ids=str,
)
def test_what_onnx_cannot_read_is_named_and_counts_are_left(options: dict[str, Any], tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": ["good film", "bad film"] * 4, "y": ["a", "b"] * 4})
    nfs.ingest(frame, tmp_path / "s", text_column="t", label_column="y", **options)
    model = nfs.SparseMultinomialNB(k=2).fit(nfs.open_dataset(tmp_path / "s"))
    with pytest.raises(nfs.InputError, match=rf"{'norm' if 'tfidf' in options else next(iter(options))}=.*texts=False"):
        model.to_onnx()
    assert model.to_onnx(texts=False).graph.input[0].name == "features"


def test_a_sigma_is_refused_where_its_form_would_be_guessed() -> None:
    texts, y = ["ΟΔΟΣ καλός", "κακός δρόμος"], ["a", "b"]
    vectorizer = nfs.TextVectorizer()
    model = nfs.SparseMultinomialNB(k="all").fit(vectorizer.fit_transform(texts), y)
    with pytest.raises(nfs.InputError, match=r"sigma.*texts=False"):
        model.to_onnx(vectorizer=vectorizer)


def test_the_command_writes_a_graph_that_reads_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": ["good film", "bad film"] * 4, "y": ["a", "b"] * 4})
    nfs.ingest(frame, tmp_path / "s", text_column="t", label_column="y")
    nfs.SparseMultinomialNB(k=2).fit(nfs.open_dataset(tmp_path / "s")).save(tmp_path / "m")
    inputs = []
    for name, more in (("texts.onnx", []), ("counts.onnx", ["--counts"])):
        command = [NFS_DASK, "onnx", "m", "--out", name, *more]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
        session = onnxruntime.InferenceSession(tmp_path / name)
        inputs.append(session.get_inputs()[0].name)
    assert inputs == ["text", "features"]
    found = onnxruntime.InferenceSession(tmp_path / "texts.onnx").run(
        ["label"], {"text": np.array(["A GOOD one", "bad!"], object)}
    )
    assert found[0].tolist() == ["a", "b"]
