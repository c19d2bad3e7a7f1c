"""Counted terms against scikit-learn's CountVectorizer, on all of Unicode."""

# ruff: noqa: RUF001 - letters that look like others are what is tested

from __future__ import annotations

import re
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from nfs_dask.errors import InputError
from nfs_dask.text import counting
from nfs_dask.text.analysis import Analysis, runs_of
from nfs_dask.text.counting import TermCounter, hash_strings
from nfs_dask.text.settings import DEFAULT_PATTERN, TextSettings
from nfs_dask.text.strings import Strings
from nfs_dask.text.unicode import SOLID, WORD, fold_text
from tests.helpers.places import data_file

# What tends to go wrong: case that changes length or depends on context, marks, ligatures, joiners, digits of other
# scripts, white space of all kinds, characters of 1 to 4 bytes, NUL.
NASTY = (
    "aB1_ .-'\t\n\0\x1c\x1f\x85\xa0\u2028\u3000ßẞİıΣσςΑǅéE\u0301\u0327ﬁﷺ\u200d\u200b٣²½Ⅷ한ᄀ日本Ⱥ\ufeff\ufffd"
    "😀👩\U0001d7d8\U0010ffff"
)
texts = st.lists(
    st.text(st.sampled_from(NASTY), max_size=25)
    | st.text(max_size=25)
    | st.text(st.sampled_from("abAB "), max_size=40)
    | st.sampled_from(["the cat AND the dog", "ΌΣΟΣ. ΣΑΣ Σ ΑΣ' Σ", "a  b\t\tc \n d", "x" * 300 + " " + "é" * 300]),
    max_size=6,
)
ngram_ranges = st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 4), (3, 5), (6, 7)])
accents = st.sampled_from([None, None, "ascii", "unicode"])
patterns = st.sampled_from(
    [DEFAULT_PATTERN, r"\b\w\w+\b", r"\b\w+\b", r"(?u)\b\w+\b", r"\w+", r"\w\w+", r"\w\w\w+\b", r"\S+", r"\S\S+"]
    + [r"[a-z]+", r"(\w)\w+", r"\w*", r"(?a)\w+", r"(?i)[a-c](b|\s)?", r"\b\S+\b", r"\w+|[^\w\s]"]
)
stop_lists = st.sampled_from(
    [None, None, (), ("aB", "ab", "a", "\ud800", "σ", "日本"), tuple(sorted(ENGLISH_STOP_WORDS))]
)


def counted(texts, settings=None, **options):
    """As a Counter for each text, and the terms."""
    counter = TermCounter(settings or TextSettings(), **options)
    half = len(texts) // 2
    counter.add(Strings.of(texts[:half]))
    counter.add(Strings.of(texts[half:]))
    return unpack(counter.finish())


def unpack(found):
    terms = found.terms.to_list()
    assert len(set(terms)) == len(terms)
    assert (found.indptr.dtype, found.ids.dtype, found.counts.dtype) == (np.int64, np.int32, np.int32)
    rows = []
    for a, b in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        names = [terms[i] for i in found.ids[a:b].tolist()]
        assert len(set(names)) == len(names)
        rows.append(Counter(dict(zip(names, found.counts[a:b].tolist(), strict=True))))
    return rows, terms


def expected(texts, settings, tokenizer=None):
    """What scikit-learn's analyzer makes of each text, and the terms in order of appearance."""
    analyze = CountVectorizer(
        analyzer=settings.analyzer,
        ngram_range=settings.ngrams,
        lowercase=settings.lowercase,
        strip_accents=settings.strip_accents,
        token_pattern=settings.token_pattern,
        tokenizer=tokenizer,
        stop_words=None if settings.stop_words is None else list(settings.stop_words),
    )
    analyze._stop_words_id = id(analyze.stop_words)  # no warning about words that the pattern would split
    lists = list(map(analyze.build_analyzer(), texts))
    return [Counter(terms) for terms in lists], list(dict.fromkeys(term for terms in lists for term in terms))


def check(texts, settings, *, tokenizer=None, **options):
    assert counted(texts, settings, tokenizer=tokenizer, **options) == expected(texts, settings, tokenizer)


@given(texts, ngram_ranges, st.booleans(), accents, patterns, stop_lists)
def test_words_are_scikit_learns(texts, ngrams, lowercase, strip_accents, pattern, stop_words):
    check(
        texts,
        TextSettings(
            ngrams=ngrams,
            lowercase=lowercase,
            strip_accents=strip_accents,
            token_pattern=pattern,
            stop_words=stop_words,
        ),
    )


