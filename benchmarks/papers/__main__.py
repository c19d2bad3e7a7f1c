"""Compute figures and tables of the papers anew.

    python -m benchmarks.papers                      all of them, in full
    python -m benchmarks.papers --quick              all of them, with fewer splits and capped sets: five minutes
    python -m benchmarks.papers nfs-figure-4 ...     some of them
    python -m benchmarks.papers --list               which there are, and how long they took
    python -m benchmarks.papers --redraw             tables and pictures from the results there are, computing nothing
    python -m benchmarks.papers --page docs/papers.md --results benchmarks/results/papers     the same, into a page

Each result is RESULTS/ID.json, with settings, versions, seed and machine; its table is ID.md, its picture ID.svg, .pdf
and .png. Real sets are Parquet files and NumPy archives in the folder that --data names; what is not there is skipped,
and the result says why. What a long run has found is kept part by part: ended by hand or, with --minutes, after that
time, the same command goes on where it was; with --partly it takes what there is for the result, and says what is left
out. Ways that search for long are ended when --budget is over.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.choosing import data_folder
from benchmarks.papers import figures, page, results
from benchmarks.papers.experiment import Settings, Unfinished, answer, experiments

PUBLISHED = Path(__file__).parents[1] / "results"
BUDGET = 10.0  # minutes of processor for a way to choose, all shares of a split together


@dataclass(frozen=True)
class Program:
    """A command, what its help says, and its experiments by name."""

    name: str  # as a module
    help: str | None
    experiments: Callable[[], dict[str, ModuleType]]

    @property
    def folder(self) -> str:
        """The last part of its name, which its results are under."""
        return self.name.rpartition(".")[2]


def compute(name: str, module: ModuleType, options: argparse.Namespace) -> dict[str, Any]:
    """Run an experiment, and keep what it found."""
    told = {"quick": options.quick, "seed": options.seed} | ({} if options.quick else {"budget": options.budget})
    kind = "quick" if options.quick else f"full-{options.budget:g}"
    progress = options.results / f"{name}-{kind}-{options.seed}.progress"
    pieces = {"progress": progress, "until": options.until, "partly": options.partly}
    settings = Settings(options.data, options.generated, results_folder=options.results, **pieces, **told)
    begin = monotonic()
    libraries = getattr(module, "LIBRARIES", ())
    command = f"python -m {options.program} {name}"
    with counted(progress / "processor.json") as processor:
        values = answer(module.run, settings)
    facts = results.record(name, module.TITLE, told, values, monotonic() - begin, command, libraries)
    found = facts | {"processor": processor()}
    results.write(options.results / f"{name}.json", found)
    if not settings.partly:
        shutil.rmtree(progress, ignore_errors=True)
    return found


def form(told: dict[str, Any]) -> str:
    return "quick" if told["quick"] else "full"


@contextmanager
def counted(file: Path) -> Iterator[Callable[[], float]]:
    """Seconds of processor of this run and of those before it, which did not come to an end."""
    before, begin = results.read(file) if file.exists() else 0.0, processor_seconds()

    def spent() -> float:
        return round(before + processor_seconds() - begin, 1)

    try:
        yield spent
    finally:
        results.write(file, spent())


def processor_seconds() -> float:
    """Of this process, and of those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def show(name: str, module: ModuleType, found: dict[str, Any], folder: Path) -> str:
    """Make the table and the picture of a result."""
    values = found["values"]
    if "skipped" in values:
        return f"skipped: {values['skipped']}"
    table = module.table(values)
    (folder / f"{name}.md").write_text(f"{found['title']}\n\n`{found['command']}`\n\n{table}\n")
    if hasattr(module, "draw") and not all_skipped(values):
        figures.save(module.draw(values), folder, name)
    return str(table)


def all_skipped(values: dict[str, Any]) -> bool:
    """Whether each part of a result says why it is not there."""
    return all(isinstance(part, dict) and "skipped" in part for part in values.values())


def took(name: str, module: ModuleType, published: Path) -> str:
    """How long the published form took, and how long the full one is expected to, where this is another."""
    if not (published / f"{name}.json").exists():
        return ""
    found = results.read(published / f"{name}.json")
    seconds, what = (found["processor"], "processor") if "processor" in found else (found["seconds"], "clock")
    expected = f"; {module.EXPECTED}" if hasattr(module, "EXPECTED") else ""
    time = "in parts" if seconds is None else f"{seconds / 60:.1f} min of {what}"
    return f" ({form(found['settings'])}: {time}{expected})"


def one(name: str, module: ModuleType, options: argparse.Namespace) -> None:
    print(f"\n## {name}: {module.TITLE}\n", flush=True)
    file = options.results / f"{name}.json"
    found = results.read(file) if options.redraw else compute(name, module, options)
    print(show(name, module, found, options.results))
    print(f"\n{found['seconds']} s", flush=True)


def parsed(arguments: list[str] | None, program: Program) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m {program.name}",
        description=program.help,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(program=program.name)
    parser.add_argument("names", nargs="*", metavar="ID", help="those to compute; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer splits, capped sets")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of real sets")
    parser.add_argument("--generated", type=Path, default=Path("benchmark-data"), help="folder of generated sets")
    results_folder = Path("benchmark-data") / program.folder
    parser.add_argument("--results", type=Path, default=results_folder, help="folder of what comes out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no part of a run after so many")
    parser.add_argument("--partly", action="store_true", help="take what there is by then, and leave out the rest")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help="minutes of processor for a way to choose, in full; %(default)g"
    )
    parser.add_argument("--redraw", action="store_true", help="make tables and pictures of the results there are")
    parser.add_argument("--page", type=Path, help="put tables and pictures of the results there are into a page")
    parser.add_argument("--list", action="store_true", help="name all there are")
    return parser.parse_args(arguments)


PAPERS = Program("benchmarks.papers", __doc__, lambda: experiments())


def main(arguments: list[str] | None = None, program: Program = PAPERS) -> int:
    options, known = parsed(arguments, program), program.experiments()
    if options.list:
        published = PUBLISHED / program.folder
        print("\n".join(f"{name:24} {module.TITLE}{took(name, module, published)}" for name, module in known.items()))
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
