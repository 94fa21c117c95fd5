"""`python -m bench.compare REVISION [NAME …]`: an earlier revision and this one, side by side, workload by workload.

The earlier one is checked out and set up under `build/bench`, as a fresh clone would be. Every workload that both have
is run by both in turn, so that whatever else the machine does falls on both, and the medians of both are compared. A
figure is a ratio against a baseline of its own process wherever a workload has one. Where that baseline is Windloom
itself, the ratio tells nothing about speed: it grows when the baseline gets faster. There, seconds are compared.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.measure import Outcome

PLACE = Path("build/bench")
MOST = 1.05
#: The seconds of workloads that compare Windloom with itself, from what they tell beside their figure.
SECONDS: Mapping[str, Callable[[Any], float]] = {
    "predicates": lambda outcome: outcome.details["base_seconds"],
    "groupings": lambda outcome: statistics.median(together for together, _ in outcome.details["pairs"]),
    "add_to_a_thousand": lambda outcome: _told(r"([\d.]+) s (?:a|per) round", outcome),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("revision", help="the earlier revision, as git names it")
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads; all that both have by default")
    parser.add_argument("--repeats", type=int, default=5, help="pairs of timings per figure")
    parser.add_argument("--turns", type=int, default=3, help="figures per workload and revision")
    arguments = parser.parse_args()
    here, there = Path.cwd(), checked_out(arguments.revision)
    known = workloads_of(there)
    names = [name for name in workloads_of(here) if name in (arguments.names or known) and name in known]
    print(f"{'workload':<28} {'earlier':>10} {'now':>10} {'slower by':>10}", flush=True)
    found = {name: slowdown(name, there, here, arguments.turns, arguments.repeats) for name in names}
    slower = [name for name, factor in found.items() if factor > MOST]
    print(f"{len(slower)} of {len(names)} workloads are more than {MOST - 1:.0%} slower {' '.join(slower)}".rstrip())
    return 1 if slower else 0


def checked_out(revision: str) -> Path:
    """A working tree of the revision with an environment of its own; one that is there already is used again."""
    name = said_by("git", "rev-parse", "--short", revision)
    place = (PLACE / name).absolute()
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "worktree", "add", "--detach", str(place), name], check=True)
    subprocess.run(["make", "--directory", str(place), "setup"], check=True, stdout=sys.stderr)
    return place


def workloads_of(place: Path) -> list[str]:
    """Asked of the revision itself: an unknown name makes it list those it knows."""
    asked = [str(place / ".venv/bin/python"), "-m", "bench", "no such workload"]
    told = subprocess.run(asked, cwd=place, stderr=subprocess.PIPE, text=True, check=False).stderr
    return [name.strip() for name in told.rpartition("known:")[2].split(",")]


def slowdown(name: str, there: Path, here: Path, turns: int, repeats: int) -> float:
    pairs = [(measured(name, there, repeats), measured(name, here, repeats)) for _ in range(turns)]
    before, after = (
        statistics.median(figure(name, outcome) for outcome in column) for column in zip(*pairs, strict=True)
    )
    less_is_better = name in SECONDS or pairs[0][0].better == "<="
    factor: float = after / before if less_is_better else before / after
    print(f"{name:<28} {before:>10.4g} {after:>10.4g} {factor:>10.3f}", flush=True)
    return factor


def figure(name: str, outcome: Outcome) -> float:
    """What is compared of an outcome."""
    return SECONDS[name](outcome) if name in SECONDS else outcome.figure


def _told(pattern: str, outcome: Outcome) -> float:
    """A number that only the note tells, which earlier revisions have as well."""
    found = re.search(pattern, outcome.note)
    assert found is not None, outcome.note
    return float(found[1])


def measured(name: str, place: Path, repeats: int) -> Outcome:
    command = [str(place / ".venv/bin/python"), "-m", "bench", name, "--in-process", "--repeats", str(repeats)]
    return Outcome(**json.loads(said_by(*command, place=place).splitlines()[-1]))


def said_by(*command: str, place: Path | None = None) -> str:
    return subprocess.run(command, cwd=place, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
