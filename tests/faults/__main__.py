"""All rows, or some, and the table of the page: ``python -m tests.faults [ROW ...]``.

What it prints may be put into ``docs/faults.md`` as it is. Each row is printed when it is done; one that does not hold
is told on standard error, and the exit code is 1 then.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import traceback
from pathlib import Path

from tests.faults.registry import ROWS
from tests.faults.table import Undisturbed, carry_out

HEAD = """\
| what goes wrong | what happens | what to do | seconds (undisturbed) | blocks again | verdict |
| --- | --- | --- | --- | --- | --- |"""


def main(names: list[str]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="nfs-dask-faults-") as folder:
        undisturbed = Undisturbed(Path(folder))
        print(HEAD)
        for fault in ROWS:
            if names and fault.id not in names:
                continue
            if missing := fault.missing():
                print(f"{fault.id}: left out, as this machine lacks {missing}", file=sys.stderr)
                continue
            try:
                print(carry_out(fault, Path(folder), undisturbed).line(), flush=True)
            except Exception:
                failed += 1
                print(f"{fault.id}: {traceback.format_exc()}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and take away hosts, mounts and processes on the way
    sys.exit(main(sys.argv[1:]))
