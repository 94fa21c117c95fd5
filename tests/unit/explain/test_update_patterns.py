"""Update patterns, by the rules of the thesis: how complex the coming and going of rows is."""

from __future__ import annotations

import pytest

from windloom.explain.update_patterns import Pattern, pattern_of, sink_text
from windloom.language.select import parse_query
from windloom.model import DataType, Stream

COLUMNS = {name: DataType.parse(kind) for name, kind in {"ts": "timestamp", "k": "string", "x": "int"}.items()}
STREAMS = {name: Stream(name, COLUMNS, time="ts") for name in "abc"}
W, V = "[RANGE 10 minutes SLIDE 1 minute]", "[RANGE 5 minutes SLIDE 1 minute]"
JOIN = f"SELECT a.k FROM a {W} JOIN b {W} ON a.k = b.k"


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (f"SELECT k, x + 1 AS y FROM a {W} WHERE x > 1", Pattern.WEAKEST),
        (f"SELECT ISTREAM k FROM a {W}", Pattern.MONOTONIC),
        (f"SELECT DSTREAM k FROM a {W}", Pattern.MONOTONIC),
        ("SELECT a.k FROM a JOIN b WITHIN 1 minute ON a.k = b.k", Pattern.MONOTONIC),
        (f"SELECT k FROM a {W} UNION ALL SELECT k FROM b {W}", Pattern.WEAKEST),
        (f"SELECT k FROM a {W} UNION ALL SELECT k FROM b {V}", Pattern.WEAK),
        (JOIN, Pattern.WEAK),
        (f"{JOIN} JOIN c {W} ON b.x = c.x", Pattern.WEAK),
        (f"SELECT DISTINCT k FROM a {W}", Pattern.WEAK),
        (f"SELECT k FROM a {W} UNION SELECT k FROM b {W}", Pattern.WEAK),
        (f"SELECT k FROM a {W} INTERSECT SELECT k FROM b {W}", Pattern.WEAK),
        (f"SELECT k FROM a {W} WHERE EXISTS (SELECT 1 FROM b {W} WHERE b.k = a.k)", Pattern.WEAK),
        (f"SELECT k FROM a {W} WHERE NOT EXISTS (SELECT 1 FROM b {W} WHERE b.k = a.k)", Pattern.STRICT),
        (f"SELECT k FROM a {W} EXCEPT ALL SELECT k FROM b {W}", Pattern.STRICT),
        (f"SELECT a.k, b.x FROM a {W} LEFT JOIN b {W} ON a.k = b.k", Pattern.STRICT),
        (f"({JOIN}) UNION ALL SELECT k FROM a {W} EXCEPT SELECT k FROM c {W}", Pattern.STRICT),
        (f"SELECT k, count(*) FROM a {W} GROUP BY k", Pattern.STRICT),
        (f"SELECT count(*) FROM a {W} JOIN b {W} ON a.k = b.k", Pattern.STRICT),
        (f"SELECT k FROM a {W} EMIT CHANGES", Pattern.WEAKEST),
    ],
)
def test_a_query_has_the_pattern_that_the_rules_give(text: str, pattern: Pattern) -> None:
    assert pattern_of(parse_query("q", text, STREAMS)).pattern is pattern


def test_what_a_sink_receives_agrees_with_the_pattern() -> None:
    told = "only tuples to come tell when a row goes"
    weak, strict = (
        parse_query("q", text, STREAMS)
        for text in (
            f"SELECT DISTINCT k FROM a {W} EMIT CHANGES",
            f"SELECT k FROM a {W} EXCEPT SELECT k FROM b {W} EMIT CHANGES",
        )
    )
    assert told not in sink_text(weak)
    assert told in sink_text(strict)
