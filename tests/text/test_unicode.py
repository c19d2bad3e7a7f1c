"""The tables of characters against Python's own methods and scikit-learn's, for every code point."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from sklearn.feature_extraction.text import strip_accents_ascii, strip_accents_unicode

from nfs_dask.text.unicode import CONTEXTUAL, N_CODES, SOLID, WORD, fold_text, folding, kinds

SIGMA = ord("Σ")
SURROGATES = range(0xD800, 0xE000)
STRIP = {None: lambda text: text, "ascii": strip_accents_ascii, "unicode": strip_accents_unicode}


@pytest.fixture(scope="module")
def characters():
    return [chr(code) for code in range(N_CODES)]


def test_words_are_what_python_says(characters):
    word = np.fromiter((c.isalnum() or c == "_" for c in characters), bool)
    np.testing.assert_array_equal((kinds() & WORD) != 0, word)


def test_white_space_is_what_python_says(characters):
    space = np.fromiter(map(str.isspace, characters), bool)
    np.testing.assert_array_equal((kinds() & SOLID) == 0, space)
    assert [c for c in characters if c.isspace()] == re.findall(r"\s", "".join(characters))
    assert "a".join(c for c in characters if c.isspace()).split() == ["a"] * (space.sum() - 1)


def unfold(table):
    """What the table says of each code point."""
    text = table.pieces.tobytes()
    pieces = [text[a:b].decode() for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]
    return [
        None if code == CONTEXTUAL else chr(code) if code >= 0 else pieces[-1 - code] for code in table.codes.tolist()
    ]


@pytest.mark.parametrize("accents", [None, "ascii", "unicode"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_folding_is_what_python_and_scikit_learn_say(characters, lowercase, accents):
    found = unfold(folding(lowercase, accents))
    for code, (character, folded) in enumerate(zip(characters, found, strict=True)):
        if code in SURROGATES:  # no valid text has them
            continue
        if lowercase and code == SIGMA:
            assert folded is None
        elif folded != STRIP[accents](character.lower() if lowercase else character):
            raise AssertionError(f"{character!r} (U+{code:04X}) becomes {folded!r}")


def test_only_sigma_depends_on_its_neighbours(characters):
    """Every character between, before and after letters, and beside one that case ignores."""
    for before, after in [("", ""), ("a", "a"), ("A.", "")]:
        stretches = [before + c + after + "\0" for c in characters]
        alone = [before.lower() + c.lower() + after.lower() + "\0" for c in characters]
        if "".join(stretches).lower() != "".join(alone):
            differ = [c for c, a, b in zip(characters, stretches, alone, strict=True) if a.lower() != b]
            assert differ == ["Σ"]


def test_lower_case_is_lower_already(characters):
    lowered = "".join(characters).lower()
    assert lowered.lower() == lowered


@pytest.mark.parametrize("accents", [None, "ascii", "unicode"])
def test_folding_a_text_is_scikit_learns_way(accents):
    text = "Ǆ Ὀδυσσεύς ΌΣΟΣ ﬁ ﷺ é e\u0301 \u0301\u0327 한국 İI"
    assert fold_text(text, True, accents) == STRIP[accents](text.lower())
    assert fold_text(text, False, accents) == STRIP[accents](text)


def test_tables_are_made_once_and_soon():
    kinds.cache_clear()
    folding.cache_clear()
    start = time.process_time()
    first = kinds(), folding(True, "unicode")
    assert time.process_time() - start < 3  # 0.15 s
    assert kinds() is first[0] and folding(True, "unicode") is first[1]
    assert first[1].widest == len(fold_text("\ufdfa", True, "unicode").encode())
