"""The two ways to show the cost of a plan: predicted seconds, or the operations that the papers count."""

from __future__ import annotations

from windloom.errors import WindloomError, near_names
from windloom.explain import explain_svg
from windloom.explain.costs import CostView, PaperView, SecondsView
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.paper import paper_costs
from windloom.optimizer.estimate import estimate_plan
from windloom.plan.physical import Plan

COSTS = ("seconds", "paper")


def check_cost(name: str) -> None:
    if name not in COSTS:
        fact = "a plan costs predicted seconds, or operations as the papers count them"
        raise WindloomError(f"unknown cost '{name}'", fact, near_names(name, list(COSTS)))


def check_view(cost: str, format: str, query: str | None, *, sharing: bool) -> None:
    """Raise for options that cannot be shown together, before a plan is made."""
    check_cost(cost)
    refused = None
    if sharing and cost != "seconds":
        refused = f"sharing cannot be shown with cost '{cost}'", "it is predicted in seconds"
    elif sharing and (query is not None or format == "svg"):
        how = "as a picture" if format == "svg" else "of one query"
        refused = f"sharing cannot be shown {how}", "it compares all queries, as text or JSON"
    elif query is not None and format != "text":
        refused = f"query '{query}' cannot be shown as {format}", "one query is shown as text"
    if refused is not None:
        raise WindloomError(*refused, "leave one of the two out")


def cost_view(plan: Plan, name: str, constants: Constants) -> CostView:
    check_cost(name)
    if name == "paper":
        return PaperView(plan, paper_costs(plan))
    return SecondsView(plan, estimate_plan(plan, constants))


def picture_of(plan: Plan) -> str:
    """Return the plan as notebooks show it."""
    return explain_svg(plan, cost_view(plan, "seconds", load_constants()))


Plan.drawn = picture_of
