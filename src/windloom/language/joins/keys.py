"""Expressions of sides that must be equal: classes of keys, as the equalities of a join imply them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from windloom.errors import WrongJoinError
from windloom.expressions.typing import operand_type
from windloom.language.joins.conditions import Conjunct, Equality
from windloom.language.joins.names import JoinNames
from windloom.language.joins.sides import SideBuilder
from windloom.language.statement import Statement
from windloom.language.terms import Level, Term, cast_term, compose
from windloom.model import DataType, TypeKind

_DOUBLE = DataType.parse("double")


@dataclass(slots=True)
class KeyClass:
    """Expressions that are equal in every row: by side, each with its type if that is known.

    NULL is a value of the class only if no plain equality belongs to it.
    """

    members: dict[int, dict[str, tuple[Term, DataType | None]]] = field(default_factory=dict)
    null_safe: bool = True
    written: list[Conjunct] = field(default_factory=list)

    def absorb(self, other: KeyClass) -> None:
        for side, terms in other.members.items():
            self.members.setdefault(side, {}).update(terms)
        self.null_safe = self.null_safe and other.null_safe
        self.written += other.written

    def kind(self) -> DataType | None:
        """Return the type in which all members are compared; None if unknown, or if they have none in common."""
        kinds = {kind for terms in self.members.values() for _, kind in terms.values()}
        known = {kind for kind in kinds if kind is not None}
        if None in kinds:
            return None
        if len(known) == 1:
            return next(iter(known))
        if {kind.kind for kind in known} == {TypeKind.INTEGER}:
            return max(known, key=lambda kind: kind.bits)
        return _DOUBLE if {kind.kind for kind in known} == {TypeKind.FLOAT} else None

    def key(self, side: int) -> Term:
        """Return the member of a side that is compared, in the type of the class."""
        term, own_kind = next(iter(self.members[side].values()))
        kind = self.kind()
        return term if kind is None or own_kind is None or own_kind == kind else cast_term(term, kind)


class KeyClasses:
    """The classes of several equalities."""

    def __init__(self, equalities: Iterable[Equality], builders: list[SideBuilder], names: JoinNames) -> None:
        self._of: dict[tuple[int, str], KeyClass] = {}
        for equality in equalities:
            key_class = KeyClass({}, equality.null_safe, [equality.conjunct])
            for side, node in zip(equality.sides, equality.nodes, strict=True):
                term = builders[side].bind(node, "the condition of a join")
                kind = operand_type(term.tree, builders[side].stream.columns)
                key_class.members.setdefault(side, {})[term.sql] = (term, kind)
            keys = [(side, sql) for side, terms in key_class.members.items() for sql in terms]
            for known in {id(self._of[key]): self._of[key] for key in keys if key in self._of}.values():
                known.absorb(key_class)
                key_class = known
            for side, terms in key_class.members.items():
                self._of |= {(side, sql): key_class for sql in terms}

    @property
    def classes(self) -> list[KeyClass]:
        return list({id(key_class): key_class for key_class in self._of.values()}.values())

    def of(self, side: int, sql: str) -> KeyClass | None:
        """Return the class of an expression of a side."""
        return self._of.get((side, sql))


def require_equal(key_class: KeyClass, builders: list[SideBuilder]) -> None:
    """Require, in each side, that two expressions of one class are equal."""
    for side, terms in key_class.members.items():
        first, *others = (term for term, _ in terms.values())
        symbol = " <=> " if key_class.null_safe else " = "
        for other in others:
            builders[side].require(compose(Level.COMPARE, first.fit(Level.BIT_OR), symbol, other.fit(Level.BIT_OR)))


def check_types(key_class: KeyClass, names: JoinNames, statement: Statement) -> None:
    """Refuse keys whose types are known and differ in more than their width."""
    typed = [
        (f"{names.labels[side]}: {term.sql}", kind)
        for side, terms in key_class.members.items()
        for term, kind in terms.values()
        if kind is not None
    ]
    if key_class.kind() is None and len(typed) == sum(map(len, key_class.members.values())):
        first = typed[0]
        second = next(each for each in typed if each[1] != first[1])
        refused = statement.error(
            f"the keys of a join must have one type, and these are {first[1]} and {second[1]}",
            key_class.written[-1].node,
            f"cast one of them, for example CAST(… AS {first[1].name.upper()})",
        )
        raise WrongJoinError(refused.message, refused.detail, refused.hint)
    for _, kind in typed:
        if not kind.is_groupable:
            hint = "join on plain values: fields or elements of it, or to_json(…)"
            raise statement.error(f"a key of a join cannot be of type {kind}", key_class.written[-1].node, hint)
