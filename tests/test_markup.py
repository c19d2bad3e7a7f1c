"""Pieces of HTML: whatever is in them is text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from nfs_dask.markup import escaped, facts_list, fragment, html_table, shortened_name

EVIL = "</td><script>alert(1)</script>"


class Texts(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.found += [data] if data.strip() else []


def test_a_table_names_its_rows_and_columns() -> None:
    made = Texts(html_table([EVIL, "n"], [["a", 1], [EVIL, 2]], EVIL))
    assert made.tags == ["table", "caption", "thead", *["tr", "th", "th"], "tbody", *2 * ["tr", "th", "td"]]
    assert made.found == [EVIL, EVIL, "n", "a", "1", EVIL, "2"]
    assert html_table(["a", "n"], [["x", 1]]).count(' class="nfs-number"') == 2


def test_facts_have_no_head() -> None:
    made = Texts(facts_list([("rows", 3), (EVIL, None)], "Data"))
    assert made.tags == ["table", "caption", "tbody", *2 * ["tr", "th", "td"]]
    assert made.found == ["Data", "rows", "3", EVIL, "None"]


def test_fragments_keep_their_style_to_themselves() -> None:
    made = fragment("<p>x</p>", "<p>y</p>")
    assert made.startswith("<style>.nfs-fragment ") and made.endswith("<p>x</p>\n<p>y</p>\n</div>")


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x7f", "\x85", "\ud800"])
def test_what_no_page_may_hold_is_marked(letter: str) -> None:
    assert escaped(f"a{letter}b\n") == "a\ufffdb\n" == f"{shortened_name(f'a{letter}b')}\n"


def test_long_names_keep_both_ends() -> None:
    assert shortened_name("x" * 201, 200) == "x" * 99 + "…" + "x" * 99
    assert shortened_name("x" * 200, 200) == "x" * 200 and shortened_name(7) == "7"
