from __future__ import annotations
import sys, tempfile, traceback
from pathlib import Path
from tests.faults.table import Undisturbed, carry_out
from tests.faults import workers, networks, objects, disks

with tempfile.TemporaryDirectory() as t:
    u = Undisturbed(Path(t))
    for f in workers.ROWS + networks.ROWS + objects.ROWS + disks.ROWS:
        if sys.argv[1:] and f.id not in sys.argv[1:]:
            continue
        try:
            o = carry_out(f, Path(t), u)
            print(f.id, f"{o.seconds:.1f} {o.undisturbed:.1f} {o.blocks_again} {o.verdict}", flush=True)
        except BaseException as e:
            print(f.id, "FAILED", repr(e)[-3500:].replace("\\n", "\n"), flush=True)
            if isinstance(e, KeyboardInterrupt):
                raise
