"""EXPLAIN as a picture: well-formed, complete, self-contained, and nothing leaves its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from golden.plans import FEW, KINDS, MIXED, SESSIONS, joined_plan, many_queries, plan_of, plan_of_relations, svg_of
from windloom.explain.picture.canvas import text_width
from windloom.explain.picture.layout import lay_out
from windloom.explain.words import tree_name
from windloom.model import Query, Version
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan

_SVG = "{http://www.w3.org/2000/svg}"

_PREDICATES = "\n".join(
    f"CREATE QUERY over_{limit} AS SELECT count(*) AS n FROM trades [TUMBLE 5 seconds] WHERE volume > {limit};"
    for limit in range(30)
)

#: Windows of rows alone, whose late tuples another scan counts; and a set that no tuple can be part of.
_SPECIAL = """
CREATE QUERY last_9 AS SELECT avg(price) AS p FROM trades [ROWS 9 SLIDE 3];
CREATE QUERY never AS SELECT count(*) AS n FROM orders [TUMBLE 5 seconds] WHERE amount > 1 AND amount < 1;
"""

_JOINS = "\n".join(
    f"CREATE QUERY j{number} AS SELECT count(*) AS n FROM orders [RANGE {number} minutes SLIDE 1 minute] o"
    " JOIN trades [RANGE 1 minute] t ON o.customer = t.symbol;"
    for number in range(1, 31)
)

PLANS: dict[str, Callable[[], Plan]] = {
    "joins": joined_plan,
    "many joins": lambda: joined_plan(_JOINS),
    "few": lambda: plan_of(FEW),
    "few, cutty": lambda: plan_of(FEW, slicing="cutty"),
    "mixed": lambda: plan_of(MIXED, rates={"orders": 250.0}),
    "mixed, apart": lambda: plan_of(MIXED, strategy="no_share", slicing="cutty"),
    "sessions": lambda: plan_of(SESSIONS),
    "kinds": lambda: plan_of(KINDS),
    "special": lambda: plan_of(_SPECIAL),
    "relations": lambda: plan_of_relations({"person": Version(3, 12, 4_711, 98_304)}),
    "many": lambda: plan_of(many_queries(150)),
    "many, apart": lambda: plan_of(many_queries(150), strategy="no_share"),
    "many sets": lambda: plan_of(_PREDICATES),
    "empty": lambda: make_plan({}, [], {}, PlanOptions(), PlanningFacts()),
}


@cache
def _made(name: str) -> Plan:
    return PLANS[name]()


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return _made(request.param)


def test_nothing_leaves_the_picture(plan: Plan) -> None:
    root = _parsed(svg_of(plan))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text, left, right, baseline in _texts(root):
        assert left >= 0, text
        assert right <= width, text
        assert 0 < baseline < height, text
    for box in root.iter(f"{_SVG}rect"):
        x, y = float(box.get("x", "0")), float(box.get("y", "0"))
        assert x >= 0
        assert y >= 0
        assert x + float(box.attrib["width"]) <= width
        assert y + float(box.attrib["height"]) <= height


def test_nothing_comes_from_outside(plan: Plan) -> None:
    picture = svg_of(plan).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not [word for word in ("http", "href", "url(", "@import", "<script", "<image") if word in picture]


def test_texts_do_not_lie_on_each_other(plan: Plan) -> None:
    lines: dict[float, list[tuple[float, float, str]]] = {}
    for text, left, right, baseline in _texts(_parsed(svg_of(plan))):
        lines.setdefault(baseline, []).append((left, right, text))
    for line in lines.values():
        line.sort()
        for (_, right, text), (left, _, after) in pairwise(line):
            assert right <= left + 0.2, (text, after)


@pytest.mark.parametrize("name", ["few", "few, cutty", "mixed", "mixed, apart", "kinds", "special", "joins"])
def test_every_stream_scan_set_tree_query_and_join_is_named(name: str) -> None:
    plan = _made(name)
    texts = {text for text, *_ in _texts(_parsed(svg_of(plan)))}
    names = {stream.name for stream in plan.streams} | {f"set {partial_set.number}" for partial_set in plan.sets}
    names |= {f"scan {scan.number}" for scan in plan.scans}
    names |= {tree_name(plan, partial_set, tree) for partial_set in plan.sets for tree in partial_set.trees}
    assert names | {planned.name for planned in plan.queries} <= texts


def test_relations_are_cards_that_tell_their_version_and_size() -> None:
    texts = {text for text, *_ in _texts(_parsed(svg_of(_made("relations"))))}
    assert {"person", "retroactive relation", "version 3, 4,711 rows", "96 KiB kept"} <= texts
    assert {"trades", "+ listing", "joined as tuples come"} <= texts


def test_cards_of_a_column_do_not_lie_on_each_other(plan: Plan) -> None:
    layout = lay_out(plan)
    scans = [scan.card for stream in layout.streams for scan in stream.scans]
    joins = [join.card for join in layout.joins]
    for cards in (scans, [partial_set.card for stream in layout.streams for partial_set in stream.sets], joins):
        ordered = sorted(cards, key=lambda card: card.y)
        assert all(above.y + above.height <= below.y for above, below in pairwise(ordered))


def test_scans_are_beside_their_sets() -> None:
    for stream in lay_out(_made("mixed")).streams:
        for scan in stream.scans:
            assert {each.partial_set.number for each in scan.sets} == {fed.number for fed in scan.scan.feeds}
            assert min(partial_set.card.y for partial_set in scan.sets) <= scan.card.middle
            assert scan.card.middle <= max(partial_set.card.y + partial_set.card.height for partial_set in scan.sets)


@pytest.mark.parametrize("name", ["many", "many, apart"])
def test_queries_without_room_are_counted_and_named_on_hover(name: str) -> None:
    plan = _made(name)
    root = _parsed(svg_of(plan))
    titles = "\n".join(title.text or "" for title in root.iter(f"{_SVG}title"))
    assert all(planned.name in titles for planned in plan.queries)
    assert any(text.startswith("+ ") and "more" in text for text, *_ in _texts(root))


def test_sets_without_room_are_counted() -> None:
    texts = " ".join(text for text, *_ in _texts(_parsed(svg_of(_made("many sets")))))
    assert "+ 18 more sets with 18 trees and 18 queries" in texts


def test_joins_without_room_are_counted_and_sides_lead_to_the_others() -> None:
    plan = _made("many joins")
    texts = " ".join(text for text, *_ in _texts(_parsed(svg_of(plan))))
    assert "+ 6 more joins, not drawn: EXPLAIN as text has them" in texts
    layout = lay_out(plan)
    assert len(layout.joins) == 24
    assert all(len(join.threads) == 2 for join in layout.joins)


def test_edge_rates_and_costs_are_labels() -> None:
    plan = plan_of(FEW)
    texts = [text for text, *_ in _texts(_parsed(svg_of(plan)))]
    assert {"0.0405 edges/s", "cost 0.211 µs/s", "<1 % of the plan", "1,000 events/s"} <= set(texts)
    of_papers = [text for text, *_ in _texts(_parsed(svg_of(plan, "paper")))]
    assert {"cost 0.582 operations/s", "weaveability 8 %"} <= set(of_papers)


def test_markup_and_forbidden_characters_in_names_are_harmless() -> None:
    streams = {stream.name: stream for stream in plan_of(FEW).streams}
    hostile = [_renamed(planned.query, name) for planned, name in zip(plan_of(FEW).queries, _HOSTILE, strict=True)]
    types = {
        query.key_of(expression): streams["trades"].columns.get(expression.sql, streams["trades"].columns["price"])
        for query in hostile
        for expression in query.expressions
    }
    root = _parsed(svg_of(make_plan(streams, hostile, types, PlanOptions(), PlanningFacts())))
    titles = " ".join(title.text or "" for title in root.iter(f"{_SVG}title"))
    assert "<script>alert('&')</script>" in titles


_HOSTILE = ("<script>alert('&')</script>", "nul \x00 and \ud800 and \uffff", "株価の移動平均 " * 20)


def _renamed(query: Query, name: str) -> Query:
    return replace(query, name=name, text=f"-- {name}\n{query.text}")


def _parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def _texts(root: ElementTree.Element) -> Iterator[tuple[str, float, float, float]]:
    """Every text with its left and right end, for the widest font a reader may have, and its baseline."""
    for element in root.iter(f"{_SVG}text"):
        text = element.text or ""
        width = text_width(text, float(element.attrib["font-size"]), "font-weight" in element.attrib)
        shift = {"start": 0.0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
        left = float(element.attrib["x"]) - shift
        yield text, left, left + width, float(element.attrib["y"])
