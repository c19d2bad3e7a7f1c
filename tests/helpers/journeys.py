"""What a new user types, what comes out on a terminal, and how long it takes."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers.places import ROOT
from tests.helpers.terminals import raw_on_terminal, settled


@dataclass
class Journey:
    """A person in a folder, before a terminal of so many columns. ``pytest -s`` shows the transcript."""

    folder: Path
    columns: int
    seconds: list[float] = field(default_factory=list)  # of each step

    def shell(self, line: str, fails: bool = False) -> str:
        """What a command of ours shows in the end."""
        program, *words = shlex.split(line)
        assert program == "nfs-dask"
        return self._step(f"$ {line}", [sys.executable, str(ROOT / "tests/helpers/nfs.py"), *words], fails)

    def python(self, code: str) -> str:
        """What a script shows in the end. Clusters start processes, which import it: its last part is guarded."""
        (self.folder / "script.py").write_text(code)
        typed = "\n".join(f">>> {line}" if line else "" for line in code.strip().splitlines())
        return self._step(typed, [sys.executable, "script.py"], False)

    def _step(self, typed: str, command: list[str], fails: bool) -> str:
        print(f"\n{typed}")
        started = time.perf_counter()
        shown = settled(raw_on_terminal(self.columns, command, self.folder))
        self.seconds.append(time.perf_counter() - started)
        print(f"{shown}[{self.seconds[-1]:.1f} s; {self.minutes:.2f} min so far]")
        assert "Traceback" not in shown
        assert ("Error: " in shown) is fails, shown
        return shown

    @property
    def minutes(self) -> float:
        """From the first key to now, without the time to think."""
        return sum(self.seconds) / 60

    def fits(self, shown: str) -> bool:
        """Whether no line is wider than the terminal, but for single words such as paths."""
        return all(len(line) <= self.columns or len(line.split()) == 1 for line in shown.splitlines())
