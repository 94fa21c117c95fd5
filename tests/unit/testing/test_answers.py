"""What queries answer, on examples that one can check by hand: `answers/*.cql`.

A file declares streams and gives their tuples. Queries follow, each with its rows behind `----`: the beginning and the
end of the window, the groups, the other columns. The oracle and one step of the engine must both give these rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.compare import rows_of
from support.join_looms import planned, registered
from support.native import taken_of_plan
from windloom.language.catalog import parse_catalog
from windloom.model import Query, Stream
from windloom.model.time import TICK_MAX
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.testing import answer, answer_join
from windloom.weave.round_input import RoundInput
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]
Tuples = Mapping[str, Sequence[Row]]

FILES = sorted(Path(__file__).with_name("answers").glob("*.cql"))


def blocks(file: Path) -> list[str]:
    return [block for block in file.read_text(encoding="utf-8").strip().split("\n\n") if not block.startswith("#")]


CASES = [
    pytest.param(file, *block.split("\n----"), id=f"{file.stem}-{number}")
    for file in FILES
    for number, block in enumerate(blocks(file))
    if "\n----" in block
]


@cache
def declared(file: Path) -> Mapping[str, Stream]:
    return {each.stream.name: each.stream for each in parse_catalog(blocks(file)[0]).streams}


@cache
def tuples(file: Path) -> Tuples:
    found: dict[str, list[Row]] = {name: [] for name in declared(file)}
    for block in blocks(file):
        first, *table = block.split("\n")
        if first.startswith("tuples of "):
            stream = declared(file)[first.removeprefix("tuples of ")]
            names, *lines = (line.split() for line in table)
            found[stream.name] = [
                {name: value(word, stream.columns[name].name) for name, word in zip(names, line, strict=True)}
                for line in lines
            ]
    return found


def value(word: str, kind: str) -> Any:
    if word == "NULL":
        return None
    return {"bigint": int, "double": float, "string": str}[kind](word)


def shown(found: Any) -> str:
    if found is None:
        return "NULL"
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, list):
        return ",".join(f"{shown(each['value'])}:{each['count']}" for each in found) or "none"
    return str(found)


def lines(query: Query, rows: Sequence[Row]) -> list[str]:
    columns = ("window_start", "window_end", *(grouping.name for grouping in query.group_by))
    names = (*columns, *(output.name for output in query.outputs))
    return sorted(" ".join(shown(row[name]) for name in names) for row in rows)


def by_definition(query: Query, given: Tuples) -> list[Row]:
    if query.join is not None:
        return answer_join(query, given)
    stream = given[query.streams[0]]
    passing = [row for row in stream if query.where is None or scalar(query.where.sql)(row) is True]
    return answer(query, passing, stream=stream)


def by_the_engine(text: str, streams: Mapping[str, Stream], given: Tuples) -> list[Row]:
    registry = registered({"q": text}, streams, {})
    plan = planned(registry)
    ticks = {name: [row["tick"] for row in rows] for name, rows in given.items() if rows}
    brought = RoundInput(
        taken_of_plan(plan, given),
        dict.fromkeys(streams, TICK_MAX),
        seen={name: max(own) for name, own in ticks.items()},
        first={name: min(own) for name, own in ticks.items()},
    )
    _, answers, _ = step(State(), brought, plan)
    return rows_of(answers.blocks(), registry.queries["q"])


@pytest.mark.parametrize(("file", "text", "expected"), CASES)
def test_the_oracle_and_the_engine_give_the_rows_that_are_written(file: Path, text: str, expected: str) -> None:
    streams, given = declared(file), tuples(file)
    query = registered({"q": text}, streams, {}).queries["q"]
    wanted = sorted(" ".join(line.split()) for line in expected.strip().splitlines())
    assert lines(query, by_definition(query, given)) == wanted
    if query.window.counted_by is None:  # positions are counted by Spark
        assert lines(query, by_the_engine(text, streams, given)) == wanted
