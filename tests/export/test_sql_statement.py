"""Statements of SQL say in a real database what the models say."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

import nfs_dask as nfs
from nfs_dask import InputError, TextVectorizer
from nfs_dask.export.sql import DIALECTS
from nfs_dask.text.unicode import WORD, kinds
from tests.helpers.sql_cases import HARD_TERMS, hard_counts, long_rows, named, sql_cases

CASES = sql_cases()


def execute(statement, rows, table="terms", columns=("document", "term", "n")):
    """What DuckDB makes of a statement over a table, by document."""
    with duckdb.connect() as connection:
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        names = ", ".join(f"{name} {of}" for name, of in zip(quoted, ["BIGINT", "VARCHAR", "BIGINT"], strict=False))
        if "." in table:
            connection.execute(f"CREATE SCHEMA {table.split('.')[0]}")
        connection.execute(f"CREATE TABLE {table} ({names})")
        given = pa.table([pa.array(column) for column in zip(*rows, strict=True)], [*"abc"[: len(columns)]])
        connection.register("given", given)
        connection.execute(f"INSERT INTO {table} SELECT * FROM given")
        found = connection.execute(statement)
        assert [column[0] for column in found.description] == ["document", "class"]
        answers = found.fetchall()
        assert connection.execute("SELECT count(*) FROM " + table).fetchone() == (len(rows),)
    assert len({document for document, _ in answers}) == len(answers)
    return dict(answers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_duckdb_says_what_the_model_says(case):
    found = execute(case.model.to_sql(), long_rows(case.X, case.terms))
    expected = case.model.predict(case.X if case.model.model_.names is None else named(case.X))
    assert [found[i] for i in range(len(case.X))] == expected.tolist()
    assert len(set(expected.tolist())) > 1 or "prior" in case.name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sqlite_says_what_the_model_says(case):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE terms (document INTEGER, term TEXT, n INTEGER)")
        connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", long_rows(case.X, case.terms))
        found = dict(connection.execute(case.model.to_sql("sqlite")).fetchall())
    expected = case.model.predict(case.X if case.model.model_.names is None else named(case.X))
    assert [found[i] for i in range(len(case.X))] == expected.tolist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_dialects_are_one_statement_that_parses(case, dialect):
    parsed = sqlglot.parse(case.model.to_sql(dialect, "s.t"), read=dialect)
    assert len(parsed) == 1 and isinstance(parsed[0], sqlglot.exp.Select)
    strings = {literal.this for literal in parsed[0].find_all(sqlglot.exp.Literal) if literal.is_string}
    raw = {bytes_.this for bytes_ in parsed[0].find_all(sqlglot.exp.ByteString)}  # how E'' is parsed
    plain = {name for name in case.model.get_feature_names_out() if "\\" not in name}
    assert plain <= strings | raw


@pytest.mark.parametrize(
    "number", [0.1 + 0.2, 1e-300, -math.pi, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345.6]
)
def test_numbers_are_the_same_doubles(number):
    said = DIALECTS["duckdb"].number(number)
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {said}").fetchone()[0]
    assert found == number and math.copysign(1, found) == math.copysign(1, number)


def test_equal_scores_give_the_first_class():
    X = [[2, 0, 1], [0, 2, 1]]
    model = nfs.SparseMultinomialNB(k="all").fit(X, ["z", "a"])
    rows = [(0, "x0", 1), (0, "x1", 1), (1, "x2", 3), (2, None, 0), (3, "x0", 1), (4, "x1", 1)]
    dense = np.array([[1, 1, 0], [0, 0, 3], [0, 0, 0], [1, 0, 0], [0, 1, 0]])
    found = execute(model.to_sql(), rows)
    assert [found[i] for i in range(5)] == model.predict(dense).tolist() == ["a", "a", "a", "z", "a"]


def test_documents_that_all_classes_rule_out_are_left_to_the_priors():
    X, y = np.array([[1, 0, 1], [0, 1, 1], [0, 1, 1]]), ["a", "b", "b"]
    model = nfs.SparseMultinomialNB(k="all", alpha=0).fit(X, y)
    rows = [(0, "x0", 1), (0, "x1", 1), (1, "x0", 1), (2, "x1", 1)]
    dense = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0]])
    found = execute(model.to_sql(), rows)
    assert [found[i] for i in range(3)] == model.predict(dense).tolist() == ["b", "a", "b"]


def test_tables_and_columns_may_be_called_anything():
    X, y = hard_counts(80, ["a", "b"], 0)
    model = nfs.SparseMultinomialNB(k=5).fit(named(X), y)
    columns = ('do"c', "te rm'", "select")
    statement = model.to_sql(table="main2.a_table", document=columns[0], term=columns[1], n=columns[2])
    rows = long_rows(X, HARD_TERMS)
    found = execute(statement, rows, "main2.a_table", columns)
    assert [found[i] for i in range(80)] == model.predict(named(X)).tolist()
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "a.b" (document INT, term TEXT, n INT)')
        assert connection.execute(model.to_sql(table=("main", "a.b"))).fetchall() == []
    assert '"x""; DROP TABLE y; --"' in model.to_sql(table='x"; DROP TABLE y; --')
    for wrong in ("", "a..b", "a\x00b"):
        with pytest.raises(InputError, match="no name of a table"):
            model.to_sql(table=wrong)


def test_a_loaded_model_says_the_same(tmp_path):
    model = CASES[0].model
    model.save(tmp_path / "m")
    assert nfs.load_model(tmp_path / "m").to_sql("postgres") == model.to_sql("postgres")


def test_features_without_names_are_called_after_their_columns():
    model = nfs.SparseBernoulliNB(k=1).fit([[1, 0, 1], [0, 1, 1]], ["a", "b"])
    assert "'x0'" in model.to_sql()


@pytest.mark.parametrize(
    ("estimator", "what"),
    [
        (nfs.SparseCentroid(k=2, metric="mahalanobis", covariance="full"), 'covariance="within"'),
        (nfs.ErrorRateSelector(k=2), 'k="all"'),
        (nfs.SparseCentroid(k=2, metric="mahalanobis"), "variance_floor"),
    ],
)
def test_what_cannot_be_said_is_refused(estimator, what):
    X = np.array([[5, 0, 1, 2], [5, 1, 0, 1], [0, 1, 1, 2], [0, 0, 2, 1]])
    with pytest.raises(InputError, match=what):
        estimator.fit(X, ["a", "a", "b", "b"]).to_sql()


def test_wrong_arguments_are_refused():
    model = CASES[0].model
    with pytest.raises(InputError, match="'duckdb', 'postgres', 'clickhouse', 'sqlite'; did you mean"):
        model.to_sql("duckdbb")
    with pytest.raises(InputError, match="vectorizer="):
        model.to_sql(texts="reviews")
    with pytest.raises(InputError, match="give texts="):
        model.to_sql(vectorizer=TextVectorizer())
    with pytest.raises(InputError, match="is not text"):
        fitted_to_names(["a\ud800", "b"]).to_sql()
    labelled = nfs.SparseMultinomialNB(k="all").fit(np.eye(2, dtype=int), ["a\x00b", "b"])
    with pytest.raises(InputError, match="NUL"):
        labelled.to_sql("postgres")


def fitted_to_names(names):
    X = pd.DataFrame(np.eye(len(names), dtype=int), columns=pd.Index(names, dtype=object))
    return nfs.SparseMultinomialNB(k="all").fit(X, [str(i) for i in range(len(names))])


# Texts

WORDS = (
    "Tea TEA tea coffee Café naïve NAÏVE green black cup a of x 12 ½ x² ünder 日本 日本語 don't e-mail under_score "
    "Straße İstanbul ǅ"
).split()
ODD = [
    "",
    "   ",
    "tea",
    "tea,tea;TEA!",
    "it's 'quoted' \\ -- ;",
    "\u2003tea\u00a0cup",
    "te\u0301a",
    "tea\x01cup",
    "t",
    "coffee\ncup",
]


def corpus(n=250, seed=0):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, length)) for length in rng.integers(0, 12, n)] + ODD
    return texts, ["tea" if text.lower().count("tea") > text.lower().count("coffee") else "other" for text in texts]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngrams": (1, 3), "stop_words": ["of", "a", "green", "don"]},
        {"ngrams": (2, 2), "lowercase": False},
        {"binary": True, "token_pattern": r"(?u)\b\w+\b"},
        {"token_pattern": r"\w\w\w+"},
    ],
    ids=str,
)
def test_duckdb_counts_the_words_of_texts(options):
    texts, labels = corpus()
    vectorizer = TextVectorizer(**options)
    X = vectorizer.fit_transform(texts)
    new = corpus(300, seed=1)[0]
    for model in (nfs.SparseMultinomialNB(k="all"), nfs.SparseCentroid(k=12, metric="manhattan")):
        model.fit(X, labels)
        statement = model.to_sql(texts="reviews", text="body", vectorizer=vectorizer)
        found = execute(statement, list(enumerate(new)), "reviews", ("document", "body"))
        assert [found[i] for i in range(len(new))] == model.predict(vectorizer.transform(new)).tolist()
        sqlglot.parse_one(model.to_sql("clickhouse", texts="r", vectorizer=vectorizer), read="clickhouse")
        sqlglot.parse_one(model.to_sql("postgres", texts="r", vectorizer=vectorizer), read="postgres")


def test_a_model_of_ingested_texts_knows_how_they_were_read(tmp_path):
    texts, labels = corpus()
    store = tmp_path / "s.zarr"
    nfs.ingest(pd.DataFrame({"text": texts, "label": labels}), store, text_column="text", label_column="label")
    model = nfs.SparseMultinomialNB(k=8).fit(nfs.open_dataset(store))
    found = execute(model.to_sql(texts="reviews"), list(enumerate(texts)), "reviews", ("document", "text"))
    assert [found[i] for i in range(len(texts))] == model.predict(texts).tolist()
    missing = execute(model.to_sql(texts="reviews"), [(1, None), (2, "tea")], "reviews", ("document", "text"))
    assert missing[1] == model.predict([""])[0]


def test_the_words_of_databases_are_those_of_python():
    r"""\p{L}\p{N}_ of an RE2 that knows the same Unicode or more; \w is other there."""
    codes = [code for code in range(1, 0x3000) if not 0xD800 <= code < 0xE000]
    with duckdb.connect() as connection:
        pattern = DIALECTS["duckdb"].text(r"^[\p{L}\p{N}_]$")
        characters = "(SELECT range::INTEGER AS i FROM range(1, 12288))"
        said = connection.execute(
            f"SELECT i, regexp_matches(chr(i), {pattern}), lower(chr(i)) FROM {characters}"
        ).fetchall()
    assert {i for i, is_word, _ in said if is_word} == {code for code in codes if kinds()[code] & WORD}
    assert {i for i, _, lower in said if lower != chr(i).lower()} == {0x130}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"analyzer": "char"}, "analyzer='char'"),
        ({"strip_accents": "unicode"}, "accents"),
        ({"token_pattern": r"[a-z]+"}, "token_pattern"),
        ({"token_pattern": r"\S+"}, "token_pattern"),
        ({"tokenizer": str.split}, "function of Python"),
        ({"tfidf": True}, "tf-idf"),
        ({"hashed": 4}, "hashes"),
        ({"ngrams": (1, 9)}, "more than 8"),
    ],
    ids=str,
)
def test_texts_that_sql_would_split_otherwise_are_refused(options, what):
    texts, labels = corpus()
    vectorizer = TextVectorizer(**options)
    model = nfs.SparseMultinomialNB(k=3).fit(vectorizer.fit_transform(texts), labels)
    with pytest.raises(InputError, match=what):
        model.to_sql(texts="reviews", vectorizer=vectorizer)


def test_greek_is_left_to_a_database_that_knows_it():
    texts, labels = ["ΟΔΟΣ", "οδος tea", "tea", "tea cup"], ["g", "g", "t", "t"]
    vectorizer = TextVectorizer()
    model = nfs.SparseMultinomialNB(k="all").fit(vectorizer.fit_transform(texts), labels)
    with pytest.raises(InputError, match="dialect='postgres'"):
        model.to_sql(texts="reviews", vectorizer=vectorizer)
    assert model.to_sql("postgres", texts="reviews", vectorizer=vectorizer)
