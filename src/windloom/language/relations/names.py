"""The meaning of names if a stream is enriched with relations: their columns are columns of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from windloom.language.sql.binder import Binder
from windloom.language.sql.join_names import ambiguous, near_columns, no_source
from windloom.language.sql.names import Names, no_column
from windloom.model import Stream


@dataclass(frozen=True, slots=True)
class AttachedNames:
    """A relation that enriches a stream, as a query calls it; `prefix` qualifies its columns in the enriched stream."""

    relation: Stream
    qualifiers: tuple[str, ...]
    prefix: str

    @property
    def label(self) -> str:
        return self.qualifiers[0]

    def is_called(self, name: str) -> bool:
        return name.lower() in (qualifier.lower() for qualifier in self.qualifiers)

    def column(self, name: str) -> str:
        """Return the name that a column of the relation has in the enriched stream."""
        return f"{self.prefix}.{name}"

    def find(self, name: str) -> str | None:
        """Return the column of the enriched stream that a name means."""
        column = self.relation.find_column(name)
        return None if column is None else self.column(column)


@dataclass(frozen=True, slots=True)
class EnrichedNames(Names):
    """`stream` includes the columns of all relations; `base` is the stream without them.

    Columns of `attached` relations can be named. Those of `hidden` ones, which are only searched for a match, cannot.
    `merged` are columns of USING, which need no qualifier and are those of the stream.
    """

    base: Stream = field(default_factory=lambda: Stream("", {}))
    attached: tuple[AttachedNames, ...] = ()
    hidden: tuple[AttachedNames, ...] = ()
    merged: frozenset[str] = frozenset()

    def is_qualified(self, parts: list[exp.Identifier]) -> bool:
        if len(parts) < 2:
            return False
        name = parts[0].name
        is_base = name.lower() in (qualifier.lower() for qualifier in self.qualifiers)
        return is_base or any(attached.is_called(name) for attached in self.attached)

    def find_qualified(self, parts: list[exp.Identifier]) -> tuple[str, list[exp.Identifier]] | None:
        if not self.is_qualified(parts):
            return None
        name = parts[0].name
        owner = next((attached for attached in self.attached if attached.is_called(name)), None)
        column = self.base.find_column(parts[1].name) if owner is None else owner.find(parts[1].name)
        return None if column is None else (column, parts[2:])

    def owners(self, name: str) -> list[tuple[str, str]]:
        base_column = self.base.find_column(name)
        owners = [] if base_column is None else [(self.label, base_column)]
        others = () if owners and name.lower() in self.merged else self.attached
        return owners + [(other.label, column) for other in others if (column := other.find(name)) is not None]

    def written(self, column: str) -> tuple[str, str]:
        for attached in self.attached:
            if column.startswith(f"{attached.prefix}.") and column not in self.base.columns:
                return attached.label, column.removeprefix(f"{attached.prefix}.")
        return self.label, column

    def unknown(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder, known: Sequence[str]) -> Exception:
        name, owners = parts[0], [label for label, _ in self.owners(parts[0].name)]
        if len(parts) == 1 and len(owners) > 1:
            return ambiguous(name.name, owners, node, binder)
        labels = [self.label, *(attached.label for attached in self.attached)]
        columns = [self.written(column) for column in self.stream.columns]
        if self.is_qualified(parts):
            said = f"'{name.name}' has no column '{parts[1].name}'"
            return binder.error(said, parts[1], near_columns(parts[1].name, columns))
        if len(parts) > 1 and any(attached.is_called(name.name) for attached in self.hidden):
            hint = "a SEMI or ANTI JOIN, or EXISTS, only looks into it"
            return binder.error(f"columns of '{name.name}' cannot be named here", name, hint)
        if len(parts) > 1:
            return no_source(name.name, labels, name, binder)
        aliases = [("", alias) for alias in known if alias not in self.stream.columns]
        return no_column(parts, name, node, binder) or binder.error(
            f"unknown column '{name.name}'", name, near_columns(name.name, [*columns, *aliases]).replace("'.", "'")
        )
