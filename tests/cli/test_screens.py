"""What people see in a terminal: no number, no name and no word broken in two, whatever its width."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import nfs_dask as nfs
from nfs_dask.cli.output import fitted, table
from nfs_dask.cli.reporting import STOPPING
from tests.helpers.commands import run
from tests.helpers.terminals import each_shown_on_terminal, shown_on_terminal

LABELS = ["a perfectly ordinary label of many words", "spam:" + "x" * 40, "ham"]
WORDS = [f"{'antidisestablishment' * (1 + i % 3)}{i:03d}" for i in range(40)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a model with long names, and small numbers."""
    folder = tmp_path_factory.mktemp("screens")
    rng = np.random.default_rng(0)
    texts = [" ".join(WORDS[j] for j in rng.integers(0, len(WORDS), 12)) for _ in range(900)]
    table = pd.DataFrame({"text": texts, "label": [LABELS[i % 3] for i in range(900)]})
    store = nfs.ingest(table, folder / "long.zarr", label_column="label")
    nfs.SparseMultinomialNB(12).fit(store).save(folder / "long.model")
    run("fit", folder / "long.zarr", folder / "other", "-k", 12, "--no-cache", "--run", folder / "long.run")
    return folder


COMMANDS = [
    "info long.zarr",
    "info long.model",
    "info long.run",
    "status long.run",
    "plan long.zarr --method multinomial",
    "path long.zarr",
    "path long.zarr --ks 1,10,all --choose 1se --folds 3",
    "path long.zarr --choose elbow",
    "evaluate long.model long.zarr",
    "explain long.model --file long.zarr --rows 0,7",
    "doctor",
    "fit long.zarr new.model -k 12 --overwrite",
    "predict long.model long.zarr --out new.csv --overwrite",
    "demo --documents 400 --features 200",
]


SCREENS = {80: COMMANDS, 200: [COMMANDS[1], COMMANDS[3]]}  # by their width


def words_of(place: Path, command: str) -> list[str]:
    return [str(place / part) if part.startswith(("long.", "new.")) else part for part in command.split()]


@pytest.fixture(scope="module")
def screens(place: Path) -> dict[tuple[str, int], str]:
    """What each command shows, by its width; those of one width are carried out by one process."""
    return {
        (command, width): shown
        for width, commands in SCREENS.items()
        for command, shown in zip(
            commands,
            each_shown_on_terminal(width, *(words_of(place, command) for command in commands)),
            strict=True,
        )
    }


@pytest.mark.parametrize(("command", "width"), [(command, width) for width, of in SCREENS.items() for command in of])
def test_every_line_fits_and_no_word_is_cut(
    place: Path, screens: dict[tuple[str, int], str], command: str, width: int
) -> None:
    known = set(run(*words_of(place, command)).stdout.split())  # as wide as it takes
    shown = [line for line in screens[command, width].splitlines() if "━" not in line]  # without bars
    assert any(shown)
    assert not any("Error" in line or "Traceback" in line for line in shown)
    for line in shown:
        assert len(line.rstrip()) <= width or len(line.split()) == 1, line  # a path may be longer
    cells = {word for line in shown for word in line.split() if not re.search(r"\d|─", word)}
    names = {word for word in known if any(word in text for text in (*LABELS, *WORDS))}
    broken = {cell for cell in cells - names if "…" not in cell and any(cell in name[1:] for name in names)}
    assert {cell for cell in broken if len(cell) > 5} == set()  # pieces of names; others are words of ours
    if width == 200:
        assert not any("…" in line for line in shown)


def rendered(width: int, columns: list[str], rows: list[list[object]], right: bool = False) -> list[str]:
    console = Console(width=width, file=io.StringIO(), markup=False, highlight=False)
    console.print(table(None, columns, rows, right))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_numbers_are_never_broken_and_wide_tables_come_in_parts() -> None:
    names = [f"class of number {i}" for i in range(12)]
    numbers = np.random.default_rng(0).integers(10**6, 10**9, (12, 12)).tolist()
    lines = rendered(80, ["", *names], [[name, *row] for name, row in zip(names, numbers, strict=True)])
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for row in numbers:
        assert all(re.search(rf"(?<![\d,]){number:,}(?![\d,])", text) for number in row)
    assert all(text.count(f" {name} ") >= 2 for name in names[:9])  # each part has the first column


def test_numbers_are_aligned_to_the_right() -> None:
    lines = rendered(80, ["label", "rows"], [["a", 1], ["b", 22_222]])
    assert [line[-6:] for line in lines if line.strip()][2:] == ["     1", "22,222"]


def test_long_texts_lose_their_middle_and_wide_characters_count() -> None:
    lines = rendered(40, ["class", "n"], [["ab" * 40, 1], ["語" * 40, 2]])
    assert all("…" in line for line in lines if line.endswith(("1", "2")))
    heads = rendered(20, ["n", "number of documents_seen"], [[1, 2]])
    assert [line.split() for line in heads[1:4]] == [["number", "of"], ["documents_"], ["n", "seen"]]


def test_messages_are_cut_between_words() -> None:
    assert fitted("one two three", 8) == "one two\nthree"
    assert fitted("see /a/very/long/path here", 8) == "see\n/a/very/long/path\nhere"
    assert fitted("one two", None) == "one two"


def test_errors_are_cut_between_words(tmp_path: Path) -> None:
    lines = shown_on_terminal(60, "fit", tmp_path / "no.zarr", tmp_path / "m", "-k", "1.5").splitlines()
    assert max(map(len, lines)) <= 60
    message = " ".join(lines[lines.index("") + 1 :])
    assert message.startswith("Error: -k '1.5' is neither a number of features, such as 100, nor")


def test_an_interrupt_is_answered_at_once(tmp_path: Path) -> None:
    """Also while the main thread computes: Python's own handlers wait for it."""
    code = (
        "import time, click\n"
        "from nfs_dask.cli.reporting import announced\n"
        "import signal; signal.signal(signal.SIGINT, lambda *_: None)\n"
        "with announced(lambda text: click.echo(f'{time.monotonic()} {text}', err=True)):\n"
        "    click.echo('ready', err=True)\n"
        "    import numba, numpy as np\n"
        "    @numba.njit(nogil=True)\n"
        "    def work(n):\n"
        "        x = 0.0\n"
        "        for i in range(n):\n"
        "            x += np.sin(i + x)\n"
        "        return x\n"
        "    work(1)\n"
        "    click.echo('working', err=True)\n"
        "    work(150_000_000)\n"
        "    click.echo(f'{time.monotonic()} done', err=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "working" not in process.stderr.readline():
            pass
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, text = process.stderr.readline().split(maxsplit=1)
        done, word = process.stderr.readline().split()
    assert (text.strip(), word) == (STOPPING, "done")
    assert float(said) - sent < 0.5 < float(done) - float(said)
