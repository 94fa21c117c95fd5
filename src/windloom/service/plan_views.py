"""A plan as the service shows it: data, a picture and costs, without the path of the file with the constants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windloom.engine.costs import cost_view
from windloom.explain import explain_json, explain_svg, explain_text, sharing_json
from windloom.optimizer import report_sharing
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.plan.physical import Plan
from windloom.service.faults import without_paths


def plan_json(plan: Plan) -> Mapping[str, Any]:
    return _plain(explain_json(plan, cost_view(plan, "seconds", _constants())))


def plan_picture(plan: Plan) -> str:
    return explain_svg(plan, cost_view(plan, "seconds", _constants()))


def plan_costs(plan: Plan) -> Mapping[str, Any]:
    """Return the sharing report, which compares every query with every other."""
    return _plain(sharing_json(plan, report_sharing(plan, _constants())))


def query_text(plan: Plan, query: str) -> str:
    return explain_text(plan, cost_view(plan, "seconds", _constants()), query=query)


def _constants() -> Constants:
    constants = load_constants()
    return replace(constants, source=without_paths(constants.source))


def _plain(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values after a conversion to JSON and back, so that everything can be sent."""
    return dict(json.loads(json.dumps(values)))
