"""Models as one statement of SQL: from tables of counted words, or of texts, to the class of each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, did_you_mean
from nfs_dask.export.additive import AdditiveScores, additive_scores, refuse_exact_features, refuse_unselected
from nfs_dask.export.feature_table import log_probabilities
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.text.analysis import runs_of
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.unicode import WORD, kinds

MOST_CLASSES = 800  # PostgreSQL has at most 1,664 columns in a query, and a class may have two
MOST_TOGETHER = 8  # words of an n-gram: each length is one more scan of the words
OURS = "nfs_dask_"  # what the names of our own tables begin with
SIGMAS = "\u03c3\u03c2"  # which of them a capital one becomes depends on its neighbours
DOTTED_I = "\u0130"  # the one letter that becomes two characters in lower case

Escapes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Dialect:
    """The words of a database; texts and names that it cannot hold are refused."""

    name: str
    double: str
    integer: str
    unsigned: str  # that holds 64 bits
    minus_infinity: str
    rows: str  # a query of the table of features
    words: str | None  # a query of the words of texts; None: the database cannot split texts
    greatest: str = "greatest({})"
    lower: str = "lower(replace({text}, {dotted}, {plain}))"
    following: str = "lead(token, {i}) OVER (PARTITION BY document ORDER BY place)"  # the token i places later
    runs: str = "SELECT document, token, {following} FROM {tokens}"
    knows_sigma: bool = False  # lower() looks at the neighbours of a sigma, as Python's does
    escapes: Escapes = (("'", "''"),)  # within the quotes of texts
    backslashes: str = ""  # before the quotes of texts that have some
    nul: str | None = None  # joins texts around a NUL, which is escaped or refused if not given
    name_escapes: Escapes = (('"', '""'),)

    def identifier(self, name: str) -> str:
        """A name in quotes: it means itself, whatever characters it has."""
        if not name or "\x00" in name:
            raise InputError(f"{name!r} is no name of a table or column; give one with at least one character")
        return f'"{_escaped(_encodable(name), self.name_escapes)}"'

    def table(self, name: str | Sequence[str]) -> str:
        """A table by its name, or by that of its schema, a dot and its name; names with dots come as a sequence."""
        return ".".join(map(self.identifier, name.split(".") if isinstance(name, str) else name))

    def text(self, value: str) -> str:
        """A string."""
        if not self.holds(value):
            raise InputError(f"PostgreSQL has no texts with a NUL character, such as {value!r}; rename it")
        prefix = self.backslashes if "\\" in value else ""
        pieces = _encodable(value).split("\x00") if self.nul is not None else [_encodable(value)]
        quoted = [f"{prefix}'{_escaped(piece, self.escapes)}'" for piece in pieces]
        return quoted[0] if self.nul is None or len(quoted) == 1 else f"({self.nul.join(quoted)})"

    def holds(self, term: str) -> bool:
        """False for texts that the database cannot contain."""
        return "\x00" not in term or self.nul is not None or "\x00" in dict(self.escapes)

    def number(self, value: float) -> str:
        """A double that is read as the same double."""
        return f"CAST({self.literal(value)} AS {self.double})"

    def literal(self, value: float) -> str:
        """The digits of a double, all of them, in a form that is not read as a decimal of few digits."""
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"

    def label(self, value: str | int | float | bool) -> str:
        """The label of a class."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return f"CAST('{value}' AS {self.integer if value < 2**63 else self.unsigned})"
        return self.number(value)

    def weights(self, columns: Sequence[str], rows: Sequence[str]) -> str:
        """A query with a row for each feature: its number, its term, and doubles, named by ``columns``."""
        double = self.double
        return self.rows.format(
            rows=",\n    ".join(f"({row})" for row in rows),
            names=", ".join(["feature", "term", *columns]),
            doubles=", ".join(f"CAST({column} AS {double}) AS {column}" for column in columns),
            numbered=", ".join(f"CAST(column{i} AS {double}) AS {column}" for i, column in enumerate(columns, 3)),
            structure=self.text(", ".join(["feature Int64", "term String", *(f"{c} Float64" for c in columns)])),
        )

    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        """A query of ``document``, ``place`` and ``token``, for the words of texts that have so many characters."""
        if self.words is None:
            raise InputError("SQLite cannot split texts into words; give a table of counted words as table=")
        if self.name == "clickhouse":
            text = f"coalesce({text}, '')"  # no array is NULL
        if lowercase:
            text = self.lower.format(text=text, dotted=self.text(DOTTED_I), plain=self.text(DOTTED_I.lower()))
        # Python's \w: letters and numbers of all kinds; what PostgreSQL calls so depends on the locale
        word = f"[{_ranges_of_words()}]" if self.name == "postgres" else r"[\p{L}\p{N}_]"
        pattern = self.text(f"{word}{{{shortest},}}")
        return self.words.format(texts=texts, document=document, text=text, pattern=pattern)


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(  # 1.1 and later, where lead() loses tokens; slices of lists are filled up where they are shorter
            "duckdb",
            "DOUBLE",
            "BIGINT",
            "UBIGINT",
            "CAST('-inf' AS DOUBLE)",
            "SELECT feature, term, {doubles}\n  FROM (VALUES\n    {rows}\n  ) AS given ({names})",
            "SELECT document, unnest(range(len(words))) AS place, unnest(words) AS token\n"
            "  FROM (SELECT {document} AS document, regexp_extract_all({text}, {pattern}) AS words FROM {texts}) "
            "AS split",
            following="unnest(words[{after}:])",
            runs="SELECT document, unnest(words) AS token, {following}\n"
            "  FROM (SELECT document, list(token ORDER BY place) AS words FROM {tokens} GROUP BY document) AS lists",
            nul=" || chr(0) || ",
        ),
        Dialect(  # 12 and later; without E, it would depend on a setting of the server what a backslash means
            "postgres",
            "DOUBLE PRECISION",
            "BIGINT",
            "NUMERIC(20, 0)",
            "CAST('-Infinity' AS DOUBLE PRECISION)",
            "SELECT feature, term, {doubles}\n  FROM (VALUES\n    {rows}\n  ) AS given ({names})",
            "SELECT texts.{document} AS document, found.place AS place, found.word[1] AS token\n"
            "  FROM {texts} AS texts CROSS JOIN LATERAL\n"
            "    regexp_matches({text}, {pattern}, 'g') WITH ORDINALITY AS found (word, place)",
            lower='lower(CAST({text} AS text) COLLATE "und-x-icu")',
            knows_sigma=True,  # that of ICU
            escapes=(("'", "''"), ("\\", "\\\\")),
            backslashes="E",
        ),
        Dialect(  # 24 and later
            "clickhouse",
            "Float64",
            "Int64",
            "UInt64",
            "CAST('-inf' AS Float64)",
            "SELECT * FROM values({structure},\n    {rows}\n  )",
            "SELECT document, place, token\n"
            "  FROM (SELECT {document} AS document, extractAll({text}, {pattern}) AS words FROM {texts}) AS split\n"
            "  ARRAY JOIN words AS token, arrayEnumerate(words) AS place",
            greatest="arrayMax([{}])",
            lower="lowerUTF8(replaceAll({text}, {dotted}, {plain}))",
            following="leadInFrame(toNullable(token), {i}) OVER "
            "(PARTITION BY document ORDER BY place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            escapes=(("\\", "\\\\"), ("'", "\\'"), ("\x00", "\\0")),
            name_escapes=(("\\", "\\\\"), ('"', '\\"')),
        ),
        Dialect(  # 3.24 and later
            "sqlite",
            "REAL",
            "INTEGER",
            "TEXT",
            "-9e999",  # it reads no infinity, but what is too large is one
            "SELECT column1 AS feature, column2 AS term, {numbered}\n  FROM (VALUES\n    {rows}\n  )",
            None,
            greatest="max({})",
            nul=" || char(0) || ",
        ),
    )
}


