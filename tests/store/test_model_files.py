"""Models survive the disk, and nothing hostile gets past the door."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.errors import NoRoomError, StoreError
from nfs_dask.files.sealed import sealed
from nfs_dask.models.model import Evidence, Model
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.store.model_files import read_model, save_model
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings

MODEL = NaiveBayesModel(
    method="multinomial",
    classes=np.array(["ham & eggs", "späm <script>"]),
    class_count=np.array([3.0, 4.0]),
    class_log_prior=np.array([-np.inf, 0.0]),
    n_features=100,
    alpha=0.5,
    support=np.array([3, 70]),
    present=np.array([[-1.5, -np.inf], [-0.25, -1e-300]]),
    evidence=Evidence(-12.5, 0.0, True, np.array([0.25, 0.75]), 7),
    names=("money", "näme with spaces"),
    provenance={"fingerprint": "abc", "seconds": [0.5]},
)


TEXT = replace(
    MODEL,
    names=("subject:money", "the body:näme with spaces"),
    text=TextFeatures(
        settings=TextSettings(ngrams=(1, 2), stop_words=("a", "the"), tokenizer="mine.tokens", tfidf=True),
        n_terms=50,
        n_documents=7,
        terms=("money", "näme with spaces"),
        idf=np.array([1.5, 3.25]),
        regions=("subject", "the body"),
    ),
)


def assert_same_text(a: TextFeatures | None, b: TextFeatures | None) -> None:
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert replace(a, idf=None, vocabulary=None) == replace(b, idf=None, vocabulary=None)
        assert (a.idf is None) == (b.idf is None)
        if a.idf is not None:
            np.testing.assert_array_equal(a.idf, b.idf)


def assert_equal(a: Model, b: Model) -> None:
    assert type(a) is type(b)
    assert_same_text(a.text, b.text)
    for name in {field.name for field in fields(a)} - {"text", "evidence"}:
        left, right = getattr(a, name), getattr(b, name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right)
        else:
            assert left == right, name
    assert replace(a.evidence, point=None) == replace(b.evidence, point=None)
    np.testing.assert_array_equal(a.evidence.point, b.evidence.point)


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        replace(MODEL, classes=np.array([-3, 2**40])),
        replace(MODEL, classes=np.array([False, True])),
        replace(MODEL, classes=np.array([0.5, 1e300]), names=None),
        TEXT,
        replace(
            MODEL, text=TextFeatures(TextSettings(hashed=5), 32, 7, None), n_features=32, support=np.array([3, 30])
        ),
        replace(MODEL, text=TextFeatures(TextSettings(binary=True), 100, 0, MODEL.names, lengths=True)),
        replace(MODEL, absent=np.array([[-0.5, -0.1], [-2.0, -np.inf]]), threshold=0.25, binary_only=True),
    ],
)
def test_round_trip(model: Model, tmp_path: Path) -> None:
    save_model(model, {"k": 2, "alpha": 0.5}, tmp_path / "a model")
    read, parameters = read_model(tmp_path / "a model")
    assert_equal(read, model)
    assert parameters == {"k": 2, "alpha": 0.5}


def test_saving_again_replaces_the_model_and_leaves_nothing(tmp_path: Path) -> None:
    save_model(MODEL, {}, tmp_path / "m")
    save_model(replace(MODEL, alpha=2.0), {}, tmp_path / "m")
    assert read_model(tmp_path / "m")[0].alpha == 2.0
    assert len(list((tmp_path / "m").iterdir())) == 2


def test_a_save_that_fails_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(MODEL, {}, tmp_path / "m")
    with pytest.raises(TypeError):
        save_model(replace(MODEL, alpha=2.0), {"k": object()}, tmp_path / "m")
    assert_equal(read_model(tmp_path / "m")[0], MODEL)
    assert len(list((tmp_path / "m").iterdir())) == 2


def test_nothing_but_a_model_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine too")
    for name in ("file", "folder"):
        with pytest.raises(StoreError, match="not a model"):
            save_model(MODEL, {}, tmp_path / name)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine too"


def test_no_model_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no model"):
        read_model(tmp_path / "nowhere")


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(place: Path) -> None:
        header = json.loads((place / "model.json").read_text())
        change(header)
        (place / "model.json").write_bytes(sealed(header))

    return apply


def swap(name: str, array: np.ndarray) -> Callable[[Path], None]:
    """Put another array, of whatever shape and type, where one of the model's was."""

    def apply(place: Path) -> None:
        import zarr

        inside = next(place.glob("arrays-*"))
        shutil.rmtree(inside / name)
        zarr.open_group(inside, mode="a").create_array(name, data=array, chunks=array.shape)

    return apply


