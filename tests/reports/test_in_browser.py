"""The report in a real browser: it asks for nothing, breaks no rule of its own, and its slider follows the keyboard.

Needs Chromium, and from PyPI ``playwright`` and ``axe-playwright-python``, which brings the rules of axe-core.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nfs_dask as nfs
from tests.reports.test_make_report import documents

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WIDTHS = [400, 1280, 1920]
SCHEMES = ["light", "dark"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium here; apt-get install chromium")
    api: Any = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def axe() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("the rules of axe-core are not here; pip install axe-playwright-python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    texts, y = documents(400)
    store = nfs.ingest(texts, folder / "x.zarr", labels=y, ngrams=(1, 2), min_df=2)
    model = nfs.SparseMultinomialNB(k=12).fit(store)
    nfs.report(model, *documents(150, 1), path=store, folds=3).save(folder / "r.html")
    return folder / "r.html"


class Opened:
    """The page, with all that the browser said about it."""

    def __init__(self, browser: Any, place: Path, **how: Any) -> None:
        self.page = browser.new_page(**how)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(place.as_uri())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_reads_well_at_every_width_in_light_and_dark(
    browser: Any, axe: str, place: Path, width: int, scheme: str
) -> None:
    opened = Opened(browser, place, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened.page
    assert opened.asked == [place.as_uri()] and opened.said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert found == [], json.dumps([(one["id"], one["nodes"][0]["html"][:200]) for one in found])
    page.close()


def test_the_slider_follows_the_arrow_keys(browser: Any, place: Path) -> None:
    opened = Opened(browser, place, viewport={"width": 1280, "height": 900})
    page = opened.page
    data = json.loads(page.inner_text("#k-data") or page.text_content("#k-data"))

    def shown() -> list[list[str]]:
        parts = page.query_selector_all("#k-words ol")
        return [[name.inner_text() for name in part.query_selector_all(".name")] for part in parts]

    def expected(step: int) -> list[list[str]]:
        return [[data["names"][entry[0]] for entry in top] for top in data["steps"][step]["tops"]]

    assert shown() == expected(data["start"])
    page.focus("#k")
    for key, step in (("ArrowLeft", data["start"] - 1), ("ArrowRight", data["start"]), ("End", -1), ("Home", 0)):
        page.keyboard.press(key)
        assert shown() == expected(step) and page.inner_text("#k-said") == data["steps"][step]["said"]
        assert page.get_attribute("#k", "aria-valuetext") == f"{data['steps'][step]['k']} features"
    assert expected(0) != expected(-1) and opened.said == []
    page.close()


def test_what_is_not_in_the_policy_does_not_run(browser: Any, place: Path, tmp_path: Path) -> None:
    """The policy is in force: the same page with a script, a style and a picture from elsewhere added."""
    added = "<script>document.title = 'ran'</script><img src='http://localhost:9/x.png'><p style='color: red'>x</p>"
    tampered = tmp_path / "t.html"
    tampered.write_text(place.read_text(encoding="utf-8").replace("</footer>", f"</footer>{added}"), encoding="utf-8")
    opened = Opened(browser, tampered)
    assert opened.page.title() != "ran" and len(opened.said) >= 3
    assert all("Content Security Policy" in one for one in opened.said)
    opened.page.close()


def test_without_scripts_and_in_print_its_words_are_there(browser: Any, place: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(place.as_uri())
    assert not page.is_visible("#k") and page.is_visible("#k-words li")
    context.close()
    opened = Opened(browser, place)
    opened.page.emulate_media(media="print")
    assert not opened.page.is_visible("#k") and opened.page.is_visible("#k-words li")
    assert opened.page.pdf(format="A4").startswith(b"%PDF")
    opened.page.close()


def test_it_is_shown_in_a_frame_of_a_notebook(browser: Any, place: Path, tmp_path: Path) -> None:
    from nfs_dask.reports.make_report import ModelReport

    frame = tmp_path / "notebook.html"
    shown = ModelReport(place.read_text(encoding="utf-8"))._repr_html_()
    frame.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>x</title>{shown}", encoding="utf-8")
    opened = Opened(browser, frame)
    inside = opened.page.frames[1]
    before = inside.inner_text("#k-said")
    inside.focus("#k")
    opened.page.keyboard.press("Home")
    assert inside.inner_text("#k-said") != before and opened.said == []
    opened.page.close()
