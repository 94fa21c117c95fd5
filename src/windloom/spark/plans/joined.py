"""DataFrames that join the answers of windows, as one aggregation over what they read.

Two aggregations over the same windows and groups of the same data, joined on the window and all groups, are one: its
row is a row of a side if tuples pass what is below that side (FILTER), and the row what is above it (HAVING).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windloom.spark.plans.jvm import Java, JavaNode, column_of, kind_of, place_of, shown
from windloom.spark.plans.written import RefusedPlanError, WrittenWindow, all_of

_JOINS = ("INNER", "LEFT OUTER", "RIGHT OUTER", "LEFT SEMI", "LEFT ANTI")
_WORKS = (
    "register each side by itself, and join the answers: results['a'].join(results['b'], ['window', …]); they are "
    "one query if they read the same data in the same windows, and the join is on the window and all groups"
)


@dataclass(frozen=True)
class AnswerSide:
    """An aggregation over windows, and what is above it up to a join; `where` and `having` are from below it."""

    above: Sequence[JavaNode]
    aggregate: JavaNode
    window: WrittenWindow
    delay: tuple[str, int] | None
    where: tuple[str, ...]
    having: tuple[str, ...]

    @property
    def top(self) -> JavaNode:
        return self.above[0] if self.above else self.aggregate


@dataclass(frozen=True)
class AnswerJoin:
    """A join of answers, and what is above it."""

    above: Sequence[JavaNode]
    node: JavaNode
    left: AnswerSide | AnswerJoin
    right: AnswerSide | AnswerJoin

    @property
    def top(self) -> JavaNode:
        return self.above[0] if self.above else self.node

    @property
    def kind(self) -> str:
        return str(self.node.plan.joinType().sql())


def sides_of(tree: AnswerSide | AnswerJoin) -> Iterator[AnswerSide]:
    """Return the aggregations of a tree of joins."""
    if isinstance(tree, AnswerSide):
        yield tree
    else:
        yield from sides_of(tree.left)
        yield from sides_of(tree.right)


def check_sides(tree: AnswerSide | AnswerJoin, reads_same: Sequence[bool]) -> None:
    """Raise unless all sides read the same data, as `reads_same` tells of all but the first, in the same windows."""
    if isinstance(tree, AnswerSide):
        return
    first, *others = sides_of(tree)
    for side, is_same in zip(others, reads_same, strict=True):
        if not is_same:
            raise refused(tree, "its sides read different data")
        if (side.window, side.delay) != (first.window, first.delay) or side.window.function != "window":
            raise refused(tree, f"its sides have the windows {first.window.call('t')} and {side.window.call('t')}")


def refused(join: AnswerJoin, why: str) -> RefusedPlanError:
    condition = join.node.plan.condition()
    place = None if condition.isEmpty() else place_of(iter([condition.get()]))
    return RefusedPlanError(
        "the plan node 'Join' cannot stand above a window here", f"{why}: {shown(join.node.plan)}", _WORKS, place
    )


def keys_of(join: AnswerJoin, meanings: Mapping[int, str], groups: Sequence[str]) -> list[str]:
    """Return the conditions that a row of one side meets if it can have a partner; raise if other columns are joined.

    `=` never matches NULL.
    """
    if join.kind not in _JOINS:
        raise refused(join, f"it is a join of kind {join.kind}")
    condition = join.node.plan.condition()
    equated, matching = set(), []
    for left, right, takes_nulls in [] if condition.isEmpty() else _pairs(join, condition.get()):
        if meanings.get(left) != meanings.get(right):
            raise refused(join, "it equates different columns")
        equated.add(key := meanings[left])
        if not takes_nulls and key in groups:
            matching.append(f"{key} IS NOT NULL")
    if equated != {"window", *groups}:
        missing = sorted({"window", *groups} - equated)
        raise refused(join, f"it is not on {' and '.join(missing)}" if missing else "it is on more than the groups")
    return matching


def _pairs(join: AnswerJoin, condition: Java) -> Iterator[tuple[int, int, bool]]:
    kind = kind_of(condition)
    if kind == "And":
        yield from _pairs(join, condition.left())
        yield from _pairs(join, condition.right())
    elif kind in ("EqualTo", "EqualNullSafe") and all(
        kind_of(each) == "AttributeReference" for each in (condition.left(), condition.right())
    ):
        left, right = (column_of(str(each.toString()))[1] for each in (condition.left(), condition.right()))
        yield left, right, kind == "EqualNullSafe"
    else:
        raise refused(join, "it has a condition that is no equality of columns")


def kept(kind: str, left: Sequence[str], right: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the conditions of the rows of a join; those of its sides are given."""
    match kind:
        case "LEFT OUTER":
            return list(left)
        case "RIGHT OUTER":
            return list(right)
        case "LEFT ANTI":
            matching = [*right, *keys]
            return [*left, f"NOT coalesce({all_of(matching)}, FALSE)" if matching else "FALSE"]
    return [*left, *right, *keys]


def optional_side(join: AnswerJoin) -> AnswerSide | AnswerJoin | None:
    """Return the side whose columns are NULL in rows without a partner."""
    return {"LEFT OUTER": join.right, "RIGHT OUTER": join.left}.get(join.kind)
