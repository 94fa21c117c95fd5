"""Queries: listed, tried, added, replaced, removed; and questions that are asked once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path

from windloom.engine.handle import Change
from windloom.engine.results import unknown_query
from windloom.errors import QueryError
from windloom.explain.costs import work
from windloom.service.models import (
    Answered,
    Changed,
    DryRun,
    Name,
    NewQuery,
    QueryDetail,
    QueryList,
    QueryRow,
    QueryText,
    Question,
    RefusedError,
    RejectedQuery,
    problem_of,
)
from windloom.service.service import MayChange, MayRead, Served, Service
from windloom.service.stored_answers import as_rows


def query_places(plan: Mapping[str, Any], costs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return streams, window and trees of each query, and the rows per second of event time it is expected to write.

    The graph of the plan has everything that feeds an answer, including joins. `plan` is EXPLAIN as JSON, `costs` the
    sharing report as JSON.
    """
    nodes = {node["id"]: node for node in plan["nodes"]}
    behind: dict[str, dict[str, None]] = {}  # ids of all nodes that feed a node, in order
    for node in plan["nodes"]:
        fed = behind[node["id"]] = {}
        for each in node["inputs"]:
            fed |= behind[each] | {each: None}
    # Rows per second of queries with a slide and a known number of groups: a row per group and slide.
    groups = {cost["number"]: cost["statistics"]["groups"] for cost in costs["sets"]}
    rates, windows = {}, {}
    for partial_set in plan["sets"]:
        for query in (query for tree in partial_set["trees"] for query in tree["queries"]):
            windows[query["name"]] = query["window"]["text"]
            if query["window"]["kind"] in ("range", "landmark") and partial_set["number"] in groups:
                rates[query["name"]] = groups[partial_set["number"]] * 1e6 / query["window"]["slide_ticks"]
    windows |= {planned["name"]: planned["window"] for planned in (*plan["joins"], *plan["rows"])}
    trees = {
        (partial_set["number"], tree["number"]): tree["name"]
        for partial_set in plan["sets"]
        for tree in partial_set["trees"]
    }
    places = {}
    for node in (node for node in plan["nodes"] if node["kind"] == "answer"):
        name, fed_by = node["query"], [nodes[each] for each in behind[node["id"]]]
        places[name] = {
            "streams": [fed_node["stream"] for fed_node in fed_by if fed_node["kind"] == "stream"],
            "window": windows.get(name, ""),
            "trees": [trees[fed_node["set"], fed_node["tree"]] for fed_node in fed_by if fed_node["kind"] == "tree"],
            "rows_per_second": rates.get(name),
        }
    return places


router = APIRouter(tags=["queries"])

_GIVEN_NAME = re.compile(r"^query '(what if\?*|ask)': ")

Named = Annotated[Name, Path()]


@router.get("/queries", dependencies=[MayRead])
def list_queries(service: Served) -> QueryList:
    """All queries with their place in the plan and their predicted cost; and the wrong queries of the catalog."""
    loom = service.loom
    known = _known(service)
    # A query that was added meanwhile is in the next list.
    rows = [QueryRow(name=name, text=text, **known[name]) for name, text in loom.queries.items() if name in known]
    rejected = [
        RejectedQuery(name=refused.name, text=refused.text, error=problem_of(refused.error))
        for refused in loom.rejected
        if refused.name not in loom.queries
    ]
    return QueryList(queries=rows, rejected=rejected)


@router.post("/queries", dependencies=[MayChange], status_code=201)
def add_query(body: NewQuery, service: Served) -> Changed:
    """Add a query; it takes part from the next round on."""
    with service.working():
        _check_cost(service, body.text, body.name)
        return _changed(service, service.loom.add(body.name, body.text))


@router.post("/queries/dry-run", dependencies=[MayRead])
def try_query(body: QueryText, service: Served) -> DryRun:
    """The cost of a query in addition to the running ones, and the first window in which it would be complete."""
    with service.working(), _nameless():
        cost = service.loom.what_if(body.text)
    most = service.limits.max_cost
    allowed = most is None or cost.added <= most
    return DryRun(**cost.as_dict(), place=cost.place, summary=cost.summary, allowed=allowed, max_cost=most)


@router.get("/queries/{name}", dependencies=[MayRead])
def show_query(name: Named, service: Served) -> QueryDetail:
    """The text of a query, its place and cost, and how it is answered."""
    text = _text(service, name)
    with service.working():
        explain = service.loom.explain(name)
        return QueryDetail(name=name, text=text, explain=explain, **_known(service)[name])


@router.put("/queries/{name}", dependencies=[MayChange])
def replace_query(name: Named, body: QueryText, service: Served) -> Changed:
    """Replace a query by another one."""
    _text(service, name)
    with service.working():
        _check_cost(service, body.text, name)
        return _changed(service, service.loom.replace(name, body.text))


@router.delete("/queries/{name}", dependencies=[MayChange])
def remove_query(name: Named, service: Served) -> Changed:
    """Remove a query; its answers stay in the sink."""
    _text(service, name)
    with service.working():
        return _changed(service, service.loom.remove(name))


@router.post("/ask", dependencies=[MayRead])
def ask(body: Question, service: Served) -> Answered:
    """Answer a query once, from the partials that are kept; nothing is registered."""
    with service.working(), _nameless():
        answer = service.loom.ask(body.text, latest=body.latest)
        table = answer.table.slice(max(0, answer.table.num_rows - service.limits.rows))
        return Answered(
            **as_rows(table).model_dump(),
            watermark=answer.watermark,
            complete_from=answer.complete_from,
            round=answer.round,
            staleness=answer.staleness,
        )


@contextmanager
def _nameless() -> Iterator[None]:
    """Remove the provisional name from the errors of a query that has no name yet."""
    try:
        yield
    except QueryError as error:
        raise QueryError(_GIVEN_NAME.sub("", error.message), error.detail, error.hint) from None


def _text(service: Service, name: str) -> str:
    queries = service.loom.queries
    if name not in queries:
        raise unknown_query(name, list(queries))
    return queries[name]


def _changed(service: Service, change: Change) -> Changed:
    service.queries_changed()
    return Changed(query=change.query, round=change.round, complete_from=change.complete_from, warning=change.warning)


def _check_cost(service: Service, text: str, name: str) -> None:
    most = service.limits.max_cost
    if most is None:
        return
    cost = service.loom.what_if(text)
    if cost.added > most:
        raise RefusedError(
            422,
            f"query '{name}' costs too much",
            f"it is predicted to add {work(cost.added)} of event time, and {work(most)} is allowed",
            "share a window, predicate or grouping with a running query, or raise --max-cost",
        )


def _known(service: Service) -> dict[str, dict[str, Any]]:
    """Return place and cost of each query; no cost if the sharing report does not have the query."""
    costs = service.loom.costs()
    return {
        name: {**query_place, **{key: costs["queries"].get(name, {}).get(key) for key in ("seconds", "share", "alone")}}
        for name, query_place in query_places(service.loom.plan(), costs).items()
    }
