"""Compute figures and tables of the papers anew.

    python -m benchmarks.papers                      all of them, in full
    python -m benchmarks.papers --quick              all of them, with fewer splits and capped sets: five minutes
    python -m benchmarks.papers nfs-figure-4 ...     some of them
    python -m benchmarks.papers --list               which there are
    python -m benchmarks.papers --redraw             tables and pictures from the results there are, computing nothing
    python -m benchmarks.papers --page docs/papers.md --results benchmarks/results/papers     the same, into a page

Each result is RESULTS/ID.json, with settings, versions, seed and machine; its table is ID.md, its picture ID.svg, .pdf
and .png. Real sets are Parquet files and NumPy archives in the folder that --data names; what is not there is skipped,
and the result says why. With --minutes a long run stops after that time, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import warnings
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.choosing import data_folder
from benchmarks.papers import figures, page, results
from benchmarks.papers.experiment import Settings, Unfinished, answer, experiments


def compute(name: str, module: ModuleType, options: argparse.Namespace) -> dict[str, Any]:
    """Run an experiment, and keep what it found."""
    told = {"quick": options.quick, "seed": options.seed}
    progress = options.results / f"{name}-{'quick' if options.quick else 'full'}-{options.seed}.progress"
    settings = Settings(options.data, options.generated, progress=progress, until=options.until, **told)
    begin = monotonic()
    found = results.record(name, module.TITLE, told, answer(module.run, settings), monotonic() - begin)
    results.write(options.results / f"{name}.json", found)
    shutil.rmtree(progress, ignore_errors=True)
    return found


def show(name: str, module: ModuleType, found: dict[str, Any], folder: Path) -> str:
    """Make the table and the picture of a result."""
    values = found["values"]
    if "skipped" in values:
        return f"skipped: {values['skipped']}"
    table = module.table(values)
    (folder / f"{name}.md").write_text(f"{found['title']}\n\n`{found['command']}`\n\n{table}\n")
    if hasattr(module, "draw"):
        figures.save(module.draw(values), folder, name)
    return str(table)


def one(name: str, module: ModuleType, options: argparse.Namespace) -> None:
    print(f"\n## {name}: {module.TITLE}\n", flush=True)
    file = options.results / f"{name}.json"
    found = results.read(file) if options.redraw else compute(name, module, options)
    print(show(name, module, found, options.results))
    print(f"\n{found['seconds']} s", flush=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="ID", help="figures and tables; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer splits, capped sets")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of real sets")
    parser.add_argument("--generated", type=Path, default=Path("benchmark-data"), help="folder of generated sets")
    parser.add_argument("--results", type=Path, default=Path("benchmark-data/papers"), help="folder of what comes out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no part of a run after so many")
    parser.add_argument("--redraw", action="store_true", help="make tables and pictures of the results there are")
    parser.add_argument("--page", type=Path, help="put tables and pictures of the results there are into a page")
    parser.add_argument("--list", action="store_true", help="name all figures and tables")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options, known = parsed(arguments), experiments()
    if options.list:
        print("\n".join(f"{name:24} {module.TITLE}" for name, module in known.items()))
        return 0
    if options.page:
        page.fill(options.page, known, options.results)
        return 0
    if unknown := set(options.names) - set(known):
        print(f"unknown: {', '.join(sorted(unknown))}; --list names those there are", file=sys.stderr)
        return 2
    options.until = monotonic() + 60 * options.minutes
    warnings.simplefilter("ignore", ConvergenceWarning)  # the settings of the papers stop solvers early
    for name in options.names or known:
        try:
            one(name, known[name], options)
        except Unfinished as part:
            print(f"stopped before {part}: the same command goes on from there", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