@given(texts, st.sampled_from(["char", "char_wb"]), ngram_ranges, st.booleans(), accents, st.integers(1, 8))
def test_characters_are_scikit_learns(texts, analyzer, ngrams, lowercase, strip_accents, capacity):
    settings = TextSettings(analyzer=analyzer, ngrams=ngrams, lowercase=lowercase, strip_accents=strip_accents)
    check(texts, settings, capacity=capacity)


@given(texts, st.sampled_from(["word", "char", "char_wb"]), st.sampled_from([1, 3, 20]), st.integers(1, 8))
def test_collisions_change_nothing(texts, analyzer, hash_bits, capacity):
    check(texts, TextSettings(analyzer=analyzer, ngrams=(1, 2)), hash_bits=hash_bits, capacity=capacity)


def test_collisions_are_counted():
    words = [f"w{i}" for i in range(100)]
    counter = TermCounter(TextSettings(), hash_bits=4)
    counter.add(Strings.of([" ".join(words)]))
    hashes = hash_strings(Strings.of(words)) >> np.uint64(60)
    assert counter.collisions == 100 - len(np.unique(hashes)) > 80
    assert counter.finish().collisions == 84
    assert counter.collisions == 0


def test_strings_of_one_hash_are_told_apart():
    """The sequence of Thue and Morse and its complement: equal under any polynomial hash with an odd base."""
    signs = [bin(i).count("1") % 2 for i in range(2048)]
    one, other = ("".join(letters[sign] for sign in signs) for letters in ("ab", "ba"))
    hashes = hash_strings(Strings.of([one, other]))
    assert hashes[0] == hashes[1]
    texts = [f"{one} {other} {one}", other]
    check(texts, TextSettings(ngrams=(1, 2)))
    for known, n in (([one], [2]), ([other], [1, 1]), ([one, other], [2, 1, 1])):
        counter = TermCounter(TextSettings(), known=Strings.of(known))
        counter.add(Strings.of(texts))
        assert counter.collisions == len(known) - 1
        assert counter.finish().counts.tolist() == n
    check(texts, TextSettings(stop_words=(other,)))


@pytest.mark.parametrize("strip_accents", [None, "ascii", "unicode"])
def test_texts_that_grow_and_texts_full_of_tokens(strip_accents):
    """Buffers are guessed from the length of the texts, too small for these."""
    texts = ["\ufdfa" * 3000 + "Σ", "Ⱥ" * 5000, "İ" * 5000 + "ΑΣ", "x " * 20000, "Σ" * 9000]
    for analyzer in ("word", "char_wb"):
        check(texts, TextSettings(analyzer=analyzer, strip_accents=strip_accents, token_pattern=r"\w+"), capacity=1)


@given(st.lists(st.text(st.characters(max_codepoint=127) | st.sampled_from("AZaz@[`{éÉİß😀"), max_size=40)), accents)
def test_ascii_is_folded_whatever_stands_beside_it(texts, strip_accents):
    settings = TextSettings(lowercase=True, strip_accents=strip_accents)
    analysis = Analysis(settings, None, hash_bits=64, n_slices=8)
    strings = Strings.of(["before", *texts])
    folded = analysis.fold(strings.text, strings.offsets[1:])
    assert folded.to_list() == [fold_text(text, True, strip_accents) for text in texts]


def test_every_character_is_split_and_folded_as_scikit_learn_does():
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(f"x{chr(code)}y " for code in codes[i : i + 4096]) for i in range(0, len(codes), 4096)]
    for settings in (TextSettings(), TextSettings(lowercase=False, token_pattern=r"\S+")):
        rows, terms = counted(texts, settings)
        assert (rows, terms) == expected(texts, settings)
    assert len(terms) > 1_000_000


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_many_terms_in_one_text_and_many_texts(analyzer, monkeypatch):
    """More than one lot of slices in a row, more than one batch of texts, and empty texts by the thousand."""
    monkeypatch.setattr(counting, "BATCH_NBYTES", 1000)
    monkeypatch.setattr(counting, "BATCH_TEXTS", 100)
    rng = np.random.default_rng(0)
    words = [f"{'é' * (i % 3)}w{i}" for i in range(3000)]
    texts = [" ".join(rng.choice(words, n)) for n in (5000, 0, 3, 2000)] + [""] * 1000 + ["last one"]
    check(texts, TextSettings(analyzer=analyzer, ngrams=(1, 3)), capacity=2)