def dialect_named(name: str) -> Dialect:
    """The dialect of a database."""
    found = DIALECTS.get(name) if isinstance(name, str) else None
    if found is None:
        allowed = ", ".join(map(repr, DIALECTS))
        raise InputError(f"dialect={name!r}; give one of {allowed}{did_you_mean(name, DIALECTS)}")
    return found


def _escaped(text: str, escapes: Escapes) -> str:
    for old, new in escapes:
        text = text.replace(old, new)
    return text


def _encodable(text: str) -> str:
    """The same text; refused where no database can have it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is not text that UTF-8 can hold, and no database has it; rename it") from None
    return text


def _ranges_of_words() -> str:
    r"""The characters of Python's \w as ranges of a regular expression."""

    def escaped(code: int) -> str:
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    marked = np.flatnonzero(kinds() & WORD)
    breaks = np.flatnonzero(np.diff(marked) != 1)
    firsts, lasts = marked[np.append(0, breaks + 1)], marked[np.append(breaks, len(marked) - 1)]
    return "".join(f"{escaped(a)}-{escaped(b)}" for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True))


# The statement


@dataclass(frozen=True)
class _FeatureSums:
    """Sums of a statement over the selected features of a document, and scores made of them."""

    columns: list[str]  # of the table of features
    values: Array  # (columns, k)
    scores: list[str]  # an expression for each class that can be predicted
    zeros: list[str]  # of these, how many features rule it out; empty where none does


