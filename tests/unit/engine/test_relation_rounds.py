"""Relations in rounds, without a JVM: when they are read, what is logged, and what queries that come later see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.join_catalogs import ATTACHED, RELATIONS, STREAMS
from support.join_looms import registered
from support.micro_batches import MicroBatches, answers_in
from support.relations import Rows, Versions
from windloom.checkpoint.logs import RoundLog
from windloom.errors import WindloomError
from windloom.model import Query
from windloom.model.time import TICK_MAX
from windloom.optimizer.adapt.basins import basins_of
from windloom.optimizer.adapt.candidates import choices_of
from windloom.optimizer.adapt.chart_figures import Figure, FigureKind, figures_of, with_figures
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.set_statistics import Mean

Row = dict[str, Any]

INNER = (
    "SELECT b.k, count(*) AS n, sum(b.i) AS total FROM s [TUMBLE 10 microseconds] a JOIN r b ON a.k = b.k GROUP BY b.k"
)
CAME = "SELECT b.i, count(*) AS n FROM s [TUMBLE 10 microseconds] a LEFT JOIN p b ON a.k = b.k GROUP BY b.i"
PLAIN = "SELECT count(*) AS n FROM s [TUMBLE 10 microseconds]"


def tuple_at(tick: int, k: str = "a") -> Row:
    empty = dict.fromkeys(column for column in STREAMS["s"].columns if column not in ("tick", "k"))
    return {"tick": tick, "k": k, **empty}


def version(*pairs: tuple[str, int]) -> list[Row]:
    empty = dict.fromkeys(RELATIONS["r"].columns)
    return [{**empty, "k": k, "i": i} for k, i in pairs]


class Case:
    """A stream in a folder; `versions` are those of every relation, by round."""

    def __init__(self, folder: Path, versions: Sequence[Rows]) -> None:
        self.folder = folder
        self.versions = [dict.fromkeys([*RELATIONS, *ATTACHED], rows) for rows in versions]

    def life(self, texts: Mapping[str, str], **options: Any) -> MicroBatches:
        registry = registered(texts)
        given: dict[str, Any] = {"history_ticks": 100}
        given |= {"relations": {**RELATIONS, **ATTACHED}, "versions": Versions(self.versions)}
        life = MicroBatches(self.folder, {"s": STREAMS["s"]}, **{**given, "types": registry.types(), **options})
        life.change(registry.queries)
        return life

    def rows(self, name: str) -> dict[int, list[tuple[Any, ...]]]:
        """By end of the window: what a query has reported, without its window."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        for reported in answers_in(self.folder).values():
            for row in reported.get(name, []):
                end = row.pop("window_end")
                row.pop("window_start")
                found.setdefault(end, []).append(tuple(row.values()))
        return {end: sorted(rows, key=repr) for end, rows in found.items()}


def logs(life: MicroBatches) -> list[RoundLog]:
    return sorted(life.checkpoint.logged(life.checkpoint.last_committed), key=lambda log: log.round)


def test_a_relation_is_logged_when_it_has_changed_and_read_only_if_it_may_have(tmp_path: Path) -> None:
    same, equal, other = version(("a", 1)), version(("a", 1)), version(("a", 5), ("a", 6))
    case = Case(tmp_path, [same, same, equal, other, other])
    with case.life({"q": INNER}, snapshot_rounds=100) as life:
        done = [life.round({"s": [tuple_at(tick)]}) for tick in (5, 15, 25, 35, 45)]
        # Round 1 has the same list, which is not read again; round 2 an equal one, which is read and found equal.
        assert life.relations.taken == 3
        assert [sorted(log.input.versions) for log in logs(life)] == [["r"], [], [], ["r"], []]
        assert [progress.relations["r"]["changed"] for progress in done] == [True, False, False, True, False]
        assert {progress.relations["r"]["version"] for progress in done} == {1, 2}
        assert done[-1].relations["r"] == {**done[-1].relations["r"], "round": 3, "rows": 2}
    assert case.rows("q") == {10: [("a", 1, 1)], 20: [("a", 1, 1)], 30: [("a", 2, 11)], 40: [("a", 2, 11)]}


def test_a_round_that_closes_no_window_of_its_queries_does_not_look(tmp_path: Path) -> None:
    case = Case(tmp_path, [version(("a", number)) for number in range(6)])
    with case.life({"q": INNER}) as life:
        for tick in (5, 6, 7, 12, 13, 25):
            life.round({"s": [tuple_at(tick)]})
        # In the first round nothing is known of ends yet; then 10 is passed in round 3, and 20 in round 5.
        assert life.relations.taken == 3
        assert life.state.versions["r"].number == 3
    assert case.rows("q") == {10: [("a", 3, 9)], 20: [("a", 2, 10)]}


