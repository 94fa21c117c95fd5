"""Measuring: pairs of timings within one process, memory of processes, a table of results against their bars."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")


@dataclass(frozen=True)
class Outcome:
    """One measured figure. `bar` is what the issue asks for; `better` says which side of it is good."""

    workload: str
    figure: float
    unit: str
    bar: float
    better: str  # ">=" or "<="
    note: str = ""
    details: dict[str, object] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.figure >= self.bar if self.better == ">=" else self.figure <= self.bar

    def line(self) -> str:
        mark = "holds" if self.holds else "MISSED"
        bar = f"bar {self.better} {self.bar:g}"
        return f"{self.workload:<44} {self.figure:>8.3g} {self.unit:<6} {bar:<12} {mark:<7} {self.note}"


def now() -> float:
    """What actions are measured by; `--clock processor` replaces it."""
    return time.perf_counter()


def seconds(action: Callable[[], object]) -> float:
    begun = now()
    action()
    return now() - begun


def paired(base: Callable[[], object], ours: Callable[[], object], repeats: int, warm: int = 2) -> dict[str, object]:
    """Alternate the two, so that whatever else the machine does falls on both; the median ratio counts."""
    for _ in range(warm):
        base()
        ours()
    pairs = [(seconds(base), seconds(ours)) for _ in range(repeats)]
    ratios = [left / right for left, right in pairs]
    return {
        "ratio": statistics.median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        "base_seconds": statistics.median(left for left, _ in pairs),
        "our_seconds": statistics.median(right for _, right in pairs),
        "repeats": repeats,
    }


def resident_bytes(pid: int | None = None) -> int:
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_resident_bytes() -> int:
    """The largest resident size that this process has had since it began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def in_fresh_process(function: Callable[..., Made], *arguments: object) -> Made:
    """What the function returns in a process of its own, where nothing is imported, compiled or allocated yet."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def cpu_seconds() -> float:
    """CPU time of this process and of all its descendants (Spark's JVM is one) so far."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(spent[process] for process in family if process in spent)


@contextmanager
def watching_memory(pid: int | None = None) -> Iterator[Callable[[], int]]:
    """Largest resident size of a process (this one by default) while the block runs."""
    largest = [resident_bytes(pid)]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            largest[0] = max(largest[0], resident_bytes(pid))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: largest[0]
    finally:
        done.set()
        thread.join()


def write_outcomes(path: Path, outcomes: list[Outcome]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(outcome), "holds": outcome.holds} for outcome in outcomes]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
