"""Plans for tests of EXPLAIN, made from catalogs without Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support.join_looms import planned, registered
from windloom.engine.registry import Registry
from windloom.engine.views import cost_view
from windloom.explain.costs import CostView
from windloom.explain.json import explain_json
from windloom.explain.picture.picture import explain_svg
from windloom.explain.text import explain_text
from windloom.language.catalog import parse_catalog
from windloom.model import DataType, Query, Relation, Stream, Version
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan

STREAMS = """
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, venue STRING, price DOUBLE, volume BIGINT) TIME ts DELAY 10 seconds;
CREATE STREAM orders (ts TIMESTAMP, customer STRING, amount DECIMAL(10, 2)) TIME ts;
"""

FEW = """
CREATE QUERY avg_1h AS SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY high_1d AS
  SELECT symbol, max(price) AS high, count(*) AS n
  FROM trades [RANGE 1 day SLIDE 10 minutes]
  GROUP BY symbol;
CREATE QUERY vwap AS
  SELECT symbol, sum(price * volume) / sum(volume) AS vwap
  FROM trades [RANGE 450 seconds SLIDE 70 seconds]
  GROUP BY symbol
  HAVING count(*) > 10;
"""

MIXED = (
    FEW
    + """
CREATE QUERY big AS
  SELECT symbol, count(*) AS n FROM trades [RANGE 5 minutes SLIDE 30 seconds OFFSET 7 seconds]
  WHERE volume > 100 GROUP BY symbol;
