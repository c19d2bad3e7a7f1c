"""The report is one page: parsed as browsers parse it, its numbers are the model's, and nothing in it is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs

EVIL = "<script>alert(1)</script>"
MOST = 2_000_000
VOID = {"meta", "input", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, and the text in each kind of them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == [], "all elements are closed"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def text_of(self, *tags: str) -> str:
        return " ".join(text for tag, text in self.texts if not tags or tag in tags)


def documents(n: int, seed: int = 0) -> tuple[list[str], Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    words = np.array([["warm", "funny", "laugh"], ["dull", "waste", "old"]])
    plain = np.array(["the", "film", "and", "of", "alertscript"])
    texts = [
        " ".join(
            rng.choice(plain) if rng.random() < 0.6 else rng.choice(words[c if rng.random() < 0.8 else 1 - c])
            for _ in range(rng.integers(3, 20))
        )
        for c in y
    ]
    return texts, np.array(["good", EVIL])[y]


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> nfs.Dataset:
    texts, y = documents(300)
    return nfs.ingest(texts, tmp_path_factory.mktemp("stores") / "x.zarr", labels=y, ngrams=(1, 2), min_df=2)


@pytest.fixture(scope="module")
def model(store: Any) -> Any:
    return nfs.SparseMultinomialNB(k=12).fit(store)


@pytest.fixture(scope="module")
def table(store: Any) -> Any:
    return nfs.cross_validate(store, method="multinomial", ks=[4, 12, 30], folds=3)


@pytest.fixture(scope="module")
def path(store: Any) -> Any:
    return nfs.path(store, "multinomial", [2, 4, 8, 12, 20, 30])


@pytest.fixture(scope="module")
def whole(model: Any, path: Any, table: Any) -> str:
    made: str = nfs.report(model, *documents(120, 1), path=path, cross_validation=table, n_documents=4).html
    return made


@pytest.fixture(scope="module")
def page(whole: str) -> Page:
    return Page(whole)


def test_nothing_is_fetched_and_the_policy_names_what_is_there(whole: str, page: Page) -> None:
    for _, attributes in page.tags:
        assert "style" not in attributes and not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert "@import" not in whole and "url(http" not in whole
    policy = next(one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        inside = re.findall(f"<{tag}>(.*?)</{tag}>", whole, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert len(page.all("style")) == 1 and [one.get("type") for one in page.all("script")] == ["application/json", None]


def test_it_can_be_read_without_seeing_it(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert page.all("html") == [{"lang": "en"}]
    pictures = [one for one in page.all("svg") if one.get("role") == "img"]
    assert len(pictures) == 5 and len(page.all("title")) == len(page.all("desc")) + 1 == 6
    assert all(one.get("role") == "img" or one.get("aria-hidden") == "true" for one in page.all("svg"))
    ids = [one["id"] for _, one in page.tags if "id" in one]
    assert len(ids) == len(set(ids))
    referred = {one["href"] for tag in ("use", "a") for one in page.all(tag)}
    referred |= {f"#{name}" for one in pictures for name in (one["aria-labelledby"] or "").split()}
    assert {(one or "#")[1:] for one in referred} <= set(ids)
    own = [one for one in page.all("th") if "scope" not in one]
    assert own == [] and len(page.all("caption")) >= 6
    slider = page.all("input")
    assert len(slider) == 1 and slider[0]["type"] == "range" and {"for": "k"} in page.all("label")


def test_names_are_texts(whole: str, page: Page) -> None:
    assert EVIL not in whole and "alert(1)" in page.text_of("h3", "td", "th")
    assert EVIL in page.text_of("h3") and EVIL in page.text_of("text")
    said = nfs.report(nfs.SparseMultinomialNB(k=2).fit([[1, 0, 2], [0, 3, 1]], ["</title>", "b"]), title=EVIL).html
    assert EVIL not in said and EVIL in Page(said).text_of("h1")


def test_the_certificate_is_that_of_the_model(model: Any, page: Page) -> None:
    cells = [text for tag, text in page.texts if tag in ("th", "td")]
    assert cells[cells.index("log likelihood") + 1] == f"{model.objective_:,.3f}"
    assert cells[cells.index("no other choice is better than") + 1] == f"{model.upper_bound_:,.3f}"
    assert cells[cells.index("features chosen") + 1] == f"12 of {model.n_features_in_:,}"
    assert "does not say how often the model is right" in page.text_of("p")


def test_the_slider_has_what_models_of_each_k_say(store: Any, path: Any, table: Any, page: Page) -> None:
    data = json.loads(next(text for tag, text in page.texts if tag == "script" and text.startswith("{")))
    assert [step["k"] for step in data["steps"]] == ["2", "4", "8", "12", "20", "30"] and data["start"] == 3
    assert len(data["names"]) == len(set(data["names"])), "each name once"
    for step, value in zip(data["steps"], path.value, strict=True):
        fitted = nfs.SparseMultinomialNB(k=int(step["k"])).fit(store)
        expected = [[(name, round(weight, 3)) for name, weight in top] for top in fitted.top_features(20).values()]
        assert [[(data["names"][i], weight) for i, _, weight in top] for top in step["tops"]] == expected
        assert f"gain {value:,.3f}" in step["said"] or f"gain {value:.3g}" in step["said"]
    assert data["classes"] == [str(label) for label in path.classes]
    assert f"{table.mean()[0, 1]:.1%}" in data["steps"][3]["said"] and "Accuracy" not in data["steps"][0]["said"]


def test_test_data_are_judged_as_evaluate_does(model: Any, page: Page) -> None:
    texts, y = documents(120, 1)
    found = nfs.evaluate(model, texts, y)
    low, high = found.interval
    assert f"{found.accuracy:.1%} of 120 documents" in page.text_of("p")
    assert f"between {low:.1%} and {high:.1%}" in page.text_of("p")
    cells = [text for tag, text in page.texts if tag in ("th", "td")]
    for precision, recall in zip(found.precision, found.recall, strict=True):
        assert cells[cells.index(f"{precision:.4f}") + 1] == f"{recall:.4f}"
    for count in found.confusion.ravel().tolist():
        assert str(count) in cells
    decision, predicted = model.decision_function(texts), model.predict(texts)
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(-np.abs(decision[wrong]), kind="stable")][:4]
    least = np.argsort(np.abs(decision), kind="stable")[:4]
    shown = [text for tag, text in page.texts if tag == "h3" and text.startswith("document ")]
    assert [int(re.findall(r"\d+", text)[0]) for text in shown] == [*worst.tolist(), *least.tolist()]
    assert page.all("mark") and " ".join(texts[worst[0]].split()[:1]) in page.text_of("blockquote", "mark")


def test_equal_reports_are_equal_bytes(model: Any, path: Any, table: Any, whole: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red"}):  # settings of the user are not those of the page
        again = nfs.report(model, *documents(120, 1), path=path, cross_validation=table, n_documents=4)
    assert again.html == whole


def test_a_path_is_made_of_training_data(store: Any, model: Any) -> None:
    made = Page(nfs.report(model, path=store, folds=3).html)
    data = json.loads(next(text for tag, text in made.texts if tag == "script" and text.startswith("{")))
    assert 20 <= len(data["steps"]) <= 31 and all("Accuracy" in step["said"] for step in data["steps"])
    assert data["steps"][data["start"]]["k"] == "12"


def test_it_is_saved_and_shows_itself(whole: str, model: Any, tmp_path: Any) -> None:
    made = nfs.report(model)
    made.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == made.html and len(made.html) < len(whole)
    with pytest.raises(nfs.StoreError, match="overwrite=True"):
        made.save(tmp_path / "r.html")
    made.save(tmp_path / "r.html", overwrite=True)
    frame = Page(made._repr_html_()).all("iframe")[0]
    assert frame["srcdoc"] == made.html and frame["sandbox"] == "allow-scripts"


METHODS = [
    nfs.SparseBernoulliNB(k=5, binarize=0.0),
    nfs.SparseCentroid(k=5),
    nfs.SparseCentroid(k=5, metric="manhattan"),
    nfs.SparseCentroid(k=5, metric="mahalanobis"),
    nfs.HybridNB(k=5),
    nfs.ErrorRateSelector(k=5),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda one: f"{type(one).__name__} {getattr(one, 'metric', '')}")
def test_all_methods_have_one(method: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.poisson(rng.gamma(0.5, size=(3, 20))[y])
    fitted = method.fit(X, y)
    paths = fitted.model_.method not in ("hybrid", "error")
    options = {"binarize": 0.0} if fitted.model_.method == "bernoulli" else {}
    made = Page(nfs.report(fitted, X, y).html)
    assert ("Calibration" in made.text_of("title")) == fitted.model_.has_probabilities
    if paths:
        made = Page(nfs.report(fitted, path=nfs.path(X, y, method=fitted.model_.method, ks=[2, 5, 10], **options)).html)
        data = json.loads(next(text for tag, text in made.texts if tag == "script" and text.startswith("{")))
        names = [[data["names"][entry[0]] for entry in top] for top in data["steps"][1]["tops"]]
        assert names == [[name for name, _ in top] for top in fitted.top_features(20).values()]


def test_what_cannot_be_told_is_refused_before_anything_is_read(model: Any, path: Any, table: Any) -> None:
    for given, said in (
        ({"path": [1, 2]}, "path is a list"),
        ({"cross_validation": table}, "on the slider of a path"),
        ({"path": path, "cross_validation": 3}, "cross_validation is an int"),
        ({"path": path, "folds": 3}, "folds= is for training data"),
        ({"n_documents": -1}, "n_documents=-1"),
        ({"y": ["good"]}, "give them as data="),
        ({"path": nfs.path([[1, 0], [0, 1]], ["a", "b"], method="bernoulli")}, "give one of the same data"),
    ):
        with pytest.raises(nfs.InputError, match=re.escape(said)):
            nfs.report(model, **given)
    with pytest.raises(nfs.InputError, match="fitted estimator of this package"):
        nfs.report("a.model")


def test_without_jinja_it_says_what_to_install(model: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(nfs.InputError, match=re.escape('pip install "nfs-dask[report]"')):
        nfs.report(model)


@pytest.mark.filterwarnings("ignore:there are 150 classes:nfs_dask.errors.DataWarning")
def test_it_stays_small_whatever_the_model(tmp_path: Any) -> None:
    """Many features and classes, names and texts as long as can be."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 150
    X = sp.random_array((300, 100_000), density=1e-3, format="csr", rng=rng)
    X.data[:] = 1
    fitted = nfs.SparseBernoulliNB(k=12_000).fit(X, np.array([f"{c:04}" + "λ" * 500 for c in range(150)])[y])
    made = nfs.report(fitted, X[:50], fitted.classes_[y[:50]])
    assert len(made.html.encode()) < MOST
    long = ["z" * 300 + f" {'word ' * 800} x{i % 7}" for i in range(40)]
    texts = nfs.ingest(long, tmp_path / "x.zarr", labels=["a", "b"] * 20, ngrams=(1, 3))
    plain = nfs.SparseMultinomialNB(k="all").fit(texts)
    made = nfs.report(plain, long, ["b", "a"] * 20, path=texts, n_documents=40)
    assert len(made.html.encode()) < MOST
    Page(made.html)


def test_templates_are_in_the_wheel(tmp_path: Any) -> None:
    from importlib.resources import files

    names = {one.name for one in files("nfs_dask.reports").joinpath("templates").iterdir()}
    assert {"report.html.jinja", "report.css", "report.js"} <= names


@pytest.mark.slow
def test_a_wheel_that_is_built_has_the_templates(tmp_path: Any) -> None:
    import zipfile
    from pathlib import Path

    root = Path(nfs.__file__).parent.parent
    done = subprocess.run(["uv", "build", "--wheel", "-q", "-o", tmp_path, root], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    inside = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {f"nfs_dask/reports/templates/report.{kind}" for kind in ("html.jinja", "css", "js")} <= set(inside)
