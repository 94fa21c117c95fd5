"""A stream of rounds with a checkpoint and a sink on disk, without Spark: to be crashed, killed and started again.

python -m support.durable FOLDER     runs it to its end, or to the fault point that WINDLOOM_FAULT names
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.catalogs import STREAM, make_query
from support.compare import rows_of
from support.native import partials_of_plan
from support.positions import take_rows
from support.rounds import Round, first_of, plan_of, renamed
from windloom.model import Aggregate, Expression, Query, Window
from windloom.plan import Plan
from windloom.rounds import State, carry, step
from windloom.rounds.checkpoint import Checkpoint, LocalStorage, PlanRecord, RoundLog, recover
from windloom.rounds.faults import fault

#: What stands for the text of a query in plan records.
TEXTS: dict[str, Query] = {
    f"{window} {aggregate} by {grouping}": make_query("q", window, [aggregate], grouping)
    for window in (
        *(Window(8, 4), Window(12, 4), Window(10, 5, 1), Window(6, 3)),
        *(Window.landmark(5), Window.rows(7, 3), Window.rows(4, 2, 0, (Expression.of_column("k"),))),
    )
    for aggregate in (Aggregate("count"), Aggregate("sum", Expression.of_column("i")))
    for grouping in ((), ("k",))
    if grouping or not window.partition_by
}
_TEXT_OF = {query: text for text, query in TEXTS.items()}


def make_rounds(seed: int, count: int) -> list[Round]:
    """Tuples in disorder, some late; queries that come, go and are replaced."""
    rng = random.Random(seed)
    queries = {name: renamed(rng.choice(list(TEXTS.values())), name) for name in ("a", "b", "c")}
    rounds, largest = [], 0
    for number in range(count):
        if number and rng.random() < 0.4:
            name = rng.choice("abcd")
            queries = {one: query for one, query in queries.items() if one != name}
            if rng.random() < 0.7 or not queries:
                queries[name] = renamed(rng.choice(list(TEXTS.values())), name)
        ticks = [number * 7 + rng.randrange(-9, 10) for _ in range(8)]
        rows = [{"tick": tick, "k": rng.choice("xyz"), "i": rng.randrange(9)} for tick in ticks]
        largest = max([largest, *ticks])
        rounds.append(Round(rows, largest - 6, queries))
    return rounds


def plan_of_record(record: PlanRecord) -> Plan:
    return plan_of({name: renamed(TEXTS[text], name) for name, text in record.queries.items()})


def run_stream(folder: Path, rounds: Sequence[Round], snapshot_rounds: int = 3) -> State:
    """From where the checkpoint in the folder is to the last round; answers are files by round, beside it."""
    checkpoint = Checkpoint.open(LocalStorage(folder / "checkpoint"), {"s": STREAM})
    try:
        found = recover(checkpoint, plan_of_record)
        state, plan, version = found.state, found.plan, -1 if found.plan_record is None else found.plan_record.version
        for number in range(found.next_round, len(rounds)):
            _change_queries(checkpoint, number, rounds)
            record = checkpoint.begin(number)
            if record.version != version:
                new = plan_of_record(record)
                state = state if plan is None else carry(state, plan, new)
                plan, version = new, record.version
            assert plan is not None
            log = checkpoint.read_log(number) or _take_in(number, rounds[number], record, plan, state)
            checkpoint.write_log(log)
            state, answers, _ = step(
                state,
                log.partials,
                log.watermark,
                plan,
                seen=log.seen,
                first=log.first,
                rows=log.rows,
                history_ticks=record.history_ticks,
            )
            blocks = list(answers.blocks())
            rows = {planned.name: rows_of(blocks, planned.query) for planned in plan.queries}
            fault("before sink")
            _write_rows(folder / "answers", number, rows)
            fault("after sink")
            checkpoint.commit(number, {"round": number, "rows": sum(map(len, rows.values()))})
            if number % snapshot_rounds == snapshot_rounds - 1:
                checkpoint.snapshot(number, state)
                checkpoint.retain()
        return state
    finally:
        checkpoint.close()


def _change_queries(checkpoint: Checkpoint, number: int, rounds: Sequence[Round]) -> None:
    newest = checkpoint.newest_plan()
    if newest is not None and (newest.from_round == number or rounds[number].queries == rounds[number - 1].queries):
        return
    texts = {name: _TEXT_OF[renamed(query, "q")] for name, query in rounds[number].queries.items()}
    version = 0 if newest is None else newest.version + 1
    checkpoint.record_plan(PlanRecord(version, number, texts, {"history_ticks": "15"}))


def _take_in(number: int, one: Round, record: PlanRecord, plan: Plan, state: State) -> RoundLog:
    seen = {"s": max([*state.seen.values(), *(row["tick"] for row in one.rows)])}
    counted, rows = take_rows(plan, one.rows, state.positions, state.closed, max(one.watermark, state.closed))
    partials = {**partials_of_plan(plan, one.rows), **counted}
    return RoundLog(number, record.version, one.watermark, seen, partials, first=first_of(one.rows), rows=rows)


def _write_rows(folder: Path, number: int, rows: Mapping[str, object]) -> None:
    """Idempotent by round, and whole or not there, as every sink is."""
    folder.mkdir(exist_ok=True)
    unfinished = folder / f".{number}"
    unfinished.write_text(json.dumps(rows, sort_keys=True))
    unfinished.replace(folder / f"{number:06}.json")


def answers_in(folder: Path) -> dict[str, object]:
    return {path.name: _sorted(json.loads(path.read_text())) for path in sorted((folder / "answers").glob("*.json"))}


def _sorted(rows: Mapping[str, list[object]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, found)) for name, found in rows.items()}


if __name__ == "__main__":
    run_stream(Path(sys.argv[1]), make_rounds(7, 12))
