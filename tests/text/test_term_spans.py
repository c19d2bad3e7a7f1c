"""Places of terms in texts, against how often compiled code counts them, and against the texts themselves."""

# ruff: noqa: RUF001 - letters that look like others are what is tested

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings
from nfs_dask.text.strings import Strings
from nfs_dask.text.term_spans import term_spans
from nfs_dask.text.unicode import fold_text

# As in the tests of counting: case that changes length or depends on context, marks, ligatures, white space.
NASTY = "aB1_ .-'\t\n\0\x1c\x85\xa0\u2028\u3000ßẞİıΣσςÉE\u0301\u0327ﬁﷺ\u200d²½한ᄀ日本Ⱥ😀\U0001d7d8"
texts = (
    st.text(st.sampled_from(NASTY), max_size=25)
    | st.text(max_size=25)
    | st.sampled_from(["the cat AND the dog", "ΌΣΟΣ. ΣΑΣ Σ ΑΣ' Σ", "a  b\t\tc \n d", "x" * 70 + " " + "é" * 70, ""])
)
patterns = st.sampled_from([DEFAULT_PATTERN, r"\w+", r"\S\S+", r"[a-z]+", r"(\w)\w+", r"\w*", r"(?i)[a-c](b|\s)?"])
settings_of_texts = st.builds(
    TextSettings,
    analyzer=st.sampled_from(["word", "word", "char", "char_wb"]),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 4), (6, 7)]),
    lowercase=st.booleans(),
    strip_accents=st.sampled_from([None, None, "ascii", "unicode"]),
    token_pattern=patterns,
    stop_words=st.sampled_from([None, None, ("a", "ab", "the", "σ", "日本")]),
)


def counts(text: str, settings: TextSettings, tokenizer: Any = None) -> dict[str, int]:
    """As compiled code counts."""
    counter = TermCounter(settings, tokenizer=tokenizer)
    counter.add(Strings.of([text]))
    found = counter.finish()
    return dict(zip([found.terms[i].decode() for i in found.ids.tolist()], found.counts.tolist(), strict=True))


@given(text=texts, settings=settings_of_texts)
def test_each_term_has_as_many_places_as_it_is_counted(text: str, settings: TextSettings) -> None:
    spans = term_spans(text, settings)
    assert spans is not None
    assert Counter(span.term for span in spans) == counts(text, settings)
    assert all(0 <= span.start <= span.stop <= len(text) for span in spans)


@given(text=texts, settings=settings_of_texts)
def test_what_stands_there_is_the_term(text: str, settings: TextSettings) -> None:
    """But for spaces that stand for others or for the ends of words, and a sigma that ends no word where it is cut."""

    def plain(folded: str) -> str:
        return "".join(folded.split()).replace("ς", "σ")

    text = text.replace("\x1c", " ")  # which is white space to patterns, and not all that split takes for such
    if settings.analyzer == "word" and (settings.stop_words or settings.token_pattern != DEFAULT_PATTERN):
        return  # other characters may lie between tokens
    for span in term_spans(text, settings) or ():
        there = fold_text(text[span.start : span.stop], settings.lowercase, settings.strip_accents)
        if settings.analyzer == "word":
            words = span.term.split(" ")
            assert there.replace("ς", "σ").startswith(words[0].replace("ς", "σ"))
            assert plain(there).endswith(plain(words[-1]))
        elif settings.strip_accents is None and not {"İ", "ﷺ"} & set(text):  # several characters, of which some are cut
            assert plain(there) == plain(span.term)


def shown(text: str, **options: Any) -> list[str]:
    tokenizer: Callable[[str], list[str]] | None = options.pop("tokenizer", None)
    found = term_spans(text, TextSettings(**options), tokenizer)
    assert found is not None
    return [text[span.start : span.stop] for span in found]


def test_texts_are_as_they_were_given() -> None:
    assert shown("Ein CAFE\u0301, bitte", strip_accents="unicode") == ["Ein", "CAFE\u0301", "bitte"]
    assert shown("Café au lait", strip_accents="ascii", ngrams=(2, 2)) == ["Café au", "au lait"]
    assert shown("cup of  Tea", ngrams=(2, 2), stop_words=("of",)) == ["cup of  Tea"]
    assert shown("a  b", analyzer="char", ngrams=(2, 2)) == ["a  ", "  b"]
    assert shown("to be", analyzer="char_wb", ngrams=(3, 3)) == ["to", "to", "be", "be"]
    assert shown("İstanbul", analyzer="char", ngrams=(2, 2))[:2] == ["İ", "İs"]


def test_words_are_marked_as_they_stand_and_named_by_their_stems() -> None:
    text = "Die HÄUSER der Nachbarn, ein häusliches Glück"
    settings = TextSettings(stem="german", stop_words=("die", "der", "ein"), ngrams=(1, 2))
    spans = term_spans(text, settings)
    assert spans is not None
    found = [(span.term, text[span.start : span.stop]) for span in spans]
    assert found[:3] == [("haus", "HÄUSER"), ("nachbarn", "Nachbarn"), ("hauslich", "häusliches")], found
    assert ("haus nachbarn", "HÄUSER der Nachbarn") in found
    assert Counter(span.term for span in spans) == counts(text, settings)


def test_a_tokenizer_of_ones_own_is_followed_as_far_as_its_tokens_are_there() -> None:
    settings = TextSettings(tokenizer="its name")
    spans = term_spans("a cat at Home", settings, lambda text: ["at", "home"])
    assert [(span.term, span.start) for span in spans or ()] == [("at", 6), ("home", 9)]
    assert term_spans("the cats", settings, lambda text: ["the", "cat"]) == [("the", 0, 3), ("cat", 4, 7)]
    assert term_spans("the mice", settings, lambda text: ["the", "mouse"]) is None
    text = "Mice, and more Mice!"
    found = term_spans(text, settings, lambda folded: folded.replace(",", "").split())
    assert Counter(span.term for span in found or ()) == counts(text, settings, lambda f: f.replace(",", "").split())


@pytest.mark.parametrize("n", [1, 3])
def test_no_text_has_no_terms(n: int) -> None:
    assert term_spans("", TextSettings(ngrams=(n, n))) == []
