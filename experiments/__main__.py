"""`python -m experiments [NAME …] [--quick]`: repeat experiments of the papers, write data, figures and pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter

from experiments.index import headline_of, write_index
from experiments.pages import Data, Page, Skipped, write_page

#: In the order of the papers; a name is a module with `run(quick)`.
NAMES = (
    *("queries", "rates", "overlaps", "skews", "incremental", "optimizations", "techniques", "throughput"),
    *("frequent", "isolation", "schedules"),
    *("om_single", "om_joins", "om_many"),
    *("aggregation_joins", "window_joins", "update_patterns", "expiring_index"),
)
DOCS, TRIAL = Path("docs/experiments"), Path("build/experiments")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--quick", action="store_true", help=f"few and small cases, written to {TRIAL}")
    parser.add_argument("--out", type=Path, help=f"another folder than {DOCS}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r}; known: {', '.join(NAMES)}")
    folder = arguments.out or (TRIAL if arguments.quick else DOCS)
    begun = perf_counter()
    for name in arguments.names or NAMES:
        experiment = import_module(f"experiments.{name}")
        run: Callable[[bool], Page] = experiment.run
        started = perf_counter()
        try:
            page = run(arguments.quick)
        except Skipped as reason:
            print(f"{name:<14}skipped: {reason}", flush=True)
            continue
        headline = headline_of(name, Data({file: table.csv() for file, table in page.data.items()}))
        write_page(name, page, headline, folder)
        print(f"{name:<14}{perf_counter() - started:>7.1f} s  {headline}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_index(NAMES, folder)
    print(f"written to {folder} in {perf_counter() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