def test_long_tokens_are_hashed_as_strings_are():
    """Longer than the table of powers; names that differ in one place only."""
    long = "é" * 5000
    rows, terms = counted([f"{long} {long}a {long} b{long}"], TextSettings(ngrams=(1, 2)))
    assert rows[0][long] == 2 and len(terms) == 6
    counter = TermCounter(TextSettings(ngrams=(2, 2)), known=Strings.of([f"{long}a {long}"]))
    counter.add(Strings.of([f"{long}a {long}"]))
    assert counter.finish().counts.tolist() == [1]


# Known terms


@given(texts, st.sampled_from(["word", "char", "char_wb"]), st.integers(0, 5), st.sampled_from([2, 64]))
def test_known_terms_are_counted_and_no_others(texts, analyzer, step, hash_bits):
    settings = TextSettings(analyzer=analyzer, ngrams=(1, 2))
    rows, terms = expected(texts, settings)
    known = ["never", *terms[:: step + 1]]
    counter = TermCounter(settings, known=Strings.of(known), hash_bits=hash_bits, capacity=2)
    for _ in range(2):  # it starts afresh, with the same terms
        counter.add(Strings.of(texts))
        before = counter.nbytes
        found, kept = unpack(counter.finish())
        assert kept == known
        assert found == [Counter({term: n for term, n in row.items() if term in known}) for row in rows]
        assert counter.nbytes <= before


@pytest.mark.parametrize("known", [["tea"], ["green tea", "black tea leaves"], ["leaves"], ["no such term at all"]])
def test_known_terms_of_some_lengths_are_scikit_learns(known):
    texts = ["green tea and black tea leaves", "tea", "", "leaves of green tea leaves"]
    counted = counts_of(texts, TextSettings(ngrams=(1, 3)), known)
    assert counted == CountVectorizer(ngram_range=(1, 3), vocabulary=known).transform(texts).toarray().tolist()


def counts_of(texts, settings, known, tokenizer=None):
    counter = TermCounter(settings, known=Strings.of(known), tokenizer=tokenizer)
    counter.add(Strings.of(texts))
    found, rows = counter.finish(), []
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        rows.append(np.bincount(found.ids[start:stop], found.counts[start:stop], len(known)).astype(int).tolist())
    return rows


def test_a_tokenizer_may_leave_spaces_in_a_token():
    def halves(text):
        return text.split(", ")

    assert counts_of(["green tea, milk", "milk"], TextSettings(ngrams=(1, 2)), ["green tea"], halves) == [[1], [0]]
    settings = TextSettings(token_pattern=r"[a-z ]+", ngrams=(1, 2))
    assert counts_of(["green tea, milk", "milk"], settings, ["green tea"]) == [[1], [0]]


def test_known_terms_are_distinct():
    with pytest.raises(InputError, match="'b' is given more than once"):
        TermCounter(TextSettings(), known=Strings.of(["a", "b", "c", "b"]))


def test_no_known_term_is_no_term():
    counter = TermCounter(TextSettings(), known=Strings.of([]))
    counter.add(Strings.of(["some text", ""]))
    found = counter.finish()
    assert len(found.terms) == 0 and found.indptr.tolist() == [0, 0, 0]


# Tokenizers and patterns


@given(texts, ngram_ranges, stop_lists)
def test_a_tokenizers_tokens_are_taken_as_they_are(texts, ngrams, stop_words):
    """With spaces in them, and empty."""
    settings = TextSettings(ngrams=ngrams, stop_words=stop_words, tokenizer="here")
    check(texts, settings, tokenizer=lambda text: re.split("[bB.]", text))


def test_a_tokenizer_may_be_a_generator():
    rows, _ = counted(["a b  c"], tokenizer=lambda text: (token for token in text.split(" ")))
    assert rows == [Counter({"a": 1, "b": 1, "": 1, "c": 1})]


@pytest.mark.parametrize("token", [b"bytes", 1, None])
def test_a_tokenizer_gives_strings(token):
    with pytest.raises(InputError, match=f"gave {token!r}, a {type(token).__name__}"):
        counted(["text"], tokenizer=lambda text: ["good", token])


def test_a_tokenizer_gives_what_utf8_can_hold():
    with pytest.raises(InputError, match=r"'\\ud800'.*UTF-8"):
        counted(["text"], tokenizer=lambda text: ["good", "\ud800"])


