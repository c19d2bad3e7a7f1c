"""Messages of the library in the words of the shell: options in place of parameters."""

from __future__ import annotations

import re

import click

_VALUE = r"""(?P<value>'[^']*'|"[^"]*"|\([^()]*\)|True|-?[\w.+-]+)?"""
_WORDS = {
    "nfs_dask.store.publish.clean_up": "nfs-dask ingest --clean-up",
    "nfs_dask.ingest": "nfs-dask ingest",
    "Dataset.align(model), as in nfs_dask.open_dataset(X).align(model),": "--align",
    "X has": "the data have",
    "give the same run folder to resume": "--resume goes on from there",
}


def in_shell_words(message: str, command: click.Command | None) -> str:
    """A message with the options of a command in place of parameters of the same names, and of functions commands.

    >>> @click.command()
    ... @click.option("--text-column")
    ... @click.option("-k")
    ... @click.option("--overwrite", is_flag=True)
    ... def fit(): ...
    >>> in_shell_words("k=0 keeps nothing; say text_column= or overwrite=True; text_column='a' is not there", fit)
    "-k 0 keeps nothing; say --text-column or --overwrite; --text-column 'a' is not there"
    """
    for ours, typed in _WORDS.items():
        message = message.replace(ours, typed)
    for option in command.params if command is not None else ():
        if isinstance(option, click.Option) and option.name is not None:
            message = _replaced(message, option)
    return re.sub(r"(--[\w-]+ \S+) \(\1\)", r"\1", message)  # said in both languages


def _replaced(message: str, option: click.Option) -> str:
    typed = option.opts[0]
    before = r"(?<![\w-])"  # not inside a path, an option or another name

    def say(found: re.Match[str]) -> str:
        value = found["value"]
        if value is None or (option.is_flag and value == "True"):
            return typed
        return f"{typed} {_plain(value)}"

    message = re.sub(f"{before}{option.name}={_VALUE}", say, message)
    if "_" in (option.name or ""):
        message = re.sub(f"{before}{option.name}\\b", typed, message)
    return message


def _plain(value: str) -> str:
    """A value in double quotes that needs none in a shell, and a pair as it is typed."""
    if value.startswith("("):
        return ",".join(part.strip() for part in value[1:-1].split(","))
    return value[1:-1] if re.fullmatch(r'"[\w-]+"', value) else value
