"""The plan as a graph: what stands in it, and what follows what."""

from __future__ import annotations

from collections import Counter

import pytest

from golden.plans import FEW, KINDS, MIXED, json_of, plan_of
from windloom.plan.graph import AnswerNode, PlanGraph, PlanNode, SetNode, TreeNode, graph_of

PLANS = {"few": FEW, "kinds": KINDS, "mixed": MIXED}


@pytest.mark.parametrize("name", PLANS)
def test_everything_of_a_plan_is_a_node_with_its_inputs_before_it(name: str) -> None:
    plan = plan_of(PLANS[name])
    graph = graph_of(plan)
    assert Counter(node.kind for node in graph.nodes) == {
        "stream": len(plan.streams),
        "scan": len(plan.scans),
        "set": len(plan.sets),
        "tree": sum(1 for _ in plan.trees),
        "answer": sum(1 for _ in plan.queries),
    }
    place = {node.id: number for number, node in enumerate(graph.nodes)}
    assert all(place[left] < place[right] for left, right in graph.edges)
    assert {node.kind for node in graph.roots} == {"stream"}


def test_a_node_knows_whom_it_feeds() -> None:
    plan = plan_of(MIXED)
    graph = graph_of(plan)
    for node in graph.nodes:
        assert all(node in graph.consumers_of(each) for each in graph.inputs_of(node))
    (answer,) = (node for node in graph.behind(graph["stream:orders"]) if node.id == "answer:glimpse")
    assert isinstance(answer, AnswerNode)
    (tree,) = graph.inputs_of(answer)
    assert isinstance(tree, TreeNode)
    assert answer.planned in tree.tree.queries
    assert not any(node.id == "answer:avg_1h" for node in graph.behind(graph["stream:orders"]))


def test_a_set_that_no_tuple_can_be_part_of_has_no_inputs() -> None:
    never = FEW + "CREATE QUERY never AS SELECT count(*) AS n FROM trades [TUMBLE 1 h] WHERE volume > 1 AND volume < 1;"
    graph = graph_of(plan_of(never))
    (alone,) = (node for node in graph.roots if isinstance(node, SetNode))
    assert [node.id for node in graph.behind(alone)][-1] == "answer:never"


def test_a_node_may_have_two_inputs() -> None:
    """As the fold of a join will have."""
    graph = PlanGraph(
        (PlanNode("tree:0.0", ()), PlanNode("tree:1.0", ()), PlanNode("fold:0", ("tree:0.0", "tree:1.0")))
    )
    assert [node.id for node in graph.inputs_of(graph["fold:0"])] == ["tree:0.0", "tree:1.0"]
    assert graph.behind(graph["tree:1.0"]) == (graph["fold:0"],)
    with pytest.raises(AssertionError, match="fold:0 stands before one of its inputs"):
        PlanGraph((PlanNode("fold:0", ("tree:0.0",)), PlanNode("tree:0.0", ())))


@pytest.mark.parametrize("name", PLANS)
def test_json_has_the_graph(name: str) -> None:
    plan = plan_of(PLANS[name])
    said = json_of(plan)["nodes"]
    graph = graph_of(plan)
    assert [(node["id"], tuple(node["inputs"])) for node in said] == [(node.id, node.inputs) for node in graph.nodes]
    assert {node["kind"] for node in said} == {"stream", "scan", "set", "tree", "answer"}
