"""Choices drawn at random: everything that can be switched between two rounds, as the registries have it."""

from __future__ import annotations

import random

from windloom.kernels.techniques.registry import allowed
from windloom.optimizer.adapt.candidates import SWITCHES
from windloom.plan.costs import Choices, TreeChoice
from windloom.plan.plan import PartialSet, Plan


def any_choices(plan: Plan, rng: random.Random) -> Choices:
    """Any trees, any permitted technique for every component, any option of every switch."""
    trees = [tree for partial_set in plan.sets for tree in _any_trees(partial_set, rng)]
    options = {
        switch.name: {about: rng.choice(list(switch.options(plan, about))) for about in switch.in_force(plan)}
        for switch in SWITCHES.values()
    }
    return Choices.of(trees, options)


def _any_trees(partial_set: PartialSet, rng: random.Random) -> list[TreeChoice]:
    members: dict[int, list[str]] = {}
    for planned in partial_set.queries:
        members.setdefault(rng.randrange(3), []).append(planned.name)
    techniques = {str(part.component): allowed(part.family) for part in partial_set.components}
    return [
        TreeChoice(tuple(sorted(names)), tuple(sorted((part, rng.choice(found)) for part, found in techniques.items())))
        for names in members.values()
    ]
