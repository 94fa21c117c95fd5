"""Turns a SELECT over several sources into a `model.Join`: the query for each side, and how the answers are folded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windloom.language.group_by import Group
from windloom.language.joins.clusters import JoinShape
from windloom.language.joins.conditions import read_conjuncts, sides_of
from windloom.language.joins.folds import Folder
from windloom.language.joins.links import Linker, LinkPlan
from windloom.language.joins.names import JoinNames
from windloom.language.joins.residuals import Parts, group_residual, residual_of
from windloom.language.joins.sides import SideBuilder
from windloom.language.joins.windows import read_windows
from windloom.language.outputs import Answer
from windloom.language.relations.root import with_stream_first
from windloom.language.statement import Statement, windowed
from windloom.model import Join, Link, VersionWindow, Window
from windloom.model.join import KeyPair


@dataclass(frozen=True, slots=True)
class JoinReading:
    """A join whose FROM and WHERE have been read; `statement` has the names that the other clauses may use."""

    statement: Statement
    names: JoinNames
    shape: JoinShape
    builders: list[SideBuilder]

    def taken_apart(self, groups: list[Group], answer: Answer) -> Join:
        """Return the join with these groupings and aggregates."""
        linker = Linker(self.builders, self.names, self.statement)
        linker.link(self.shape.top, 0)
        folder = Folder(self.builders, self.shape.names, self.statement, self.shape.nullable_sides())
        grouped = [self._group(group, folder) for group in groups]
        folded = folder.fold(answer.aggregates)
        pending = [_PendingLink.of(link, self.builders, self.names, self.statement) for link in linker.links]
        # From here on, every side has all of its grouping columns, so their positions are known.
        return Join(
            tuple(builder.build() for builder in self.builders),
            tuple(pending_link.finished(self.builders, self.names, self.statement) for pending_link in pending),
            tuple((side, self.builders[side].position(sql)) for side, sql in grouped),
            folded,
        )

    def _group(self, group: Group, folder: Folder) -> tuple[int, str]:
        """Return the side of a grouping expression, and its text there."""
        sides = sides_of(group.term, self.names)
        if len(sides) > 1:
            owners = " and ".join(f"'{self.names.labels[side]}'" for side in sorted(sides))
            raise self.statement.error(
                f"cannot group by '{group.term.sql}': it is made of columns of {owners}",
                group.named,
                "a side of a join is grouped before they meet; group by the parts of each stream instead",
            )
        side = next(iter(sides), 0)
        term = (
            folder.bind_strictly(side, group.node, "GROUP BY")
            if sides
            else self.builders[0].bind(group.node, "GROUP BY")
        )
        return side, self.builders[side].group(term)


@dataclass(frozen=True, slots=True)
class _PendingLink:
    """A link whose keys and conditions refer to grouping columns by their texts, which have no positions yet."""

    plan: LinkPlan
    keys: tuple[tuple[str, str, bool], ...]
    parts: Parts

    @classmethod
    def of(cls, plan: LinkPlan, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> _PendingLink:
        parent, child = builders[plan.parent], builders[plan.child]
        keys = dict.fromkeys((parent.group(term), child.group(other), safe) for term, other, safe in plan.keys)
        return cls(plan, tuple(keys), group_residual(plan, builders, names, statement))

    def finished(self, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> Link:
        parent, child = builders[self.plan.parent], builders[self.plan.child]
        return Link(
            self.plan.parent,
            self.plan.child,
            self.plan.kind,
            tuple(
                KeyPair(parent.position(parent_key), child.position(child_key), safe)
                for parent_key, child_key, safe in self.keys
            ),
            residual_of(self.plan, self.parts, builders, names, statement),
        )


def read_join(statement: Statement) -> JoinReading:
    """Read windows, conditions and the links between sides."""
    assert isinstance(statement.names, JoinNames)
    names = statement.names
    windows = _windows(statement, names)
    shape = JoinShape(names, statement)
    where = statement.tree.args.get("where")
    shape.require([] if where is None else read_conjuncts(where.this, shape.names, "WHERE", statement))
    for exists in statement.clause.exists:
        shape.look_for(exists)
    if (reordered := with_stream_first(statement, shape)) is not None:
        return read_join(reordered)
    statement = replace(statement, names=shape.names)
    builders = [
        SideBuilder(windowed(names.sides[side].stream, windows[side], source.name), names.sides[side], statement)
        for side, source in enumerate(statement.clause.sides)
    ]
    everything = shape.names.seeing(range(len(builders)))
    return JoinReading(statement, everything, shape, builders)


def _windows(statement: Statement, names: JoinNames) -> list[Window]:
    """Return the window of every side; a relation has its version instead."""
    sides = statement.clause.sides
    windowed = [source for source in statement.clause.sources if not names.is_relation(sides.index(source))]
    windows = read_windows(windowed, statement.source)
    return [
        VersionWindow() if names.is_relation(side) else windows[windowed.index(source)]
        for side, source in enumerate(sides)
    ]
