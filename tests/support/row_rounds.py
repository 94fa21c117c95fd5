"""Row queries over streams that are cut into rounds: random cuts, and what each round must report, by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from support.cut_rounds import CutRounds, Row, Rows
from support.join_looms import registered
from windloom.model import DataType, Query, Stream
from windloom_tools.oracle.rows import (
    StandingRow,
    answer_aggregated,
    changed,
    joined_tuples,
    labelled,
    pair_answer,
    passing,
    standing,
)

Rounds = Sequence[Rows]

COLUMNS = {name: DataType.parse(kind) for name, kind in {"tick": "bigint", "k": "string", "i": "int"}.items()}
#: With different delays, so that the frontiers of streams differ.
STREAMS = {name: Stream(name, COLUMNS, "tick", delay, time_unit="us") for name, delay in (("s", 4), ("t", 9), ("u", 0))}

#: Every kind of row query, over windows of a few ticks.
TEXTS = {
    "tumbling": "SELECT k, i FROM s [TUMBLE 5 us] WHERE i > 1",
    "sliding": "SELECT i, k FROM s [RANGE 9 us SLIDE 4 us]",
    "with_gaps": "SELECT i FROM s [RANGE 2 us SLIDE 7 us OFFSET 1 us]",
    "computed": "SELECT i + 1 AS j, coalesce(k, 'none') AS c FROM t [RANGE 6 us SLIDE 3 us]",
    "entering": "SELECT ISTREAM k, i FROM s [RANGE 9 us SLIDE 4 us] WHERE i <> 3",
    "leaving": "SELECT DSTREAM i FROM s [RANGE 9 us SLIDE 4 us]",
    "leaving_gaps": "SELECT DSTREAM k FROM t [RANGE 3 us SLIDE 8 us]",
    "distinct": "SELECT DISTINCT k FROM s [RANGE 8 us SLIDE 4 us]",
    "new_values": "SELECT ISTREAM DISTINCT k, i FROM s [RANGE 8 us SLIDE 4 us]",
    "gone_values": "SELECT DSTREAM DISTINCT k FROM s [RANGE 8 us SLIDE 4 us]",
    "joined": "SELECT s.i AS a, t.i AS b FROM s [RANGE 8 us SLIDE 4 us] JOIN t [RANGE 6 us] ON s.k = t.k",
    "pairs": "SELECT ISTREAM s.i AS a, t.i AS b FROM s [RANGE 8 us SLIDE 4 us] JOIN t [RANGE 6 us] ON s.k = t.k",
    "gone_pairs": "SELECT DSTREAM s.i, t.k FROM s [RANGE 8 us SLIDE 4 us] JOIN t [RANGE 6 us] ON s.k <=> t.k",
    "unequal": "SELECT ISTREAM s.i AS a, t.i AS b FROM s [TUMBLE 6 us] JOIN t [TUMBLE 6 us] ON s.i < t.i",
    "near": "SELECT s.i AS a, t.i AS b FROM s JOIN t WITHIN 7 us ON s.k = t.k",
    "near_all": "SELECT s.i AS a, t.i AS b, u.i AS c FROM s JOIN t WITHIN 7 us ON s.k = t.k"
    " JOIN u WITHIN 4 us ON u.i = t.i",
    "with_itself": "SELECT a.i AS i, b.i AS j FROM s a JOIN s b WITHIN 5 us ON a.k = b.k AND a.i < b.i",
    "circle": "SELECT ISTREAM s.i AS a, t.i AS b, u.i AS c FROM s [RANGE 8 us SLIDE 4 us] JOIN t [RANGE 8 us]"
    " ON s.k = t.k JOIN u [RANGE 8 us] ON u.i = t.i AND u.i = s.i",
    "left": "SELECT s.i AS a, t.i AS b FROM s [TUMBLE 6 us] LEFT JOIN t [TUMBLE 6 us] ON s.k = t.k AND t.i > 1",
    "entering_left": "SELECT ISTREAM s.i AS a, t.i AS b FROM s [RANGE 8 us SLIDE 4 us] LEFT JOIN t [RANGE 4 us]"
    " ON s.k = t.k",
    "matched": "SELECT s.i FROM s [RANGE 8 us SLIDE 4 us] LEFT SEMI JOIN t [RANGE 8 us] ON s.k = t.k",
    "unmatched": "SELECT ISTREAM s.i, s.k FROM s [RANGE 8 us SLIDE 4 us] LEFT ANTI JOIN t [RANGE 8 us] ON s.k = t.k",
    "there": "SELECT i FROM s [TUMBLE 6 us] WHERE i > 0 AND EXISTS (SELECT 1 FROM t [TUMBLE 6 us] WHERE t.i < s.i)",
    "nowhere": "SELECT ISTREAM s.i, s.k FROM s [RANGE 8 us SLIDE 4 us] WHERE NOT EXISTS (SELECT 1 FROM t [RANGE 8 us]"
    " JOIN u [RANGE 8 us] ON t.i = u.i WHERE t.k = s.k)",
    "union": "SELECT k, i FROM s [TUMBLE 4 us] UNION ALL SELECT k, i FROM t [TUMBLE 4 us] WHERE i < 4",
    "entering_union": "SELECT ISTREAM k FROM s [RANGE 8 us SLIDE 4 us] UNION ALL SELECT k FROM t [TUMBLE 4 us]",
    "except": "SELECT k FROM s [RANGE 8 us SLIDE 4 us] EXCEPT SELECT k FROM t [RANGE 8 us]",
    "except_all": "SELECT ISTREAM k, i FROM s [TUMBLE 8 us] EXCEPT ALL SELECT k, i FROM t [TUMBLE 8 us]",
    "intersect": "SELECT DSTREAM k FROM s [RANGE 8 us SLIDE 4 us] INTERSECT SELECT k FROM t [RANGE 4 us]",
    "intersect_all": "SELECT i FROM s [TUMBLE 8 us] INTERSECT ALL SELECT i FROM t [TUMBLE 8 us]",
    "several": "SELECT k FROM s [TUMBLE 8 us] UNION SELECT k FROM t [TUMBLE 8 us] EXCEPT SELECT k FROM u [TUMBLE 8 us]",
}

#: Aggregates over joins that cannot be answered from partials of single streams: no key, a circle, three at once.
AGGREGATED = {
    "unequal_count": "SELECT s.k, count(*) AS n, sum(s.i * t.i) AS p, min(t.i) AS low FROM s [RANGE 8 us SLIDE 4 us]"
    " JOIN t [RANGE 6 us] ON s.i < t.i GROUP BY s.k",
    "circle_count": "SELECT count(*) AS n, max(u.i) AS high, sum(s.i) AS total FROM s [RANGE 8 us SLIDE 4 us]"
    " JOIN t [RANGE 8 us] ON s.k = t.k JOIN u [RANGE 4 us] ON u.i = t.i AND u.i <= s.i AND s.i + t.i > u.i",
    "near_count": "SELECT t.i, count(*) AS n, sum(s.i) FILTER (WHERE s.i > t.i) AS above FROM s [RANGE 8 us SLIDE 4 us]"
    " JOIN t [RANGE 8 us] WITHIN 3 us ON s.k = t.k GROUP BY t.i",
}

REGISTRY = registered({**TEXTS, **AGGREGATED}, STREAMS)
QUERIES: Mapping[str, Query] = REGISTRY.queries
TYPES = REGISTRY.types()


@dataclass(frozen=True)
class RowRounds(CutRounds):
    """What each round brings; the end of all streams follows."""

    rounds: Rounds
    streams: Mapping[str, Stream]

    def expected(self, query: Query) -> dict[int, list[Row]]:
        """By round: what it reports of the windows that it closes, of all tuples that have arrived by then."""
        rows = query.rows
        assert rows is not None
        if rows.within:
            return self._expected_pairs(query)
        if not rows.columns:
            every = range(len(self.rounds) + 1)
            return {n: answer_aggregated(query, self.arrived(n + 1), self._ends(query, n)) for n in every}
        found: dict[int, list[Row]] = {}
        reported: dict[int, list[StandingRow]] = {}
        for number in range(len(self.rounds) + 1):
            found[number] = []
            for end in self._ends(query, number):
                reported[end] = standing(rows, self.arrived(number + 1), end)
                before = reported.get(end - rows.window.slide_ticks, [])
                found[number] += labelled(rows, changed(rows, reported[end], before), end)
        return found

    def _ends(self, query: Query, number: int) -> list[int]:
        """The ends that a round reports; before and behind all tuples there is nothing to report."""
        ticks = [row["tick"] for own in self.arrived(len(self.rounds)).values() for row in own]
        if not ticks:
            return []
        window = query.window
        after, until = self.closed(query, number), self.closed(query, number + 1)
        every = range(min(ticks) - window.slide_ticks, max(ticks) + window.range_ticks + 2 * window.slide_ticks + 1)
        return [end for end in every if after < end <= until and (end - window.end_ticks) % window.slide_ticks == 0]

    def _expected_pairs(self, query: Query) -> dict[int, list[Row]]:
        """A pair is reported once both are there and the watermark has passed them, if it has not passed too far."""
        rows = query.rows
        assert rows is not None
        (selection,) = rows.selections
        came = {id(row): number for number, batch in enumerate(self.rounds) for own in batch.values() for row in own}
        held = [passing(strand, self.arrived(len(self.rounds))) for strand in selection.strands]
        found: dict[int, list[Row]] = {number: [] for number in range(len(self.rounds) + 1)}
        for parts in joined_tuples(selection, held, "tick"):
            there = max(came[id(part)] for part in parts)
            alive = min(
                part["tick"] + strand.window.range_ticks
                for part, strand in zip(parts, selection.strands, strict=True)
                if part is not None
            )
            enters = max(max(part["tick"] for part in parts if part is not None), self.closed(query, there)) + 1
            if enters <= alive:
                number = next(n for n in range(there, len(self.rounds) + 1) if self.closed(query, n + 1) >= enters)
                found[number].append(pair_answer(rows, selection, parts))
        return found


@st.composite
def row_rounds(draw: st.DrawFn) -> RowRounds:
    """Tuples that come in disorder, some of them late, of streams that may be silent."""
    rounds = []
    now = 0
    for _ in range(draw(st.integers(1, 5))):
        now += draw(st.integers(0, 12))
        row = st.fixed_dictionaries(
            {
                "tick": st.integers(now - 14, now + 6),
                "k": st.sampled_from(["a", "b", None]),
                "i": st.one_of(st.none(), st.integers(0, 4)),
            }
        )
        rounds.append({name: draw(st.lists(row, max_size=5)) for name in STREAMS})
    return RowRounds(rounds, STREAMS)