def statement(
    model: Model, names: Sequence[str], dialect: Dialect, counted: str, tables: Sequence[tuple[str, str]] = ()
) -> str:
    """The whole statement.

    Parameters
    ----------
    model
    names : (k,) terms of the selected features
    dialect
    counted
        A table, or a query in brackets, of ``document``, ``term`` and ``n``.
    tables
        Names and queries of tables before it, that ``counted`` reads.
    """
    refuse_unselected(model, "SQL")
    refuse_exact_features(model)
    classes = model.classes[model.seen].tolist()
    if len(classes) > MOST_CLASSES:
        raise InputError(f"{len(classes):,} classes are more than the {MOST_CLASSES} that a query has columns for")
    sums = _feature_sums(model, dialect)
    # A row for each document and selected feature, and one for all other terms together. A document may have a term in
    # several rows, and a database joins what has no partner to NULL or to zero.
    counts = (
        "SELECT rows_of.document AS document, weights.feature AS feature, "
        f"CAST(sum(rows_of.n) AS {dialect.double}) AS amount\n"
        f"  FROM {counted} AS rows_of\n"
        f"    LEFT JOIN {OURS}weights AS weights ON weights.term = rows_of.term\n"
        "  GROUP BY rows_of.document, weights.feature"
    )
    columns = [f"{score} AS score_{i}" for i, score in enumerate(sums.scores)]
    columns += [f"{zero} AS zeros_{i}" for i, zero in enumerate(sums.zeros)]
    added = (
        "SELECT counts.document AS document,\n    " + ",\n    ".join(columns) + f"\n  FROM {OURS}counts AS counts "
        f"LEFT JOIN {OURS}weights AS weights ON weights.feature = counts.feature\n  GROUP BY counts.document"
    )
    queries = [
        *tables,
        ("weights", dialect.weights(sums.columns, _rows(names, sums.values, dialect))),
        ("counts", counts),
        ("sums", added),
        ("scores", _scores(sums, dialect)),
    ]
    # The first class that has the best score
    cases = [f"WHEN final_{i} = best THEN {dialect.label(label)}" for i, label in enumerate(classes)]
    if sums.zeros:
        additive = additive_scores(model)
        prior = None if additive is None else additive.otherwise
        otherwise = classes[0 if prior is None else int(np.argmax(prior[model.seen]))]
        cases.insert(0, f"WHEN best = {dialect.minus_infinity} THEN {dialect.label(otherwise)}")
    chosen = "\n    ".join(cases)
    said = ",\n".join(f"{OURS}{name} AS (\n  {query}\n)" for name, query in queries)
    return (
        f"WITH {said}\nSELECT document AS {dialect.identifier('document')},\n  CASE\n    {chosen}\n"
        f"  END AS {dialect.identifier('class')}\nFROM {OURS}scores"
    )


