"""``nfs-dask sql``, ``onnx`` and ``sklearn``: a model for other programs."""

from __future__ import annotations

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, check_output_file, console, output_file
from nfs_dask.text.printable import printable


@click.command()
@click.argument("model")
@click.option(
    "--dialect",
    type=options.OneOf(["duckdb", "postgres", "clickhouse", "sqlite"]),
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
@click.option("--out", metavar="FILE", help="Write the statement to this file instead of standard output.")
@options.overwrite
@options.json_output
def sql(
    model: str,
    dialect: str,
    table: str,
    texts: str | None,
    document_column: str,
    term_column: str,
    count_column: str,
    text_column: str,
    out: str | None,
    overwrite: bool,
) -> None:
    """A statement that says the class of each document of a database, as MODEL would.

    It reads a table with a row for each document and word, and how often the word is there; or, with --texts, a table
    of texts, for models of texts whose words a database can find: word n-grams by the default pattern.

    \b
    nfs-dask sql spam.model --table mail.words > classify.sql
    nfs-dask sql spam.model --texts mail --text-column body --document-column id | duckdb mail.duckdb
    nfs-dask sql spam.model --dialect postgres --table words | psql
    """
    check_output_file(out, overwrite, ".sql")
    from nfs_dask.estimators.loading import load_plain

    columns = {"document": document_column, "term": term_column, "n": count_column, "text": text_column}
    said = load_plain(model).to_sql(dialect, table, texts=texts, **columns)
    if out is not None:
        _write(model, out, f"{said};\n".encode())
        return
    values = {"dialect": dialect, "sql": said}
    # A terminal would obey what names of features may hold; files and pipes get the statement as it is
    if answer(values):
        click.echo((printable(said) if console().is_terminal else said) + ";")


@click.command()
@click.argument("model")
@click.option("--out", required=True, metavar="FILE", help="Write it to this file, such as spam.onnx.")
@click.option(
    "--dtype", type=options.OneOf(["float32", "float64"]), default="float32", show_default=True, help="Of --counts."
)
@click.option("--counts", is_flag=True, help="Take values of the selected features also of a model of texts.")
@options.overwrite
@options.json_output
def onnx(model: str, out: str, dtype: str, counts: bool, overwrite: bool) -> None:
    """Write MODEL for ONNX Runtime. Its input is texts, or the values of the selected features, as `features` has them.

    \b
    nfs-dask onnx spam.model --out spam.onnx
    """
    check_output_file(out, overwrite, ".onnx")
    from nfs_dask.estimators.loading import load_plain

    _write(model, out, load_plain(model).to_onnx(dtype, texts=False if counts else None).SerializeToString())


@click.command()
@click.argument("model")
@click.option("--out", required=True, metavar="FILE", help="Write it to this file, such as spam.joblib.")
@options.overwrite
@options.json_output
def sklearn(model: str, out: str, overwrite: bool) -> None:
    """Write MODEL as a pipeline of scikit-learn, which predicts without this package.

    It is read by joblib.load, which runs what a file says: load only what you trust.

    \b
    nfs-dask sklearn spam.model --out spam.joblib
    """
    check_output_file(out, overwrite, ".joblib")
    from io import BytesIO

    import joblib

    from nfs_dask.estimators.loading import load_plain

    content = BytesIO()
    joblib.dump(load_plain(model).to_sklearn(), content)
    _write(model, out, content.getvalue())


def _write(model: str, out: str, content: bytes) -> None:
    """Write an exported model, and say so."""
    with output_file(out) as file:
        file.write(content)
    answer({"model": model, "out": out}, f"{model} written to {out}")
