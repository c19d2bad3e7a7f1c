"""How databases write names, texts and numbers, and how they find the words of a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nfs_dask.errors import InputError, did_you_mean
from nfs_dask.text.unicode import WORD, kinds

# Python's \w, as far as both know a character: letters and numbers of all kinds
_WORD_CLASS = r"[\p{L}\p{N}_]"
_DOTTED_I = "\u0130"  # the one letter that becomes two characters in lower case
SIGMAS = "\u03c3\u03c2"  # which of them a capital one becomes depends on its neighbours


class Dialect(ABC):
    """What a database calls things. Texts and names that it cannot hold are refused."""

    name: ClassVar[str]
    double: ClassVar[str]
    integer: ClassVar[str]
    unsigned: ClassVar[str]  # that holds 64 bits
    minus_infinity: ClassVar[str]
    knows_sigma: ClassVar[bool] = False  # whether lower() looks at the neighbours of a sigma, as Python's does

    def identifier(self, name: str) -> str:
        """A name in quotes: it means itself, whatever characters it has."""
        if not name or "\x00" in name:
            raise InputError(f"{name!r} is no name of a table or column; give one with at least one character")
        return self._quoted_name(_encodable(name))

    def table(self, name: str | Sequence[str]) -> str:
        """A table by its name, or by that of its schema, a dot and its name; names with dots come as a sequence."""
        parts = name.split(".") if isinstance(name, str) else list(name)
        return ".".join(map(self.identifier, parts))

    def number(self, value: float) -> str:
        """A double that is read as the same double."""
        return f"CAST({self.literal(value)} AS {self.double})"

    def literal(self, value: float) -> str:
        """Its digits, all of them, in a form that is not read as a decimal of few digits."""
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

    def text(self, value: str) -> str:
        """A string."""
        return self._quoted_text(_encodable(value))

    def greatest(self, values: Sequence[str]) -> str:
        return f"greatest({', '.join(values)})"

    def holds(self, term: str) -> bool:
        """Whether a text of this database may contain a term."""
        return True

    @abstractmethod
    def weights(self, columns: Sequence[str], rows: Sequence[str]) -> str:
        """A query with a row for each feature: its number, its term, and doubles, named by ``columns``."""

    @abstractmethod
    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        """A query of ``document``, ``place`` and ``token``, for the words of texts that have so many characters."""

    def runs(self, tokens: str, most: int) -> str:
        """A query of ``document``, ``token``, and ``token_1`` and so on: those that follow it in the document, or NULL.

        Parameters
        ----------
        tokens
            A query, or the name of one, as of `tokens`.
        most
            How many tokens a run has.
        """
        following = ", ".join(f"{self._following(i)} AS token_{i}" for i in range(1, most))
        return f"SELECT document, token, {following} FROM {tokens}"

    def _following(self, distance: int) -> str:
        return f"lead(token, {distance}) OVER (PARTITION BY document ORDER BY place)"

    def _quoted_name(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    @abstractmethod
    def _quoted_text(self, value: str) -> str: ...


class _Standard(Dialect):
    """Databases that keep to the standard in what they call a table of values."""

    def weights(self, columns: Sequence[str], rows: Sequence[str]) -> str:
        doubles = ", ".join(f"CAST({column} AS {self.double}) AS {column}" for column in columns)
        names = ", ".join(["feature", "term", *columns])
        values = ",\n    ".join(f"({row})" for row in rows)
        return f"SELECT feature, term, {doubles}\n  FROM (VALUES\n    {values}\n  ) AS given ({names})"


class DuckDB(_Standard):
    """DuckDB 1.1 and later."""

    name = "duckdb"
    double = "DOUBLE"
    integer = "BIGINT"
    unsigned = "UBIGINT"
    minus_infinity = "CAST('-inf' AS DOUBLE)"

    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        folded = (
            f"lower(replace({text}, {self.text(_DOTTED_I)}, {self.text(_DOTTED_I.lower())}))" if lowercase else text
        )
        words = f"regexp_extract_all({folded}, {self.text(_WORD_CLASS + f'{{{shortest},}}')})"
        return (
            f"SELECT document, unnest(range(len(words))) AS place, unnest(words) AS token\n"
            f"  FROM (SELECT {document} AS document, {words} AS words FROM {texts}) AS split"
        )

    def runs(self, tokens: str, most: int) -> str:
        """By slices of lists, of which the shorter ones are filled up: lead() loses tokens in DuckDB 1.1."""
        following = ", ".join(f"unnest(words[{i + 1}:]) AS token_{i}" for i in range(1, most))
        lists = f"SELECT document, list(token ORDER BY place) AS words FROM {tokens} GROUP BY document"
        return f"SELECT document, unnest(words) AS token, {following}\n  FROM ({lists}) AS lists"

    def _quoted_text(self, value: str) -> str:
        pieces = ["'" + piece.replace("'", "''") + "'" for piece in value.split("\x00")]
        return pieces[0] if len(pieces) == 1 else f"({' || chr(0) || '.join(pieces)})"


class Postgres(_Standard):
    """PostgreSQL 12 and later."""

    name = "postgres"
    double = "DOUBLE PRECISION"
    integer = "BIGINT"
    unsigned = "NUMERIC(20, 0)"
    minus_infinity = "CAST('-Infinity' AS DOUBLE PRECISION)"
    knows_sigma = True  # that of ICU

    def holds(self, term: str) -> bool:
        return "\x00" not in term

    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        folded = f'lower(CAST({text} AS text) COLLATE "und-x-icu")' if lowercase else text
        pattern = self.text(f"[{_ranges_of_words()}]{{{shortest},}}")
        return (
            f"SELECT texts.{document} AS document, found.place AS place, found.word[1] AS token\n"
            f"  FROM {texts} AS texts CROSS JOIN LATERAL\n"
            f"    regexp_matches({folded}, {pattern}, 'g') WITH ORDINALITY AS found (word, place)"
        )

    def _quoted_text(self, value: str) -> str:
        if "\x00" in value:
            raise InputError(f"PostgreSQL has no texts with a NUL character, such as {value!r}; rename it")
        quoted = value.replace("'", "''")
        # without E, it would depend on a setting of the server what a backslash means
        return f"'{quoted}'" if "\\" not in value else "E'" + quoted.replace("\\", "\\\\") + "'"


class ClickHouse(Dialect):
    """ClickHouse 24 and later."""

    name = "clickhouse"
    double = "Float64"
    integer = "Int64"
    unsigned = "UInt64"
    minus_infinity = "CAST('-inf' AS Float64)"

    def weights(self, columns: Sequence[str], rows: Sequence[str]) -> str:
        structure = ", ".join(["feature Int64", "term String", *(f"{column} Float64" for column in columns)])
        values = ",\n    ".join(f"({row})" for row in rows)
        return f"SELECT * FROM values({self.text(structure)},\n    {values}\n  )"

    def greatest(self, values: Sequence[str]) -> str:
        return f"arrayMax([{', '.join(values)}])"

    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        text = f"coalesce({text}, '')"  # no array is NULL
        dotted = f"replaceAll({text}, {self.text(_DOTTED_I)}, {self.text(_DOTTED_I.lower())})"
        folded = f"lowerUTF8({dotted})" if lowercase else text
        words = f"extractAll({folded}, {self.text(_WORD_CLASS + f'{{{shortest},}}')})"
        return (
            f"SELECT document, place, token\n"
            f"  FROM (SELECT {document} AS document, {words} AS words FROM {texts}) AS split\n"
            f"  ARRAY JOIN words AS token, arrayEnumerate(words) AS place"
        )

    def _following(self, distance: int) -> str:
        window = "PARTITION BY document ORDER BY place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
        return f"leadInFrame(toNullable(token), {distance}) OVER ({window})"

    def _quoted_name(self, name: str) -> str:
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _quoted_text(self, value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\x00", "\\0")
        return f"'{escaped}'"


class SQLite(Dialect):
    """SQLite 3.24 and later. It has no functions that split texts."""

    name = "sqlite"
    double = "REAL"
    integer = "INTEGER"
    unsigned = "TEXT"
    minus_infinity = "-9e999"  # it reads no infinity, but what is too large is one

    def weights(self, columns: Sequence[str], rows: Sequence[str]) -> str:
        named = ["column1 AS feature", "column2 AS term"]
        named += [f"CAST(column{i} AS {self.double}) AS {column}" for i, column in enumerate(columns, 3)]
        values = ",\n    ".join(f"({row})" for row in rows)
        return f"SELECT {', '.join(named)}\n  FROM (VALUES\n    {values}\n  )"

    def greatest(self, values: Sequence[str]) -> str:
        return f"max({', '.join(values)})"

    def tokens(self, texts: str, document: str, text: str, shortest: int, lowercase: bool) -> str:
        raise InputError("SQLite cannot split texts into words; give a table of counted words as table=")

    def _quoted_text(self, value: str) -> str:
        pieces = ["'" + piece.replace("'", "''") + "'" for piece in value.split("\x00")]
        return pieces[0] if len(pieces) == 1 else f"({' || char(0) || '.join(pieces)})"


DIALECTS: dict[str, Dialect] = {made.name: made for made in (DuckDB(), Postgres(), ClickHouse(), SQLite())}


def dialect_named(name: str) -> Dialect:
    """The dialect of a database."""
    found = DIALECTS.get(name) if isinstance(name, str) else None
    if found is None:
        allowed = ", ".join(map(repr, DIALECTS))
        raise InputError(f"dialect={name!r}; give one of {allowed}{did_you_mean(name, DIALECTS)}")
    return found


def _encodable(text: str) -> str:
    """The same; refused where it is no text that could be in a database."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is not text that UTF-8 can hold, and no database has it; rename it") from None
    return text


def _ranges_of_words() -> str:
    r"""The characters of Python's \w as ranges of a regular expression: PostgreSQL's depend on the locale."""
    marked = np.flatnonzero(kinds() & WORD)
    breaks = np.flatnonzero(np.diff(marked) != 1)
    firsts, lasts = marked[np.append(0, breaks + 1)], marked[np.append(breaks, len(marked) - 1)]
    return "".join(f"{_escape(a)}-{_escape(b)}" for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True))


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
