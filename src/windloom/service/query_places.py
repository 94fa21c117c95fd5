"""The place of each query in a plan, from the graph of the plan: everything that feeds its answers, including joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def query_places(plan: Mapping[str, Any], costs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The streams, window and trees of each query, and the rows per second of event time it is expected to write.

    `plan` is EXPLAIN as JSON, `costs` the sharing report as JSON.
    """
    nodes = {node["id"]: node for node in plan["nodes"]}
    behind: dict[str, dict[str, None]] = {}  # ids of all nodes that feed a node, in order
    for node in plan["nodes"]:
        fed = behind[node["id"]] = {}
        for each in node["inputs"]:
            fed |= behind[each] | {each: None}
    # Rows per second of queries with a slide and a known number of groups: a row per group and slide.
    groups = {cost["number"]: cost["statistics"]["groups"] for cost in costs["sets"]}
    rates = {}
    for partial_set in plan["sets"]:
        for query in (query for tree in partial_set["trees"] for query in tree["queries"]):
            if query["window"]["kind"] in ("range", "landmark") and partial_set["number"] in groups:
                rates[query["name"]] = groups[partial_set["number"]] * 1e6 / query["window"]["slide_ticks"]
    windows = _windows(plan)
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


def _windows(plan: Mapping[str, Any]) -> dict[str, str]:
    alone = {query["name"]: query["window"]["text"] for query in _members(plan)}
    return alone | {planned["name"]: planned["window"] for planned in (*plan["joins"], *plan["rows"])}


def _members(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [query for partial_set in plan["sets"] for tree in partial_set["trees"] for query in tree["queries"]]
