"""The tree of facts: text, JSON and titles read the same facts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from golden.plans import EMITS, KINDS, MIXED, ROW_QUERIES, costs_of, joined_plan, plan_of, plan_of_relations
from windloom.explain import json as json_module
from windloom.explain.node import ExplainNode, Fact, cut_short, node_json, node_lines, node_title, words_only
from windloom.explain.tree import plan_tree
from windloom.plan.plan import Plan

TREE = ExplainNode("Tree 0: 2 queries", [Fact("edges", {"per_second": 2.0}, "2 edges/s", "slices")])
SET = ExplainNode(
    "Set 0",
    [
        Fact("number", 0),
        Fact("cost", 1.5, "1.5 s/s", is_late=True),
        Fact("where", None, "every tuple"),
        words_only("partials", "sum(x)", "count(*)"),
    ],
    [Fact("mergers", [], "no cheaper", "apart from")],
    {"trees": [TREE], "_hidden": [TREE]},
)


def test_json_has_facts_with_a_key_in_their_order_then_reasons_and_children() -> None:
    assert list(node_json(SET).items()) == [
        ("number", 0),
        ("cost", 1.5),
        ("where", None),
        ("mergers", []),
        ("trees", [{"edges": {"per_second": 2.0}}]),
    ]


def test_text_has_facts_with_words_the_late_ones_last_and_each_label_once() -> None:
    assert [line.rstrip() for line in node_lines(SET)] == [
        "Set 0",
        "  where         every tuple",
        "  partials      sum(x)",
        "                count(*)",
        "  cost          1.5 s/s",
        "  apart from    no cheaper",
    ]
    assert list(node_lines(TREE, 2)) == ["  Tree 0: 2 queries", "    slices        2 edges/s"]


def test_a_title_has_the_facts_of_the_text() -> None:
    assert node_title(SET).splitlines() == [
        "Set 0",
        "where: every tuple",
        "partials: sum(x)",
        "count(*)",
        "cost: 1.5 s/s",
        "apart from: no cheaper",
    ]


def test_facts_are_found_by_their_key() -> None:
    assert SET["cost"].value == 1.5
    assert SET["mergers"].first_line == "no cheaper"
    assert SET["number"].first_line == ""


def test_long_lists_are_cut_short() -> None:
    lines = [str(number) for number in range(14)]
    assert cut_short(lines, everything=True) == lines
    assert cut_short(lines, everything=False) == [*lines[:12], "… and 2 more"]
    assert cut_short(lines[:12], everything=False) == lines[:12]


@pytest.mark.parametrize(
    "plan",
    [plan_of(MIXED), plan_of(KINDS), plan_of(EMITS), joined_plan(), joined_plan(ROW_QUERIES), plan_of_relations()],
)
def test_every_key_is_described(plan: Plan) -> None:
    described = set(re.findall(r"\w+", json_module.__doc__ or ""))
    assert set(_keys(plan_tree(plan, costs_of(plan)))) <= described


def _keys(node: ExplainNode) -> Iterator[str]:
    yield from (fact.key for fact in (*node.facts, *node.reasons) if fact.key)
    for key, children in node.children.items():
        yield key
        for child in children:
            yield from _keys(child)
