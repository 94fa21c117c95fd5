"""A join as a test describes it, and the same join in every language: CQL, SQL over windows, the model's values.

The model's values are made here by hand, without the language, so that oracles can be tested alone, and so that what
the language makes of a text can be compared with something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windloom.model import (
    Aggregate,
    Expression,
    Grouping,
    LandmarkWindow,
    Output,
    Query,
    TimeWindow,
    VersionWindow,
    Window,
)
from windloom.model.join import Join, KeyPair, Link, Side, WindowedStream
from windloom.model.stream import JoinKind

WORDS = {
    JoinKind.INNER: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}


@dataclass(frozen=True)
class Read:
    """One source: a stream, an alias, and the length of its windows in units; None if they are landmark windows.

    A relation has no windows, whatever the length.
    """

    stream: str
    alias: str
    length: int | None
    is_relation: bool = False


@dataclass(frozen=True)
class Residual:
    """A condition on pairs, as text with the places {p} and {c}, and the one column of each that it reads."""

    text: str
    parent: str
    child: str

    def over(self, parent: str, child: str) -> str:
        return self.text.format(p=parent, c=child)


@dataclass(frozen=True)
class Hung:
    """A source that is joined to an earlier one. Keys are (column of the parent, column of the child, null-safe)."""

    kind: JoinKind
    parent: str
    child: Read
    keys: tuple[tuple[str, str, bool], ...]
    residual: Residual | None = None
    condition: str | None = None  # on the child alone, with the place {c}

    def on(self) -> str:
        parent, child = self.parent, self.child.alias
        parts = [f"{parent}.{own} {'<=>' if safe else '='} {child}.{other}" for own, other, safe in self.keys]
        parts += [] if self.residual is None else [f"{self.residual.over(parent, child)}"]
        parts += [] if self.condition is None else [self.condition.format(c=child)]
        return " AND ".join(parts)


@dataclass(frozen=True)
class Asked:
    """A join query. `where` are (alias, condition with the place {c}), `groups` (alias, column)."""

    first: Read
    slide: int
    offset: int
    hung: tuple[Hung, ...]
    where: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...]
    aggregates: tuple[Aggregate, ...]
    having: tuple[str, int] | None = None  # an operator and a number that count(*) is compared with

    @property
    def reads(self) -> tuple[Read, ...]:
        return (self.first, *(hung.child for hung in self.hung))

    @property
    def is_landmark(self) -> bool:
        return any(read.length is None and not read.is_relation for read in self.reads)

    @property
    def end_residue(self) -> int:
        """Where windows end, modulo the slide."""
        return (self.offset + (self.first.length or 0)) % self.slide

    def window(self, read: Read, unit: int = 1) -> Window:
        """The windows of a source, which end where those of the first one do."""
        if read.is_relation:
            return VersionWindow()
        if read.length is None:
            return LandmarkWindow(self.slide * unit, self.end_residue * unit)
        return TimeWindow(read.length * unit, self.slide * unit, (self.end_residue - read.length) * unit)

    # ---- CQL ----------------------------------------------------------------------------------------------------

    def cql(self, unit: str = "microseconds", style: str = "on") -> str:
        """`style` is one of `on`, `comma` (inner joins only), `exists` (for semi and anti joins) and `full`.

        With `full`, every source says all of its window, not only its length.
        """
        sources = [f"{self.first.stream} {self._bracket(self.first, unit)} AS {self.first.alias}"]
        conditions = [text.format(c=alias) for alias, text in self.where]
        for hung in self.hung:
            bracket = self._bracket(hung.child, unit) if style == "full" else self._short(hung.child, unit)
            source = f"{hung.child.stream} {bracket} AS {hung.child.alias}"
            if style == "comma" and hung.kind is JoinKind.INNER:
                sources.append(f", {source}")
                conditions.append(hung.on())
            elif style == "exists" and hung.kind in (JoinKind.SEMI, JoinKind.ANTI):
                word = "EXISTS" if hung.kind is JoinKind.SEMI else "NOT EXISTS"
                conditions.append(f"{word} (SELECT 1 FROM {source} WHERE {hung.on()})")
            else:
                sources.append(f" {WORDS[hung.kind]} {source} ON {hung.on()}")
        return self._select("".join(sources), conditions)

    def _bracket(self, read: Read, unit: str) -> str:
        if read.is_relation:
            return ""
        window = self.window(read)
        offset = f" OFFSET {window.offset_ticks} {unit}" if window.offset_ticks else ""
        if read.length is None:
            return f"[LANDMARK SLIDE {self.slide} {unit}{offset}]"
        return f"[RANGE {read.length} {unit} SLIDE {self.slide} {unit}{offset}]"

    def _short(self, read: Read, unit: str) -> str:
        return self._bracket(read, unit) if read.length is None else f"[RANGE {read.length} {unit}]"

    def _select(self, sources: str, conditions: list[str]) -> str:
        items = [f"{alias}.{column} AS g{i}" for i, (alias, column) in enumerate(self.groups)]
        items += [f"{aggregate} AS o{i}" for i, aggregate in enumerate(self.aggregates)]
        text = f"SELECT {', '.join(items)} FROM {sources}"
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        if self.groups:
            text += f" GROUP BY {', '.join(f'{alias}.{column}' for alias, column in self.groups)}"
        if self.having is not None:
            text += f" HAVING count(*) {self.having[0]} {self.having[1]}"
        return text

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def from_sql(self, source: Callable[[Read], str]) -> str:
        """FROM and WHERE of SQL, if each source is a table that has every tuple once for each end, `__e`."""
        text = f"FROM {source(self.first)} AS {self.first.alias}"
        for hung in self.hung:
            ends = "" if hung.child.is_relation else f"{self.first.alias}.__e = {hung.child.alias}.__e AND "
            text += f" {WORDS[hung.kind]} {source(hung.child)} AS {hung.child.alias} ON {ends}{hung.on()}"
        conditions = [text.format(c=alias) for alias, text in self.where]
        return text + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    # ---- the model's values -------------------------------------------------------------------------------------

    def query(self, name: str = "q", unit: int = 1) -> Query:
        """The query without what a fold needs (components); ends and kinds must make the order of joins irrelevant."""
        grouped = {read.alias: self._grouped(read.alias) for read in self.reads}
        places = {read.alias: i for i, read in enumerate(self.reads)}
        sides = [self._side(read, grouped[read.alias], unit) for read in self.reads]
        links = [
            Link(
                places[hung.parent],
                places[hung.child.alias],
                hung.kind,
                tuple(
                    KeyPair(grouped[hung.parent].index(parent), grouped[hung.child.alias].index(child), safe)
                    for parent, child, safe in hung.keys
                ),
                self._residual(hung, grouped),
            )
            for hung in self.hung
        ]
        groups = tuple((places[alias], grouped[alias].index(column)) for alias, column in self.groups)
        asked = self.aggregates
        having = None
        if self.having is not None:
            count = Aggregate("count")
            asked = asked if count in asked else (*asked, count)
            having = Expression(f"__a{asked.index(count)} {self.having[0]} {self.having[1]}")
        return Query(
            name,
            Join(tuple(sides), tuple(links), groups, ()),
            None,
            tuple(
                Grouping(f"g{i}", Expression(f"{alias}.{column}", (f"{alias}.{column}",)))
                for i, (alias, column) in enumerate(self.groups)
            ),
            asked,
            tuple(Output(f"o{i}", i) for i in range(len(self.aggregates))),
            having,
            self.cql(),
        )

    def _grouped(self, alias: str) -> list[str]:
        columns = {column for own, column in self.groups if own == alias}
        for hung in self.hung:
            if alias == hung.parent:
                columns |= {parent for parent, _, _ in hung.keys}
                columns |= {hung.residual.parent} if hung.residual is not None else set()
            if alias == hung.child.alias:
                columns |= {child for _, child, _ in hung.keys}
                columns |= {hung.residual.child} if hung.residual is not None else set()
        return sorted(columns)

    def _side(self, read: Read, grouped: list[str], unit: int) -> Side:
        conditions = [text for alias, text in self.where if alias == read.alias]
        conditions += [
            hung.condition for hung in self.hung if hung.child.alias == read.alias and hung.condition is not None
        ]
        where = " AND ".join(condition.replace("{c}.", "") for condition in conditions)
        return Side(
            WindowedStream(read.stream, self.window(read, unit), read.alias),
            Expression(where) if where else None,
            None,
            tuple(Expression.of_column(column) for column in grouped),
            (),
        )

    def _residual(self, hung: Hung, grouped: dict[str, list[str]]) -> Expression | None:
        if hung.residual is None:
            return None
        parent = f"__p{grouped[hung.parent].index(hung.residual.parent)}"
        child = f"__c{grouped[hung.child.alias].index(hung.residual.child)}"
        text = hung.residual.text.replace(f"{{p}}.{hung.residual.parent}", parent)
        return Expression(text.replace(f"{{c}}.{hung.residual.child}", child), (parent, child))
