"""Commands in a pseudo-terminal of so many columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

from tests.helpers.nfs import END, THEN

COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown_on_terminal(columns: int, *arguments: Any) -> str:
    """What a command shows on a terminal, without colours."""
    return COLOURS.sub("", raw_on_terminal(columns, [sys.executable, "-m", "tests.helpers.nfs", *map(str, arguments)]))


def each_shown_on_terminal(columns: int, *commands: list[str]) -> list[str]:
    """The same of several commands, one after another in one process."""
    words = [word for command in commands for word in (*command, THEN)]
    return shown_on_terminal(columns, *words).split(END)[:-1]


def raw_on_terminal(columns: int, command: list[str], cwd: Path | None = None) -> str:
    """What a program writes to the terminal that all of its streams are."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env = inherited | {"TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=env, cwd=cwd):
        os.close(follower)
        shown = b""
        while chunk := _read_or_end(leader):
            shown += chunk
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")


def settled(raw: str) -> str:
    """What stands on a terminal in the end: lines that were written over are gone, and so are colours.

    >>> settled("50 %\\r100 %\\nbar\\r\\x1b[2Kdone")
    '100 %\\ndone'
    """
    lines, row, column = [""], 0, 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", raw):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif part == "\r":
            column = 0
        elif re.fullmatch(r"\x1b\[\d*A", part):
            row = max(0, row - int(part[2:-1] or 1))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return "\n".join(line.rstrip() for line in lines)


def _read_or_end(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux reports the closed other end of a terminal as an input/output error
        return b""