HOSTILE: dict[str, Callable[[Path], Any]] = {
    "format from the future": edit(lambda h: h.update(format=99)),
    "another kind": edit(lambda h: h.update(kind="recipe")),
    "a folder outside": edit(lambda h: h.update(arrays_in="../../etc")),
    "a folder of no name": edit(lambda h: h.update(arrays_in=7)),
    "a huge support": edit(lambda h: h["arrays"].update(support=[2**60])),
    "a support beyond the features": edit(lambda h: h.update(n_features=1)),
    "an unknown array": edit(lambda h: h["arrays"].update({"../x": [2]})),
    "labels of another type": edit(lambda h: h["classes"].update(type="<i8")),
    "objects as labels": edit(lambda h: h["classes"].update(type="O")),
    "a missing part": edit(lambda h: h.pop("evidence")),
    "evidence with more in it": edit(lambda h: h["evidence"].update(surprise=1)),
    "a list": lambda place: (place / "model.json").write_text("[1, 2]"),
    "no JSON": lambda place: (place / "model.json").write_bytes(b"\x80\x04."),
    "deep nesting": lambda place: (place / "model.json").write_text("[" * 200_000),
    "a support out of order": swap("support", np.array([70, 3])),
    "a support below zero": swap("support", np.array([-1, 3])),
    "floats as support": swap("support", np.array([3.0, 70.0])),
    "a longer support": swap("support", np.array([3, 4, 70])),
    "weights that are yes and no": swap("present", np.zeros((2, 2), bool)),
    "weights that are no numbers": swap("present", np.full((2, 2), np.nan)),
    "flat weights": swap("present", np.zeros(2)),
    "a missing array": lambda place: shutil.rmtree(next(place.glob("arrays-*")) / "present"),
    "names for other features": edit(lambda h: h.update(names=["one"])),
    "text of no kind": edit(lambda h: h.update(text=[1])),
    "text without settings": edit(lambda h: h["text"].pop("settings")),
    "an analyzer of no kind": edit(lambda h: h["text"]["settings"].update(analyzer="eval")),
    "a pattern that never ends": edit(lambda h: h["text"]["settings"].update(token_pattern="(?:" * 50_000)),
    "terms for other features": edit(lambda h: h["text"].update(n_terms=49)),
    "half a term": edit(lambda h: h["text"].update(n_terms=12.5)),
    "no documents at all": edit(lambda h: h["text"].update(n_documents=-1)),
    "regions of no kind": edit(lambda h: h["text"].update(regions=7)),
    "regions outside": edit(lambda h: h["text"].update(regions=["../..", "the body"])),
    "names of other regions": edit(lambda h: h["text"].update(regions=["subject", "body"])),
    "lengths, perhaps": edit(lambda h: h["text"].update(lengths=None)),
    "a vocabulary outside": edit(lambda h: h["text"].update(vocabulary="../../etc")),
    "a vocabulary that is not there": edit(lambda h: h["text"].update(vocabulary="vocabulary-0123456789abcdef")),
    "idf without tf-idf": edit(lambda h: h["text"]["settings"].update(tfidf=False)),
    "no idf": edit(lambda h: h["arrays"].pop("idf")),
    "idf below zero": swap("idf", np.array([1.0, -1.0])),
    "idf of whole numbers": swap("idf", np.array([1, 2])),
    "idf of other features": swap("idf", np.array([1.0, 2.0, 3.0])),
}


def test_models_from_before_there_were_centers_are_read(tmp_path: Path) -> None:
    """The facts of that format, as they were written; nothing else is asked of naive Bayes."""
    save_model(MODEL, {"k": 2}, tmp_path / "m")
    header = json.loads((tmp_path / "m" / "model.json").read_text())
    assert header.pop("text") is None
    assert set(header.pop("checksums")) == set(header["arrays"])
    header.pop("crc32c")
    assert set(header) == {
        *("kind", "format", "method", "parameters", "classes", "n_features", "alpha", "threshold", "binary_only"),
        *("names", "evidence", "provenance", "arrays_in", "arrays"),
    }
    assert header["format"] == 1
    (tmp_path / "m" / "model.json").write_text(json.dumps(header))
    assert_equal(read_model(tmp_path / "m")[0], MODEL)


def test_a_method_from_the_future_is_named(tmp_path: Path) -> None:
    save_model(MODEL, {}, tmp_path / "m")
    edit(lambda h: h.update(method="cosine"))(tmp_path / "m")
    with pytest.raises(
        StoreError, match=r"method 'cosine'; this version knows multinomial, bernoulli, .*error: upgrade"
    ):
        read_model(tmp_path / "m")


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_models_are_refused(attack: str, tmp_path: Path) -> None:
    place = tmp_path / "m"
    save_model(TEXT, {}, place)
    HOSTILE[attack](place)
    with pytest.raises(StoreError):
        read_model(place)


def test_an_altered_array_is_named(tmp_path: Path) -> None:
    save_model(MODEL, {}, tmp_path / "m")
    place = next((tmp_path / "m").glob("arrays-*/present/c/0/0"))
    content = bytearray(place.read_bytes())
    content[3] ^= 0x40
    place.write_bytes(content)
    with pytest.raises(StoreError, match=r"present is damaged"):
        read_model(tmp_path / "m")


def test_a_model_that_there_is_no_room_for_leaves_nothing(tmp_path: Path, full_disk: Any) -> None:
    with full_disk(100), pytest.raises(NoRoomError, match=r"File too large: '.*model.*'; make room there"):
        save_model(MODEL, {}, tmp_path / "model")
    assert not list(tmp_path.iterdir())
    (tmp_path / "model").mkdir()
    with full_disk(100), pytest.raises(NoRoomError):
        save_model(MODEL, {}, tmp_path / "model")
    assert not list((tmp_path / "model").iterdir()), "the folder was there before"
