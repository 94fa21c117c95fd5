"""`python -m bench [NAME …]`: run workloads, each in a process of its own, print them against their bars, keep JSON.

`python -m bench profile NAME …` runs them in this process, and prints where their time goes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from inspect import signature
from pathlib import Path

from bench.measure import Outcome, write_outcomes

RESULTS = Path("build/bench/batch.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="workloads, or the first word of several; all by default"
    )
    parser.add_argument("--repeats", type=int, default=5, help="pairs of timings per ratio")
    parser.add_argument("--events", type=int, help="tuples, for workloads that can have more or fewer")
    parser.add_argument(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="of runs and of the rounds of streams; on a loaded machine: processor, which leaves out rivals' processes",
    )
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    known = workloads()
    is_profile = arguments.names[:1] == ["profile"]
    if is_profile:
        del arguments.names[0]
    chosen = {asked: meant_by(asked, known) for asked in arguments.names}
    unknown = [asked for asked, found in chosen.items() if not found]
    if unknown:
        parser.error(f"unknown workload {unknown[0]!r}; known: {', '.join(known)}")
    names = list(dict.fromkeys(name for found in chosen.values() for name in found)) or list(known)
    if is_profile:
        from bench.profile import profile

        for name in names if arguments.names else parser.error("profile needs the NAME of a workload"):
            profile(name, partial(run, known[name], arguments.repeats, arguments.events))
        return 0
    if arguments.in_process:
        from bench.clocks import rounds_by

        with rounds_by(arguments.clock):
            outcome = run(known[names[0]], arguments.repeats, arguments.events)
        print(json.dumps(outcome.__dict__))
        return 0
    outcomes = []
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        options = ["--repeats", str(arguments.repeats), "--clock", arguments.clock]
        options += [] if arguments.events is None else ["--events", str(arguments.events)]
        command = [sys.executable, "-m", "bench", name, "--in-process", *options]
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        outcomes.append(Outcome(**json.loads(finished.stdout.strip().splitlines()[-1])))
        print(outcomes[-1].line(), flush=True)
    write_outcomes(RESULTS, outcomes)
    print(f"written to {RESULTS}")
    return 0 if all(measured.holds for measured in outcomes) else 1


def run(workload: Callable[..., Outcome], repeats: int, events: int | None) -> Outcome:
    """Runs a workload; those that do not say `events` have the size that they always have."""
    sized = events is not None and "events" in signature(workload).parameters
    return workload(repeats, events=events) if sized else workload(repeats)


def workloads() -> dict[str, Callable[..., Outcome]]:
    """Every workload by name."""
    # Imported here: the parent only starts processes, and --help needs no Spark.
    from bench.adapt import ADAPT_WORKLOADS
    from bench.brought import BROUGHT_WORKLOADS
    from bench.cold import COLD_WORKLOADS
    from bench.first_day import FIRST_DAY_WORKLOADS
    from bench.joins import JOIN_WORKLOADS
    from bench.operator import OPERATOR_WORKLOADS
    from bench.overload import OVERLOAD_WORKLOADS
    from bench.present import PRESENT_WORKLOADS
    from bench.relations import RELATION_WORKLOADS
    from bench.rows import ROW_WORKLOADS
    from bench.scans import SCAN_WORKLOADS
    from bench.service import SERVICE_WORKLOADS
    from bench.state import STATE_WORKLOADS
    from bench.streams import STREAM_WORKLOADS
    from bench.unlike import UNLIKE_WORKLOADS
    from bench.workloads import WORKLOADS as BATCH_WORKLOADS

    return {
        **BATCH_WORKLOADS,
        **ADAPT_WORKLOADS,
        **RELATION_WORKLOADS,
        **SCAN_WORKLOADS,
        **PRESENT_WORKLOADS,
        **STREAM_WORKLOADS,
        **UNLIKE_WORKLOADS,
        **OPERATOR_WORKLOADS,
        **STATE_WORKLOADS,
        **BROUGHT_WORKLOADS,
        **COLD_WORKLOADS,
        **SERVICE_WORKLOADS,
        **OVERLOAD_WORKLOADS,
        **JOIN_WORKLOADS,
        **ROW_WORKLOADS,
        **FIRST_DAY_WORKLOADS,
    }


def meant_by(asked: str, names: Iterable[str]) -> list[str]:
    """The workload of that name, or else all whose first word it is: `unlike` means `unlike_spark` and others."""
    names = list(names)
    return [asked] if asked in names else [name for name in names if name.startswith(f"{asked}_")]


if __name__ == "__main__":
    sys.exit(main())
