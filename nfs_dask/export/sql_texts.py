"""Words of texts, counted in SQL as they were for the fit; where a database would find others, that is refused."""

from __future__ import annotations

from collections.abc import Sequence

from nfs_dask.errors import InputError
from nfs_dask.export.sql_dialects import SIGMAS, Dialect
from nfs_dask.export.sql_statement import OURS
from nfs_dask.text.analysis import runs_of
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.unicode import WORD

MOST_TOGETHER = 8  # words of an n-gram: each length is one more scan of the words


def tables_of_words(
    settings: TextSettings, names: Sequence[str], dialect: Dialect, texts: str, document: str, text: str
) -> list[tuple[str, str]]:
    """Queries that make ``document``, ``term`` and ``n`` of a table of texts; the last one has them.

    Parameters
    ----------
    settings
        How the texts of the fit became terms.
    names
        The terms of the selected features.
    dialect
    texts, document, text
        The table and its columns, in quotes.
    """
    shortest = _shortest_word(settings)
    if settings.lowercase and not dialect.knows_sigma and any(sigma in name for name in names for sigma in SIGMAS):
        raise InputError(
            f"the features have a Greek sigma, and {dialect.name} does not tell its two small forms apart when it "
            "makes texts lower-case; take dialect='postgres', or a table of counted words"
        )
    lowest, highest = settings.ngrams
    tokens = [("tokens", dialect.tokens(texts, document, text, shortest, settings.lowercase))]
    source = f"{OURS}tokens"
    if settings.stop_words:
        stopped = ", ".join(dialect.text(word) for word in settings.stop_words if dialect.holds(word))
        tokens.append(("words", f"SELECT document, place, token FROM {source} WHERE token NOT IN ({stopped})"))
        source = f"{OURS}words"
    if highest > 1:
        tokens.append(("runs", dialect.runs(source, highest)))
        source = f"{OURS}runs"
    grams = [
        f"SELECT document, {' || {0} || '.join(_words(n)).format(dialect.text(' '))} AS term, 1 AS n FROM {source}"
        + (f" WHERE token_{n - 1} IS NOT NULL" if n > 1 else "")
        for n in range(lowest, highest + 1)
    ]
    every = f"SELECT {document} AS document, NULL AS term, 0 AS n FROM {texts}"  # also of texts without any word
    terms = "\n  UNION ALL ".join([*grams, every])
    if not settings.binary:
        return [*tokens, ("terms", terms)]
    present = f"SELECT document, term, max(n) AS n FROM {OURS}found GROUP BY document, term"
    return [*tokens, ("found", terms), ("terms", present)]


def _words(n: int) -> list[str]:
    return ["token", *(f"token_{i}" for i in range(1, n))]


def _shortest_word(settings: TextSettings) -> int:
    """Characters of the shortest word; texts that are not split into runs of word characters are refused."""
    where = "count the words yourself, and give a table of document, term and n"
    if settings.tokenizer is not None:
        raise InputError(f"the texts were split by {settings.tokenizer}, a function of Python; {where}")
    if settings.stem is not None:
        raise InputError(f"the words of the fit were stemmed ({settings.stem}), which SQL does not; {where}")
    if settings.analyzer != "word":
        raise InputError(f"analyzer={settings.analyzer!r} makes n-grams of characters, which SQL does not; {where}")
    if settings.strip_accents is not None:
        raise InputError(f"strip_accents={settings.strip_accents!r}: databases take other accents away; {where}")
    if settings.tfidf:
        raise InputError(
            "the model is of tf-idf weights; give a table of document, term and n, where n are those weights"
        )
    if settings.ngrams[1] > MOST_TOGETHER:
        raise InputError(f"ngrams={settings.ngrams}: of more than {MOST_TOGETHER} words SQL makes none; {where}")
    runs = runs_of(settings.token_pattern)
    if runs is None or runs[0] != WORD:
        raise InputError(
            f"token_pattern={settings.token_pattern!r}: databases know other regular expressions than Python, and only "
            f"patterns such as the default one mean the same; {where}"
        )
    return runs[1]