def test_a_relation_that_becomes_empty_matches_nothing_any_more(tmp_path: Path) -> None:
    left = INNER.replace("JOIN", "LEFT JOIN")
    case = Case(tmp_path, [version(("a", 1)), version(("a", 1)), [], version(("b", 2))])
    with case.life({"q": INNER, "l": left}) as life:
        for tick in (5, 15, 25, 35):
            life.round({"s": [tuple_at(tick)]})
    assert case.rows("q") == {10: [("a", 1, 1)]}
    assert case.rows("l") == {10: [("a", 1, 1)], 20: [(None, 1, None)], 30: [(None, 1, None)]}


def test_a_query_that_needs_more_of_a_relation_has_it_read_again_and_sees_it_in_all_its_windows(tmp_path: Path) -> None:
    """Windows of the past, too: a query that is added answers them in its first round, which has one version."""
    more = INNER.replace("sum(b.i)", "max(b.i)")
    case = Case(tmp_path, [version(("a", number)) for number in range(5)])
    with case.life({"q": INNER}) as life:
        for tick in (5, 15):
            life.round({"s": [tuple_at(tick)]})
        assert life.relations.taken == 2
    with case.life({"q": INNER, "late": more}) as life:
        for tick in (25, 35):
            life.round({"s": [tuple_at(tick)]})
    with case.life({"late": more}) as life:
        life.round({"s": [tuple_at(45)]})
    assert case.rows("q") == {10: [("a", 1, 1)], 20: [("a", 1, 2)], 30: [("a", 1, 3)]}
    assert case.rows("late") == {10: [("a", 1, 2)], 20: [("a", 1, 2)], 30: [("a", 1, 3)], 40: [("a", 1, 4)]}


def test_tuples_keep_the_version_that_they_came_with(tmp_path: Path) -> None:
    """A key that is used again means the old thing for old tuples, and the new one for new tuples."""
    versions = [version(("a", 1)), [], version(("a", 2), ("a", 3)), version(("b", 9))]
    case = Case(tmp_path, versions)
    with case.life({"q": CAME}) as life:
        for ticks in ((1, 2), (3,), (4,), (15,)):
            life.round({"s": [tuple_at(tick) for tick in ticks]})
        assert life.state.versions["p"].number == 4
    assert case.rows("q") == {10: [(1, 2), (2, 1), (3, 1), (None, 1)]}


def test_a_query_over_an_enriched_stream_that_is_added_later_is_exact_where_it_says(tmp_path: Path) -> None:
    case = Case(tmp_path, [version(("a", 1))])
    with case.life({"q": PLAIN}) as life:
        life.round({"s": [tuple_at(5)]})
        life.round({"s": [tuple_at(15)]})
    with case.life({"q": PLAIN, "late": CAME}) as life:
        life.round({"s": [tuple_at(18), tuple_at(25)]})
        life.round({"s": [tuple_at(35)]})
    assert case.rows("q") == {10: [(1,)], 20: [(2,)], 30: [(1,)]}
    assert case.rows("late") == {30: [(1, 1)]}, "tuples up to 15 came before anybody joined them"


def test_a_question_sees_the_version_of_the_last_round(tmp_path: Path) -> None:
    case = Case(tmp_path, [version(("a", 1)), version(("a", 2), ("a", 3))])
    other = "SELECT count(*) AS n, min(b.i) AS low FROM s [TUMBLE 10 microseconds] a JOIN r b ON a.k = b.k"
    with case.life({"q": INNER}) as life:
        for tick in (5, 15):
            life.round({"s": [tuple_at(tick)]})
        life.versions.round = 0  # whatever the function would give now
        for text, wanted in ((INNER, [("a", 2, 5)]), (other, [(2, 2)])):
            assert asked(life, registered({"ask": text}).queries["ask"]) == wanted
        assert asked(life, registered({"ask": CAME}).queries["ask"]) == "refused"


def asked(life: MicroBatches, query: Query) -> Any:
    registry = registered({"ask": query.text})
    alone = make_plan(registry.sources, [query], registry.types(), PlanOptions(), PlanningFacts())
    with life.loop.snapshot() as snapshot:
        try:
            rows = snapshot.answer(query, alone).rows
        except WindloomError:
            return "refused"
    return [tuple(row.values())[2:] for row in rows.to_pylist()]


def test_the_end_of_all_streams_sees_a_version_too(tmp_path: Path) -> None:
    case = Case(tmp_path, [version(("a", 1)), version(("a", 7))])
    with case.life({"q": INNER}) as life:
        life.round({"s": [tuple_at(5)]})
        done = life.finish()
        assert life.state.frontiers["s"] == TICK_MAX
        assert done.relations["r"]["version"] == 2
    assert case.rows("q") == {10: [("a", 1, 7)]}