def test_a_tokenizer_that_is_not_at_hand_is_asked_for():
    with pytest.raises(InputError, match="made by my.tokens, which is not at hand"):
        TermCounter(TextSettings(tokenizer="my.tokens"))


@pytest.mark.parametrize(
    ("pattern", "runs"),
    [
        (DEFAULT_PATTERN, (WORD, 2)),
        (r"\w+", (WORD, 1)),
        (r"\b\w\w\w+", (WORD, 3)),
        (r"\S\S+", (SOLID, 2)),
        (r"\b\S+\b", None),
        (r"(?a)\w+", None),
        (r"(\w+)", None),
        (r"\w", None),
        (r"\W+", None),
        (r"\w+?", None),
        (r"\\w+", None),
    ],
)
def test_patterns_of_runs_are_recognised(pattern, runs):
    assert runs_of(pattern) == runs


# What comes in


BROKEN = [b"\x80", b"a\xc3", b"\xc0\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80"]


@given(st.lists(st.binary(max_size=8) | st.sampled_from(BROKEN) | st.text(max_size=4).map(str.encode), max_size=4))
def test_bytes_are_refused_where_python_would(texts):
    def decodes(text):
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True

    counter = TermCounter(TextSettings())
    wrong = [i for i, text in enumerate(texts) if not decodes(text)]
    if wrong:
        with pytest.raises(InputError, match=f"text {wrong[0]} is not valid UTF-8"):
            counter.add(Strings.of(texts))
        assert counter.n_rows == 0
    else:
        counter.add(Strings.of(texts))
        assert counter.n_rows == len(texts)


@pytest.mark.parametrize("offsets", [[0, 1, 3], [0, 9], [-1, 2], [2, 0], [0, 2, 1]])
def test_offsets_that_leave_the_texts_are_refused(offsets):
    """Nor may one cut a character in two."""
    with pytest.raises(InputError, match="not valid UTF-8"):
        TermCounter(TextSettings()).add(Strings(np.array(offsets), np.frombuffer("éa".encode(), np.uint8)))


def test_texts_may_be_anywhere_in_their_buffer_and_of_any_integers():
    whole = Strings.of(["not this", "but THIS", "é", "nor this"])
    part = Strings(whole.offsets.astype(np.int32), np.concatenate([whole.text, whole.text])[: len(whole.text)]).part(
        1, 3
    )
    for settings in (TextSettings(), TextSettings(lowercase=False), TextSettings(analyzer="char")):
        counter = TermCounter(settings)
        counter.add(part)
        assert unpack(counter.finish()) == expected(["but THIS", "é"], settings)


def test_a_text_too_long_to_count_is_refused(monkeypatch):
    monkeypatch.setattr(counting, "MOST_NBYTES", 10)
    with pytest.raises(InputError, match="a text of 11 bytes; at most 10"):
        TermCounter(TextSettings()).add(Strings.of(["short", "long enough"]))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["a" * 30, "é" * 9 + "b" * 9])))
def test_texts_that_are_encoded_together_are_those_encoded_one_by_one(texts):
    together, one_by_one = Strings.encoded(texts), Strings.of(texts)
    assert together.to_list() == texts
    assert together.offsets.tolist() == one_by_one.offsets.tolist()
    assert together.text.tobytes() == one_by_one.text.tobytes()


def test_half_a_character_cannot_be_encoded():
    with pytest.raises(UnicodeEncodeError):
        Strings.encoded(["a", "\ud800"])


def test_nothing_is_nothing():
    counter = TermCounter(TextSettings())
    assert len(counter.finish().terms) == 0
    counter.add(Strings.of([]))
    found = counter.finish()
    assert found.n_rows == 0 and found.indptr.tolist() == [0]


# What is held


