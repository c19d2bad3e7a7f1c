"""Pages of explained documents: whole, self-contained, and with nothing in them that was a document's own markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from nfs_dask.prediction.explained_document import ExplainedDocument, Mark, MarkedText, Part
from nfs_dask.prediction.explained_html import STYLE, explanation_html, explanation_page
from nfs_dask.prediction.explained_text import WIDTH, explained_lines

EVIL = "<script>alert('x')</script> & \"quoted\" \x00\x1b[31m\nnext  line"
VOID = {"meta"}


class Reading(HTMLParser):
    """Tags, attributes and texts; every tag is closed where it was opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag] = self.texts.get(tag, "") + data


def document(text: str = EVIL, label: str = EVIL, n: int = 3) -> ExplainedDocument:
    parts = (Part(EVIL, 1.0, 2.0), Part("quoted", 1.0, -1.5), *(Part(f"w{i}", 1.0, 0.1) for i in range(n)))
    marks = (Mark(0, 0, 8), Mark(1, text.find("quoted"), text.find("quoted") + 6)) if "quoted" in text else ()
    return ExplainedDocument(
        7, label, 0.9, f"log odds of {label}", (label, "ham"), -0.5, parts, (MarkedText("", text, marks),)
    )


def test_markup_of_documents_shows_as_text() -> None:
    page = Reading(explanation_page([document()], EVIL))
    names = {tag for tag, _ in page.tags}
    assert "script" not in names and not {"img", "a", "link", "iframe"} & names
    assert page.texts["blockquote"] == EVIL.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    assert "<script>" in page.texts["td"] and "<script>" in page.texts["title"] and "<script>" in page.texts["h3"]
    titles = [attributes["title"] for tag, attributes in page.tags if tag == "mark" and "title" in attributes]
    assert titles[1] == "quoted -1.500" and (titles[0] or "").startswith("<script>")


def test_nothing_is_loaded_and_sides_differ_by_more_than_color() -> None:
    page = explanation_page([document()], "title")
    assert not re.search(r"(src|href)\s*=|url\(|@import|https?:", page)
    assert "solid" in STYLE and "dashed" in STYLE
    classes = [attributes["class"] for tag, attributes in Reading(page).tags if tag == "mark" and "title" in attributes]
    assert [(one or "").split()[0] for one in classes] == ["nfs-for", "nfs-against"]


def test_no_element_has_a_style_of_its_own() -> None:
    """Pages that allow only the styles they name would not show it."""
    page = Reading(explanation_page([document()], "title"))
    assert not any("style" in attributes for _, attributes in page.tags)
    strengths = {one for _, attributes in page.tags for one in (attributes.get("class") or "").split() if "veil" in one}
    assert strengths and all(f".{one} {{ --nfs-veil" in STYLE for one in strengths)


def test_fragments_need_the_style_once() -> None:
    fragment = explanation_html([document(), document()])
    assert "<style" not in fragment and Reading(fragment).tags[0] == ("div", {"class": "nfs-explained"})
    assert explanation_page([document()] * 3, "title").count("<style") == 1


def test_lines_fit_a_terminal_and_move_no_cursor() -> None:
    long = document("quoted " + "plain words " * 200 + "end", "a label of quite some words " * 6, 40)
    for one in (document(), long):
        lines = list(explained_lines(one, 10))
        assert all(len(line) <= WIDTH and line.isprintable() for line in lines)
    assert lines[-1] == "and 32 more features that contribute less"
    assert any("…" in line.split() for line in lines) and len(lines) < 40


def test_of_very_long_texts_the_beginning_is_printed() -> None:
    text = "quoted words " * 10_000
    marks = tuple(Mark(1, start, start + 6) for start in range(0, len(text), 13))
    one = document("", "spam")
    long = ExplainedDocument(0, "spam", 0.9, "", ("spam", "ham"), 0.0, one.parts, (MarkedText("", text, marks),))
    shown = " ".join(line.strip() for line in explained_lines(long))
    left = int(re.findall(r"… and ([\d,]+) more characters", shown)[0].replace(",", ""))
    n_marks = shown.count("[quoted ")
    assert len(shown) < 20_000 and len(text) - left in (
        13 * n_marks,
        13 * n_marks - 7,
    )  # with the words after it or not
