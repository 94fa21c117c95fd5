"""The sharing strategies by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Protocol

from windloom.errors import find_named
from windloom.optimizer.sharing.exhaustive import Exhaustive
from windloom.optimizer.sharing.incremental_plan import Incremental
from windloom.optimizer.sharing.insert_then_weave import InsertThenWeave
from windloom.optimizer.sharing.local_search import LocalSearch
from windloom.optimizer.sharing.no_share import NoShare
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.random_trees import RandomTrees
from windloom.optimizer.sharing.reweave import Reweave
from windloom.optimizer.sharing.shared import SharedStrategy
from windloom.optimizer.sharing.tri_weave import TriWeave
from windloom.optimizer.sharing.weave_share import WeaveShare


class Strategy(Protocol):
    """Partitions the queries of a problem into trees."""

    name: str

    def choose(self, problem: SharingProblem) -> Trees: ...


_ALL: tuple[Strategy, ...] = (
    NoShare(),
    SharedStrategy(),
    RandomTrees(),
    InsertThenWeave(),
    WeaveShare(),
    TriWeave(),
    LocalSearch(),
    Incremental(),
    Reweave(),
    Exhaustive(),
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _ALL}


def find_strategy(name: str) -> Strategy:
    return find_named("strategy", name, STRATEGIES, "it says which queries share a tree")
