"""``nfs-dask sql``: a model as a statement for a database."""

from __future__ import annotations

import click

from nfs_dask.cli.options import OneOf
from nfs_dask.cli.output import answer, json_option
from nfs_dask.text.printable import printable


@click.command()
@click.argument("model")
@click.option(
    "--dialect",
    type=OneOf(["duckdb", "postgres", "clickhouse", "sqlite"]),
    default="duckdb",
    show_default=True,
    help="Of which database.",
)
@click.option(
    "--table", default="terms", show_default=True, metavar="NAME", help="The table of counted words, or SCHEMA.NAME."
)
@click.option("--texts", metavar="NAME", help="A table of texts instead, whose words the statement counts.")
@click.option("--document-column", default="document", show_default=True, metavar="NAME", help="Names documents.")
@click.option("--term-column", default="term", show_default=True, metavar="NAME", help="Of counted words.")
@click.option("--count-column", default="n", show_default=True, metavar="NAME", help="Of counted words.")
@click.option("--text-column", default="text", show_default=True, metavar="NAME", help="Of texts.")
@json_option
def sql(
    model: str,
    dialect: str,
    table: str,
    texts: str | None,
    document_column: str,
    term_column: str,
    count_column: str,
    text_column: str,
) -> None:
    """A statement that says the class of each document of a database, as MODEL would.

    It reads a table with a row for each document and word, and how often the word is there; or, with --texts, a table
    of texts, for models of texts whose words a database can find: word n-grams by the default pattern.

    \b
    nfs-dask sql spam.model --table mail.words > classify.sql
    nfs-dask sql spam.model --texts mail --text-column body --document-column id | duckdb mail.duckdb
    nfs-dask sql spam.model --dialect postgres --table words | psql
    """
    from nfs_dask.estimators.loading import load_plain

    columns = {"document": document_column, "term": term_column, "n": count_column, "text": text_column}
    said = load_plain(model).to_sql(dialect, table, texts=texts, **columns)
    values = {"dialect": dialect, "sql": said}
    # A terminal would obey what names of features may hold; files and pipes get the statement as it is
    answer(values, lambda console: click.echo((printable(said) if console.is_terminal else said) + ";"))
