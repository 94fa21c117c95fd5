"""The choices of a plan as JSON, for its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windloom.plan.choices import Choices, TreeChoice


def write_choices(choices: Choices) -> dict[str, Any]:
    options: dict[str, dict[str, str]] = {}
    for switch, about, option in choices.options:
        options.setdefault(switch, {})[about] = option
    trees = [{"queries": list(tree.queries), "techniques": dict(tree.techniques)} for tree in choices.trees]
    return {"trees": trees, "options": options}


def read_choices(about: Mapping[str, Any]) -> Choices:
    trees = (TreeChoice(tuple(tree["queries"]), tuple(sorted(tree["techniques"].items()))) for tree in about["trees"])
    return Choices.of(trees, about["options"])
