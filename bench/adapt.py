"""Workloads of plans that follow the data: what observing costs a round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any
from unittest.mock import patch

from bench.bids import PER_FILE, stored_bids, unlike_queries
from bench.measure import Outcome
from bench.sessions import session
from bench.streams import ROUNDS, WARM
from bench.unlike_streams import loom_rounds

#: Everything that a round does for statistics alone, where it is called from.
OBSERVING = (
    "windloom.rounds.taken.scanned_tuples",
    "windloom.rounds.taken.scanned_partials",
    "windloom.engine.running.driver.observe",
    "windloom.engine.running.loop.write_observed",
    "windloom.plan.memory.Memory.add",
)


class Spent:
    """Seconds in some functions, all together."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            begun = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += perf_counter() - begun

        return run


@contextmanager
def watching(names: tuple[str, ...]) -> Iterator[Spent]:
    spent = Spent()
    with ExitStack() as scope:
        for name in names:
            place, _, function = name.rpartition(".")
            found = _resolve(place)
            scope.enter_context(patch.object(found, function, spent.timed(getattr(found, function))))
        yield spent


def _resolve(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)


def overhead(repeats: int) -> Outcome:
    """The share of a round of 100,000 bids, 100 unlike queries, that goes into observing."""
    asked, spark = unlike_queries(100, False), session()
    shares = []
    with stored_bids(ROUNDS * PER_FILE, per_file=PER_FILE) as folder:
        for _ in range(max(2, repeats // 2 + 1)):
            with watching(OBSERVING) as spent:
                rounds, _ = loom_rounds(spark, folder, asked)
            shares.append(spent.seconds / len(rounds) / statistics.median(rounds[WARM:]))
    figure = statistics.median(shares[1:])
    seconds = statistics.median(rounds[WARM:])
    note = f"{1e3 * spent.seconds / len(rounds):.1f} ms of a round of {seconds:.3f} s"
    return Outcome("observing / a round of 100 plain queries", figure, "ratio", 0.02, "<=", note, {"shares": shares})


ADAPT_WORKLOADS: dict[str, Callable[[int], Outcome]] = {"adapt_overhead": overhead}