CREATE QUERY by_venue_7 AS SELECT venue, sum(volume) AS v FROM trades [TUMBLE 7 seconds] GROUP BY venue;
CREATE QUERY by_venue_997 AS SELECT venue, sum(volume) AS v FROM trades [TUMBLE 997 seconds] GROUP BY venue;
CREATE QUERY by_venue_1009 AS SELECT venue, stddev(price) AS d FROM trades [TUMBLE 1009 seconds] GROUP BY venue;
CREATE QUERY revenue AS SELECT sum(amount) AS r FROM orders [RANGE 1 day SLIDE 1 hour];
CREATE QUERY glimpse AS SELECT min(amount) AS low, max(amount) AS high FROM orders [RANGE 5 seconds SLIDE 1 minute];
"""
)

#: Every kind of window.
KINDS = """
CREATE QUERY so_far AS SELECT symbol, sum(volume) AS v FROM trades [LANDMARK SLIDE 1 hour] GROUP BY symbol;
CREATE QUERY today AS SELECT symbol, sum(volume) AS v FROM trades [CUMULATE 1 day SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY avg_1h AS SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY last_1000 AS SELECT symbol, avg(price) AS p FROM trades [ROWS 1000 SLIDE 100] GROUP BY symbol;
CREATE QUERY last_100 AS SELECT symbol, max(price) AS p FROM trades [ROWS 100 SLIDE 70] GROUP BY symbol;
CREATE QUERY own_50 AS
  SELECT symbol, avg(price) AS p FROM trades [PARTITION BY symbol ROWS 50 SLIDE 10] GROUP BY symbol;
"""

#: Every clause EMIT.
EMITS = """
CREATE QUERY early AS
  SELECT symbol, count(*) AS n FROM trades [RANGE 1 hour SLIDE 10 minutes] GROUP BY symbol EMIT EARLY EVERY 10 seconds;
CREATE QUERY changed AS
  SELECT symbol, count(*) AS n FROM trades [RANGE 1 hour SLIDE 10 minutes] GROUP BY symbol EMIT CHANGES;
CREATE QUERY filled AS SELECT symbol, count(*) AS n FROM trades [TUMBLE 10 minutes] GROUP BY symbol EMIT EMPTY;
CREATE QUERY final AS SELECT symbol, count(*) AS n FROM trades [TUMBLE 10 minutes] GROUP BY symbol EMIT FINAL;
"""

SESSIONS = """
CREATE QUERY visits AS
  SELECT symbol, count(*) AS n, avg(price) AS p FROM trades [SESSION GAP 5 minutes] GROUP BY symbol;
CREATE QUERY bought AS SELECT symbol, sum(volume) AS v FROM trades [SESSION GAP 5 minutes] GROUP BY symbol;
CREATE QUERY lulls AS SELECT symbol, sum(volume) AS v FROM trades [SESSION GAP 30 seconds] GROUP BY symbol;
CREATE QUERY avg_1h AS SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
"""

#: Relations of both kinds, alone and together.
RELATIONS = """
CREATE RELATION person (id STRING, city STRING, age INT);
CREATE NONRETROACTIVE RELATION listing (symbol STRING, sector STRING, lot BIGINT);
CREATE QUERY by_city AS
  SELECT p.city, sum(o.amount) AS spent FROM orders [RANGE 1 hour SLIDE 5 minutes] o
  JOIN person p ON o.customer = p.id WHERE p.age > 17 GROUP BY p.city;
CREATE QUERY unknown AS
  SELECT o.customer, count(*) AS n FROM orders [RANGE 1 hour SLIDE 5 minutes] o
  LEFT ANTI JOIN person p ON o.customer = p.id GROUP BY o.customer;
CREATE QUERY by_sector AS
  SELECT l.sector, sum(t.volume * l.lot) AS shares FROM trades [RANGE 1 hour SLIDE 5 minutes] t
  LEFT JOIN listing l ON t.symbol = l.symbol GROUP BY l.sector;
"""


def plan_of_relations(versions: Mapping[str, Version] | None = None) -> Plan:
    """A plan of these, whose types come from our own rules."""

    def no_session() -> Any:
        raise AssertionError("a session was asked for")

    read, registry = parse_catalog(STREAMS + RELATIONS), Registry(no_session)
    registry.streams |= {declared.stream.name: declared.stream for declared in read.streams}
    registry.relations |= {
        declared.stream.name: declared.stream for declared in read.relations if isinstance(declared.stream, Relation)
    }
    registry.queries |= {query.name: query for query in read.parse()}
    known = PlanningFacts(versions=versions or {})
    return make_plan(registry.sources, registry.queries.values(), registry.types(), PlanOptions(), known)


#: Joins beside a plain query: two of one pairing, one that is folded row by row, one of three streams.
JOINS = """
CREATE STREAM visits (ts TIMESTAMP, customer STRING, page STRING, seconds INT) TIME ts DELAY 1 minute;
CREATE QUERY spent AS
  SELECT v.page, sum(o.amount) AS spent, count(*) AS pairs
  FROM orders [RANGE 1 hour SLIDE 5 minutes] o
  JOIN visits [RANGE 30 minutes] v ON o.customer = v.customer
  WHERE v.seconds > 10 GROUP BY v.page HAVING pairs > 1;
CREATE QUERY spent_2h AS
  SELECT v.page, avg(o.amount) AS mean
  FROM orders [RANGE 2 hours SLIDE 10 minutes] o, visits [RANGE 1 hour] v
  WHERE o.customer = v.customer AND v.seconds > 10 GROUP BY v.page;
CREATE QUERY unseen AS
  SELECT count(*) AS n, sum(o.amount) AS lost FROM orders [RANGE 1 hour SLIDE 5 minutes] o
  WHERE NOT EXISTS (SELECT 1 FROM visits [RANGE 1 hour] v WHERE v.customer = o.customer);
CREATE QUERY all_three AS
  SELECT o.customer, count(*) AS n, max(t.price) AS high
  FROM orders [RANGE 1 hour SLIDE 5 minutes] o
  LEFT JOIN visits [RANGE 1 hour] v ON v.customer = o.customer
  JOIN trades [RANGE 15 minutes] t ON t.symbol = o.customer GROUP BY o.customer;
CREATE QUERY by_customer AS
  SELECT customer, sum(amount) AS r FROM orders [RANGE 1 day SLIDE 5 minutes] GROUP BY customer;
"""


ROW_QUERIES = """
CREATE STREAM visits (ts TIMESTAMP, customer STRING, page STRING, seconds INT) TIME ts DELAY 1 minute;
CREATE QUERY large AS SELECT ISTREAM customer, amount FROM orders [TUMBLE 1 minute] WHERE amount > 100;
CREATE QUERY near AS
  SELECT o.customer, o.amount, v.page FROM orders o JOIN visits v WITHIN 30 minutes ON o.customer = v.customer;
CREATE QUERY silent AS
  SELECT customer FROM orders [RANGE 1 hour SLIDE 5 minutes] EXCEPT SELECT customer FROM visits [RANGE 1 hour];
CREATE QUERY per_customer AS
  SELECT customer, count(*) AS n FROM orders [RANGE 1 hour SLIDE 5 minutes] GROUP BY customer;
"""


def joined_plan(catalog: str = JOINS, **options: str) -> Plan:
    """The plan of a catalog with joins, whose types our own rules know."""
    read = parse_catalog(STREAMS + catalog)
    streams = {declared.stream.name: declared.stream for declared in read.streams}
    registry = registered({query.name: query.text for query in read.parse(streams)}, streams)
    return planned(registry, PlanOptions(**options))


def plan_of(catalog: str, *, rates: dict[str, float] | None = None, **options: str) -> Plan:
    read = parse_catalog(STREAMS + catalog)
    streams = {
        declared.stream.name: replace(declared.stream, events_per_second=(rates or {}).get(declared.stream.name))
        for declared in read.streams
    }
    return plan_of_queries(streams, read.parse(streams), **options)


def plan_of_queries(streams: dict[str, Stream], queries: tuple[Query, ...], **options: str) -> Plan:
    """Computed expressions are doubles, which is all these catalogs need."""
    types = {
        query.key_of(expression): streams[query.stream].columns[expression.column]
        if expression.column
        else DataType.parse("double")
        for query in queries
        for expression in query.expressions
    }
    return make_plan(streams, queries, types, PlanOptions(**options), PlanningFacts())


def many_queries(how_many: int) -> str:
    """Queries as in the benchmarks: slides that divide 1000 seconds, ranges of 1 to 50 slides."""
    rng = random.Random(1)
    slides = [slide for slide in range(1, 1001) if 1000 % slide == 0]
    lines = []
    for index in range(how_many):
        slide = rng.choice(slides)
        seconds = slide * rng.randint(1, 50) + rng.choice([0, 0, slide // 2])
        aggregate = rng.choice(["sum(price)", "max(price)", "avg(price)", "count(*)"])
        window = f"[RANGE {seconds} seconds SLIDE {slide} seconds]"
        lines.append(
            f"CREATE QUERY q{index:03} AS SELECT symbol, {aggregate} AS a FROM trades {window} GROUP BY symbol;"
        )
    return "\n".join(lines)


CONSTANTS = replace(load_constants(), source="of the tests")


def costs_of(plan: Plan, cost: str = "seconds") -> CostView:
    return cost_view(plan, cost, CONSTANTS)


def text_of(plan: Plan, cost: str = "seconds", *, all_queries: bool = False, query: str | None = None) -> str:
    return explain_text(plan, costs_of(plan, cost), all_queries=all_queries, query=query)


def json_of(plan: Plan, cost: str = "seconds") -> dict[str, Any]:
    return explain_json(plan, costs_of(plan, cost))


def svg_of(plan: Plan, cost: str = "seconds") -> str:
    return explain_svg(plan, costs_of(plan, cost))