def test_a_query_that_is_replaced_and_one_that_comes_back_see_the_version_of_their_rounds(tmp_path: Path) -> None:
    """What is replaced is another query; while nobody reads a relation, nobody looks at it."""
    other = INNER.replace("sum(b.i)", "min(b.i)")
    case = Case(tmp_path, [version(("a", number), ("a", 9)) for number in range(7)])
    lives: list[dict[str, str]] = [{"q": INNER}, {"q": other}, {"plain": PLAIN}, {"q": INNER}]
    types = registered({"q": INNER, "other": other, "plain": PLAIN}).types()
    ticks, looked = iter((5, 15, 25, 35, 45, 55, 65)), []
    for texts, rounds in zip(lives, (2, 1, 2, 2), strict=True):
        with case.life(texts, history_ticks=0, types=types) as life:
            for _ in range(rounds):
                life.round({"s": [tuple_at(next(ticks))]})
            looked.append(life.relations.taken)
            assert ("r" in life.done[-1].relations) == ("q" in texts)
    assert looked == [2, 1, 0, 2]
    found = case.rows("q")
    assert ("a", 2, 10) in found.pop(10)  # where rounds log tuples, what replaces it reports that window once more
    assert found == {20: [("a", 2, 2)], 60: [("a", 2, 15)]}, "the tuple at 45 came while nobody asked for it"


def test_a_version_that_nobody_read_for_a_while_is_logged_once_more(tmp_path: Path) -> None:
    same = version(("a", 1))
    case = Case(tmp_path, [same])
    with case.life({"q": INNER}, snapshot_rounds=100) as life:
        registry = registered({"q": INNER, "plain": PLAIN})
        for tick, names in ((5, ("q",)), (15, ("q",)), (25, ("plain",)), (35, ("q",)), (45, ("q",))):
            life.change({name: registry.queries[name] for name in names})
            life.round({"s": [tuple_at(tick)]})
        assert [sorted(log.input.versions) for log in logs(life)] == [["r"], [], [], ["r"], []]
        assert life.state.versions["r"].number == 1


def test_versions_that_tuples_were_joined_with_are_logged_only_when_they_change(tmp_path: Path) -> None:
    same = version(("a", 1))
    case = Case(tmp_path, [same, same, version(("a", 2)), same])
    with case.life({"q": CAME}, snapshot_rounds=100) as life:
        for tick in (1, 2, 3, 15):
            life.round({"s": [tuple_at(tick)]})
        assert [sorted(log.input.versions) for log in logs(life)] == [["p"], [], ["p"], ["p"]]
    assert case.rows("q") == {10: [(1, 2), (2, 1)]}


def test_after_a_restart_only_a_retroactive_relation_that_is_the_same_keeps_its_version(tmp_path: Path) -> None:
    case = Case(tmp_path, [version(("a", 1))])
    numbers = []
    for ticks in ((5, 15), (25, 35)):
        with case.life({"retroactive": INNER, "not": CAME}) as life:
            for tick in ticks:
                life.round({"s": [tuple_at(tick)]})
            numbers.append({name: life.state.versions[name].number for name in ("r", "p")})
    assert numbers == [{"r": 1, "p": 1}, {"r": 1, "p": 2}]


def test_row_queries_and_kept_tuples_stand_beside_relations(tmp_path: Path) -> None:
    """The store keeps tuples as they came, whatever they are joined with for others."""
    rows = "SELECT k, tick AS at FROM s [TUMBLE 10 microseconds] WHERE k = 'a'"
    case = Case(tmp_path, [version(("a", 1)), version(("a", 2), ("a", 3))])
    with case.life({"q": INNER, "came": CAME, "rows": rows}, tuples=1000) as life:
        life.round({"s": [tuple_at(5), tuple_at(6, "b")]})
        life.round({"s": [tuple_at(15)]})
        life.finish()
        assert life.done[-1].relations.keys() == {"p", "r"}
        assert life.done[0].tuples == {"s": 2}
    assert case.rows("rows") == {10: [("a", 5)], 20: [("a", 15)]}
    assert case.rows("q") == {10: [("a", 2, 5)], 20: [("a", 2, 5)]}
    assert case.rows("came") == {10: [(1, 1), (None, 1)], 20: [(2, 1), (3, 1)]}


def test_a_relation_is_no_figure_of_a_chart() -> None:
    """Streams that are enriched move with the figures of their stream; relations are part of no figure."""
    registry = registered({"q": INNER, "came": CAME})
    (basin,) = basins_of(registry.sources, registry.queries.values(), registry.types(), PlanOptions(), PlanningFacts())
    (enriched,) = basin.enriched
    assert basin.name == "s"
    assert {figure.stream for figure in figures_of(basin)} == {"s", enriched}
    seen = StreamEstimate(Mean(10.0, 1), Mean(2.0, 1))
    estimates = Estimates({"s": seen, enriched: replace(seen, rate=Mean(20.0, 1))}, {})
    wanted = {Figure(FigureKind.RATE, "s"): 30.0, Figure(FigureKind.ROUND, "s"): 4.0}
    moved = with_figures(estimates, basin, wanted).streams
    assert {name: (memory.rate.value, memory.round and memory.round.value) for name, memory in moved.items()} == {
        "s": (30.0, 4.0),
        enriched: (60.0, 4.0),
    }
    plan = basin.plan(estimates)
    assert basin.own(choices_of(plan)) == choices_of(plan)
    assert basin.cost(basin.plan(estimates, choices_of(plan))) == basin.cost(plan)