def _rows(names: Sequence[str], values: Array, dialect: Dialect) -> list[str]:
    """Number, term and values of each feature that this database can hold the term of."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"two selected features are named {twice!r}, which SQL could not tell apart; rename one")
    rows = [
        ", ".join([str(number), dialect.text(name), *map(dialect.literal, column)])
        for number, (name, column) in enumerate(zip(names, values.T.tolist(), strict=True), 1)
        if dialect.holds(name)
    ]
    if not rows:
        raise InputError(f"no selected feature has a name that {dialect.name} can hold; rename them")
    return rows


def _scores(sums: _FeatureSums, dialect: Dialect) -> str:
    """The scores with classes ruled out, and the best one."""
    source, scores = f"{OURS}sums", [f"score_{i}" for i in range(len(sums.scores))]
    if sums.zeros:
        out = [
            f"CASE WHEN zeros_{i} > 0 THEN {dialect.minus_infinity} ELSE {score} END AS left_{i}"
            for i, score in enumerate(scores)
        ]
        source = f"(SELECT document, {', '.join(out)} FROM {source}) AS ruled"
        scores = [f"left_{i}" for i in range(len(scores))]
    named = ", ".join(f"{score} AS final_{i}" for i, score in enumerate(scores))
    best = scores[0] if len(scores) == 1 else dialect.greatest.format(", ".join(scores))
    return f"SELECT document, {named}, {best} AS best\n  FROM {source}"


def _feature_sums(model: Model, dialect: Dialect) -> _FeatureSums:
    additive = additive_scores(model)
    if additive is not None:
        return _of_additive(model, additive, dialect)
    if isinstance(model, HybridModel):
        return _of_shares(model, dialect)
    assert isinstance(model, CentersModel), "all other models are additive"
    return _of_medians(model, dialect)


def _of_additive(model: Model, scores: AdditiveScores, dialect: Dialect) -> _FeatureSums:
    seen = model.seen
    columns = [f"w_{i}" for i in range(len(seen))]
    if scores.threshold is None:
        worth = [f"counts.amount * weights.{column}" for column in columns]
        met = "counts.amount <> 0"
    else:
        met = f"counts.amount > {dialect.number(scores.threshold)}"
        worth = [f"CASE WHEN {met} THEN weights.{column} ELSE 0 END" for column in columns]
    starts = [dialect.number(start) for start in scores.start.finite[seen].tolist()]
    sums = [f"{start} + coalesce(sum({term}), 0)" for start, term in zip(starts, worth, strict=True)]
    values, zeros = scores.steps.finite[seen], scores.steps.zeros[seen]
    if not zeros.any() and not scores.start.zeros[seen].any():
        return _FeatureSums(columns, values, sums, [])
    counted = [f"z_{i}" for i in range(len(seen))]
    ruled = [
        f"{start} + coalesce(sum(CASE WHEN {met} THEN weights.{column} ELSE 0 END), 0)"
        for start, column in zip(scores.start.zeros[seen].tolist(), counted, strict=True)
    ]
    return _FeatureSums([*columns, *counted], np.concatenate([values, zeros]), sums, ruled)


def _of_medians(model: CentersModel, dialect: Dialect) -> _FeatureSums:
    """Distances by medians: what a feature adds at its value less what it adds at zero."""
    centers, pooled = model.centers[model.seen], model.pooled
    at_zero = np.abs(pooled) - np.abs(centers)
    columns, zeros = ([f"{letter}_{i}" for i in range(len(centers))] for letter in "ca")
    sums = [
        f"{dialect.number(start)} + coalesce(sum((abs(counts.amount - weights.pooled) "
        f"- abs(counts.amount - weights.{column})) - weights.{zero}), 0)"
        for start, column, zero in zip(at_zero.sum(axis=1).tolist(), columns, zeros, strict=True)
    ]
    return _FeatureSums(["pooled", *columns, *zeros], np.concatenate([pooled[None], centers, at_zero]), sums, [])


def _of_shares(model: HybridModel, dialect: Dialect) -> _FeatureSums:
    """Regions whose sums are divided by their numbers of words."""
    seen, k = model.seen, len(model.support)
    values = log_probabilities(model)
    if model.n_classes == 2:
        values = np.stack([np.zeros(k), values[1] - values[0]])
    regions = np.repeat(np.arange(model.n_regions), k // model.n_regions)
    columns = [f"w_{i}" for i in range(len(seen))]
    sums = []
    for intercept, column in zip(model.intercepts[seen].tolist(), columns, strict=True):
        parts = [dialect.number(intercept)]
        for region, slope in enumerate(model.slopes.tolist()):
            inside = f"weights.feature > 0 AND weights.region = {region}"
            words = f"sum(CASE WHEN {inside} THEN counts.amount * weights.{column} ELSE 0 END)"
            size = f"nullif(sum(CASE WHEN {inside} THEN counts.amount ELSE 0 END), 0)"
            parts.append(f"{dialect.number(slope)} * coalesce({words} / {size}, 0)")
        sums.append("\n      + ".join(parts))
    return _FeatureSums([*columns, "region"], np.concatenate([values[seen], regions[None]]), sums, [])


# Words of texts, counted in SQL as they were for the fit; where a database would find others, that is refused


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
    tables = [("tokens", dialect.tokens(texts, document, text, shortest, settings.lowercase))]
    if settings.stop_words:
        stopped = ", ".join(dialect.text(word) for word in settings.stop_words if dialect.holds(word))
        kept = f"SELECT document, place, token FROM {OURS}tokens WHERE token NOT IN ({stopped})"
        tables.append(("words", kept))
    if highest > 1:
        following = ", ".join(f"{dialect.following.format(i=i, after=i + 1)} AS token_{i}" for i in range(1, highest))
        tables.append(("runs", dialect.runs.format(following=following, tokens=f"{OURS}{tables[-1][0]}")))
    source, blank = f"{OURS}{tables[-1][0]}", dialect.text(" ")
    grams = []
    for n in range(lowest, highest + 1):
        words = f" || {blank} || ".join(["token", *(f"token_{i}" for i in range(1, n))])
        there = f" WHERE token_{n - 1} IS NOT NULL" if n > 1 else ""
        grams.append(f"SELECT document, {words} AS term, 1 AS n FROM {source}{there}")
    every = f"SELECT {document} AS document, NULL AS term, 0 AS n FROM {texts}"  # also of texts without any word
    terms = "\n  UNION ALL ".join([*grams, every])
    if not settings.binary:
        return [*tables, ("terms", terms)]
    present = f"SELECT document, term, max(n) AS n FROM {OURS}found GROUP BY document, term"
    return [*tables, ("found", terms), ("terms", present)]


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
