"""Turns a WHERE into a predicate: the values of columns for which it is TRUE, in three-valued logic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from windloom.errors import QueryError
from windloom.expressions.literals import column_values, domain_of, literal_order, number_type
from windloom.expressions.typing import operand_type
from windloom.language.sql.binder import Binder
from windloom.language.sql.names import Names, RowScope
from windloom.language.sql.syntax import parse_select
from windloom.language.sql.terms import Precedence, Term, inside
from windloom.language.sql.tokens import SourceText, Span, fold_literals, tokenize
from windloom.model import DataType, Expression, Stream, TypeKind
from windloom.model.predicate import ALWAYS, NEVER, Formula, Predicate, all_of, any_of, atom, negation
from windloom.model.value_sets import EMPTY, IS_FALSE, IS_TRUE, NULL, ORDER, PRESENT, TRUTH, Subject, ValueSet, union

_Compared = exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
#: The operator of a comparison after its sides have been exchanged.
_EXCHANGED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LIKES = (exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)
#: Nodes that are true, false or unknown, and that are analysed.
_CONDITIONS = exp.And | exp.Or | exp.Not | exp.Is | exp.In | exp.Between | exp.NullSafeEQ | exp.NullSafeNEQ | _Compared


@lru_cache(maxsize=4_096)
def analyse(where: Expression, stream: Stream) -> Predicate:
    """Return the predicate of a WHERE on the tuples of a stream. What is not understood becomes an opaque condition.

    >>> from windloom.model import DataType
    >>> trades = Stream("trades", {"price": DataType.parse("double"), "volume": DataType.parse("bigint")})
    >>> analyse(Expression("NOT (volume < 6 OR price IN (2, 1, 2)) AND 9 >= volume"), trades).sql
    'price NOT IN (1, 2) AND volume > 5 AND volume < 10'
    """
    source = SourceText(f"SELECT 1 WHERE {where.sql}", "a predicate")
    try:
        tokens = tokenize(source)
        tree = parse_select(fold_literals(tokens, source), source)
        names = Names(stream, (), frozenset())
        binder = Binder(RowScope(names, "WHERE"), source, Span.of(tokens))
        return Predicate.of(_PredicateReader(names, binder).holds(tree.args["where"].this, True))
    except (QueryError, RecursionError):
        return Predicate.opaque(where)  # nested too deeply to analyse


@dataclass(frozen=True, slots=True)
class _Typed:
    """An operand of a comparison, and the type in which it is compared."""

    subject: Subject
    kind: DataType


class _PredicateReader:
    """`holds` is called twice for most conditions: once for TRUE and once for FALSE. Otherwise they are NULL."""

    def __init__(self, names: Names, binder: Binder) -> None:
        self.names = names
        self.binder = binder

    def holds(self, node: exp.Expr, wanted: bool) -> Formula:
        """Return the formula that holds if the condition is TRUE or, if `wanted` is false, if it is FALSE."""
        node = inside(node)
        if isinstance(node, exp.And | exp.Or):
            combine = all_of if isinstance(node, exp.And) == wanted else any_of
            # The operands of a chain, which leans to the left and can be long.
            kind, operands, left = type(node), list[exp.Expr](), inside(node)
            while isinstance(left, kind):
                operands.append(left.expression)
                left = left.this
            return combine([self.holds(part, wanted) for part in (left, *reversed(operands))])
        if isinstance(node, exp.Not):
            return self.holds(node.this, not wanted)
        if isinstance(node, exp.Boolean):
            return ALWAYS if bool(node.this) == wanted else NEVER
        if isinstance(node, exp.Null):
            return NEVER
        if isinstance(node, exp.Is):
            value = node.expression
            is_null = isinstance(value, exp.Null)
            formula = self._is_null(inside(node.this)) if is_null else self.holds(node.this, bool(value.this))
            return formula if wanted else negation(formula)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            return self._null_safe(node, wanted == isinstance(node, exp.NullSafeEQ))
        if isinstance(node, exp.Between):
            low, high = (node.args[key] for key in ("low", "high"))
            parts = self._compare(">=", node.this, low, wanted), self._compare("<=", node.this, high, wanted)
            return (all_of if wanted else any_of)(parts)
        if isinstance(node, exp.In):
            return self._in(node, wanted)
        if type(node) in _OPERATORS:
            return self._compare(_OPERATORS[type(node)], node.this, node.expression, wanted)
        if isinstance(node, _LIKES):
            return self._like(node, wanted)
        return atom(self._condition(node), IS_TRUE if wanted else IS_FALSE)

    # Comparisons ------------------------------------------------------------------------------------------------

    def _compare(self, operator: str, left: exp.Expr, right: exp.Expr, wanted: bool) -> Formula:
        left, right = inside(left), inside(right)
        if isinstance(left, exp.Null) or isinstance(right, exp.Null):
            return NEVER
        if _is_literal(left) and not _is_literal(right):
            left, right, operator = right, left, _EXCHANGED[operator]
        order = literal_order(_written(left), _written(right)) if _is_literal(left) else None
        if order is not None:
            return ALWAYS if (ORDER.compare("=", order) <= ORDER.compare(operator, 0)) == wanted else NEVER
        typed = self._typed(left)
        values = None if typed is None else self._values(operator, typed, right)
        if typed is not None and values is not None:
            return atom(typed.subject, values if wanted else PRESENT & values.complement)
        if isinstance(right, exp.Boolean) and operator in ("=", "<>") and isinstance(left, _CONDITIONS):
            return self.holds(left, (bool(right.this) == wanted) == (operator == "="))
        term, other = self._operand(left), self._operand(right)
        if term.sql > other.sql and not _is_literal(right):
            term, other, operator = other, term, _EXCHANGED[operator]
        columns = tuple(sorted(term.columns | other.columns))
        subject = Subject(term.sql, ORDER, other.sql, columns, is_safe=self._is_safe(left, right))
        values = ORDER.compare(operator, 0)
        return atom(subject, values if wanted else PRESENT & values.complement)

    def _values(self, operator: str, typed: _Typed, right: exp.Expr) -> ValueSet | None:
        """Return values of the left side for which the comparison is TRUE; it is FALSE for all others, except NULL."""
        if self._typed(right) == typed:
            return PRESENT if operator in ("=", "<=", ">=") else EMPTY
        values = column_values([_written(right)], typed.kind)
        return None if values is None else typed.subject.domain.compare(operator, values[0])

    def _in(self, node: exp.In, wanted: bool) -> Formula:
        left = inside(node.this)
        items = [inside(item) for item in node.expressions]
        known = [item for item in items if not isinstance(item, exp.Null)]
        if not known or (not wanted and len(known) < len(items)):
            return NEVER  # if NULL is in the list, no value is certainly not in it
        typed = self._typed(left)
        listed = column_values([_written(item) for item in known], typed.kind) if typed is not None else None
        if typed is not None and listed is not None:
            values = union(typed.subject.domain.compare("=", value) for value in listed)
            return atom(typed.subject, values if wanted else PRESENT & values.complement)
        if len(items) == 1:
            return self._compare("=", left, items[0], wanted)
        kinds = {(item.is_string, number_type(_written(item))) for item in items}
        if len(kinds) == 1 and all(_is_literal(item) for item in items):
            # Literals of one type mean the same in any order.
            node = node.copy()
            node.set("expressions", sorted({item.sql(): item for item in items}.values(), key=str))
        return atom(self._condition(node), IS_TRUE if wanted else IS_FALSE)

    def _null_safe(self, node: exp.Expr, equal: bool) -> Formula:
        left, right = inside(node.this), inside(node.expression)
        if _is_literal(left) or isinstance(left, exp.Null):
            left, right = right, left
        if isinstance(right, exp.Null):
            formula = self._is_null(left)
            return formula if equal else negation(formula)
        typed = self._typed(left)
        values = None if typed is None else self._values("=", typed, right)
        if typed is not None and values is not None:
            formula = atom(typed.subject, values | NULL if self._typed(right) == typed else values)
            return formula if equal else negation(formula)
        term, other = self._operand(left), self._operand(right)
        if term.sql > other.sql and not _is_literal(right):
            term, other = other, term
        columns = tuple(sorted(term.columns | other.columns))
        safe = self._is_safe(left, right)
        subject = Subject(f"{term.sql} <=> {other.sql}", TRUTH, "", columns, is_loose=True, is_safe=safe)
        return atom(subject, IS_TRUE if equal else IS_FALSE)

    # NULL, TRUE, FALSE ------------------------------------------------------------------------------------------

    def _is_null(self, node: exp.Expr) -> Formula:
        if isinstance(node, exp.Null):
            return ALWAYS
        if _is_literal(node):
            return NEVER
        if isinstance(node, _CONDITIONS):
            return negation(any_of([self.holds(node, True), self.holds(node, False)]))
        typed = self._typed(node)
        return atom(self._condition(node) if typed is None else typed.subject, NULL)

    # What is not analysed ---------------------------------------------------------------------------------------

    def _like(self, node: exp.Expr, wanted: bool) -> Formula:
        like = node.this if isinstance(node, exp.Escape) else node
        # `NOT LIKE ALL (…)` is not the negation of `LIKE ALL (…)`: it negates each pattern.
        if like.args.get("negate") and not isinstance(like.expression, exp.Any | exp.All):
            node = node.copy()
            (node.this if isinstance(node, exp.Escape) else node).set("negate", None)
            wanted = not wanted
        return atom(self._condition(node), IS_TRUE if wanted else IS_FALSE)

    def _condition(self, node: exp.Expr) -> Subject:
        """Return an expression as an opaque condition, of which only truth and NULL are known."""
        typed = self._typed(node)
        if typed is not None and typed.subject.domain == TRUTH:
            return typed.subject
        term = self.binder.bind(node)
        safe = isinstance(node, exp.Column) or (
            isinstance(node, exp.Like) and self._is_safe(node.this, node.expression) and "\\" not in term.sql
        )
        loose = term.level < Precedence.BIT_OR
        return Subject(term.sql, TRUTH, "", tuple(sorted(term.columns)), is_loose=loose, is_safe=safe)

    def _typed(self, node: exp.Expr) -> _Typed | None:
        """Return the node as a subject with values in a known order; None if it is not one."""
        term = None if _is_literal(node) else self._operand(node)
        kind = None if term is None else operand_type(term.tree, self.names.stream.columns)
        if kind is not None and kind.kind is TypeKind.BOOLEAN and not isinstance(node, exp.Column | exp.Cast):
            return None  # a condition, which is analysed
        domain = domain_of(kind) if kind is not None else None
        if term is None or kind is None or domain is None:
            return None
        columns = tuple(sorted(term.columns))
        return _Typed(Subject(term.sql, domain, "", columns, is_safe=isinstance(node, exp.Column)), kind)

    def _operand(self, node: exp.Expr) -> Term:
        return self.binder.bind(node).fit(Precedence.BIT_OR)

    def _is_safe(self, left: exp.Expr, right: exp.Expr) -> bool:
        """Return whether Spark can compare the two without an error for any value. Strings read as numbers can fail."""
        kinds: list[TypeKind | None] = []
        for node in (left, right):
            column = self.names.find_node(node)
            text = str(node.this) if isinstance(node, exp.Literal) else ""
            if column is not None and not column[1]:
                kinds.append(self.names.stream.columns[column[0]].kind)
            elif text.startswith("'"):
                kinds.append(TypeKind.STRING)
            else:
                kinds.append({"DATE": TypeKind.DATE, "TIMESTAMP": TypeKind.TIMESTAMP}.get(text.split(" ")[0]))
        return kinds[0] == kinds[1] and kinds[0] not in (None, TypeKind.DECIMAL, TypeKind.OTHER)


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    )


def _written(node: exp.Expr) -> str:
    """Return the text of a literal, with its sign; empty for anything else."""
    if isinstance(node, exp.Boolean):
        return "TRUE" if node.this else "FALSE"
    sign = ""
    while isinstance(node, exp.Paren | exp.Neg):
        sign = {"": "-", "-": ""}[sign] if isinstance(node, exp.Neg) else sign
        node = node.this
    return f"{sign}{node.this}" if isinstance(node, exp.Literal) else ""