def arrays_of(value, seen):
    """All arrays that an object holds, each buffer once."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        seen[id(value)] = value.nbytes
    elif isinstance(value, dict):
        for part in value.values():
            arrays_of(part, seen)
    elif isinstance(value, (list, tuple)):
        for part in value:
            arrays_of(part, seen)
    elif hasattr(value, "__dict__"):
        arrays_of(vars(value), seen)
    return sum(seen.values())


@pytest.mark.parametrize(
    "settings", [TextSettings(ngrams=(1, 2), stop_words=("w1",)), TextSettings(analyzer="char_wb")]
)
def test_memory_is_what_the_arrays_take(settings):
    counter = TermCounter(settings)
    empty = counter.nbytes
    for i in range(3):
        counter.add(Strings.of([f"w{j} É" for j in range(i * 5000)]))
        assert counter.nbytes == arrays_of(counter, {})
    assert counter.nbytes > 5 * empty
    counter.finish()
    assert counter.nbytes == arrays_of(counter, {}) == empty
    assert empty < 400_000


def test_what_was_handed_out_does_not_change():
    counter = TermCounter(TextSettings())
    counter.add(Strings.of(["a1 b1 a1"]))
    first = counter.finish()
    counter.add(Strings.of(["zz yy xx ww"]))
    counter.finish()
    assert unpack(first) == ([Counter({"a1": 2, "b1": 1})], ["a1", "b1"])


def test_two_counters_in_two_threads_do_not_disturb_each_other():
    texts = [[f"{name}{i} É{i} Σ{i}Σ" for i in range(3000)] for name in "ab"]
    found = [None, None]

    def work(i):
        found[i] = counted(texts[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected(part, TextSettings()) for part in texts]


# Hashes


def reference_hash(name: bytes) -> int:
    most = 2**64 - 1
    h = 0
    for byte in name + b" ":
        h = (h * 0x9E3779B97F4A7C15 + byte + 1) & most
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = ((h ^ (h >> 33)) * factor) & most
    return h ^ (h >> 33)


@given(st.lists(st.text(max_size=20) | st.sampled_from(["", "\0", "\0\0", " "]), max_size=5))
def test_hashes_are_what_their_definition_says(names):
    assert hash_strings(Strings.of(names)).tolist() == [reference_hash(name.encode()) for name in names]


def test_hashes_never_change():
    assert [hex(h) for h in hash_strings(Strings.of(["", "nfs", "naïve bayes"])).tolist()] == [
        "0x6e54cc947ba2590f",
        "0x254ca27a2e1f3da2",
        "0xe58cd5b53e48581c",
    ]


def test_hashes_are_evenly_spread():
    """Counters, which differ in few bits only: no two equal, and the top bits as random ones would be."""
    hashes = hash_strings(Strings.of([f"{a}{i}" for a in ("", "w", "the ") for i in range(100_000)]))
    assert len(np.unique(hashes)) == 300_000
    for bits in (4, 10):
        sizes = np.bincount((hashes >> np.uint64(64 - bits)).astype(np.int64), minlength=2**bits)
        chi_square = ((sizes - 300_000 / 2**bits) ** 2).sum() / (300_000 / 2**bits)
        assert abs(chi_square - 2**bits) < 6 * np.sqrt(2 * 2**bits)


# Real texts


def real_texts(name, step=1):
    pd = pytest.importorskip("pandas")
    return pd.read_parquet(data_file(name), columns=["text"])["text"].tolist()[::step]


@pytest.mark.parametrize(
    ("file", "step", "settings"),
    [
        ("twitter100k.parquet", 1, TextSettings(ngrams=(1, 2))),
        ("twitter100k.parquet", 10, TextSettings(analyzer="char", ngrams=(2, 2), strip_accents="unicode")),
        ("twitter100k.parquet", 10, TextSettings(analyzer="char_wb", ngrams=(2, 4))),
        ("imdb.parquet", 100, TextSettings(ngrams=(1, 2), stop_words=tuple(sorted(ENGLISH_STOP_WORDS)))),
        ("newsgroups20.parquet", 50, TextSettings(token_pattern=r"\S+", strip_accents="ascii")),
    ],
)
def test_real_texts_give_scikit_learns_matrix(file, step, settings):
    texts = real_texts(file, step)
    words = CountVectorizer(
        analyzer=settings.analyzer,
        ngram_range=settings.ngrams,
        strip_accents=settings.strip_accents,
        token_pattern=settings.token_pattern if settings.analyzer == "word" else None,
        stop_words=None if settings.stop_words is None else list(settings.stop_words),
    )
    X = words.fit_transform(texts)
    counter = TermCounter(settings)
    counter.add(Strings.of(texts))
    found = counter.finish()
    assert found.collisions == 0
    names = np.array(found.terms.to_list(), object)
    order = np.argsort(names)
    np.testing.assert_array_equal(names[order], words.get_feature_names_out())
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    Y = type(X)((found.counts, rank[found.ids], found.indptr), shape=X.shape)
    X.sort_indices()
    Y.sort_indices()
    np.testing.assert_array_equal(Y.indptr, X.indptr)
    np.testing.assert_array_equal(Y.indices, X.indices)
    np.testing.assert_array_equal(Y.data, X.data)
