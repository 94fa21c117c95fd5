"""Turns syntax trees into checked expressions, by an allow-list: a node that is not handled here does not pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from windloom.errors import QueryError, WindloomError, closest, meant
from windloom.expressions import literals
from windloom.expressions.types import BOOLEAN
from windloom.language.sql.syntax import SUPPORTED, UNIT_FIRST, span_of, why_refused
from windloom.language.sql.terms import Precedence, Term, comma_separated, compose, inside
from windloom.language.sql.tokens import UNITS, SourceText, Span
from windloom.model import DataType, Expression
from windloom.model.expression import Apply, ConstantValue, Scalar, apply, cast

_BINARY: dict[type[exp.Expr], tuple[str, Precedence]] = {
    exp.Or: (" OR ", Precedence.OR),
    exp.And: (" AND ", Precedence.AND),
    exp.EQ: (" = ", Precedence.COMPARE),
    exp.NEQ: (" <> ", Precedence.COMPARE),
    exp.LT: (" < ", Precedence.COMPARE),
    exp.LTE: (" <= ", Precedence.COMPARE),
    exp.GT: (" > ", Precedence.COMPARE),
    exp.GTE: (" >= ", Precedence.COMPARE),
    exp.NullSafeEQ: (" <=> ", Precedence.COMPARE),
    exp.BitwiseOr: (" | ", Precedence.BIT_OR),
    exp.BitwiseXor: (" ^ ", Precedence.BIT_XOR),
    exp.BitwiseAnd: (" & ", Precedence.BIT_AND),
    exp.BitwiseLeftShift: (" << ", Precedence.SHIFT),
    exp.BitwiseRightShift: (" >> ", Precedence.SHIFT),
    exp.Add: (" + ", Precedence.ADD),
    exp.Sub: (" - ", Precedence.ADD),
    exp.DPipe: (" || ", Precedence.ADD),
    exp.Mul: (" * ", Precedence.MULTIPLY),
    exp.Div: (" / ", Precedence.MULTIPLY),
    exp.IntDiv: (" DIV ", Precedence.MULTIPLY),
    exp.Mod: (" % ", Precedence.MULTIPLY),
}

_LIKES: dict[type[exp.Expr], str] = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}

_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Star: ("'*' can only stand in count(*)", "name the columns"),
    exp.Select: ("subqueries are not supported", "use one SELECT over one stream"),
    exp.Subquery: ("subqueries are not supported", "use one SELECT over one stream"),
    exp.Exists: ("subqueries are not supported", "use one SELECT over one stream"),
    exp.Window: ("OVER (…) is not supported", "the window of a query is the [RANGE … SLIDE …] after its stream"),
    exp.Distinct: ("DISTINCT is not supported yet", "leave it out, or group by the column in a separate query"),
    exp.Order: ("ORDER BY is not supported in a function", "aggregates take the tuples of a window as a set"),
    exp.Placeholder: ("parameters are not supported", "write the value itself"),
    exp.Parameter: ("parameters are not supported", "write the value itself"),
    exp.SessionParameter: ("parameters are not supported", "write the value itself"),
    exp.Kwarg: ("named arguments are not supported", "give the arguments by position"),
    exp.Cast: ("only DATE, TIME and TIMESTAMP can stand before a text", "write CAST('…' AS type)"),
    exp.AtTimeZone: ("AT TIME ZONE is not Spark SQL", "use from_utc_timestamp(ts, zone) or convert_timezone(…)"),
}

#: Operands that are one unit to readers, whatever they contain: parentheses, and aliases of select items.
_CLOSED = (exp.Paren, exp.Column)

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")

#: What EXTRACT gives as an integer; seconds have a fraction.
_WHOLE_FIELDS = {"year", "quarter", "month", "week", "day", "hour", "minute", "dayofweek", "dow", "doy"}


class Scope(Protocol):
    """The meaning of the names in an expression, and whether it may aggregate."""

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term: ...

    def is_aggregate(self, function: str) -> bool:
        """Return whether this is the lower-case name of an aggregate."""
        ...

    def aggregate(self, call: Call, binder: Binder) -> Term: ...

    def settle(self, term: Term) -> Term:
        """Recognise a grouping expression."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate as written: its lower-case name, its arguments, and what follows them."""

    function: str
    node: exp.Anonymous
    where: exp.Expr | None = None  # the condition of FILTER (WHERE …)
    ignore_nulls: bool | None = None  # True for IGNORE NULLS, False for RESPECT NULLS
    within: exp.Expr | None = None  # the order of WITHIN GROUP (ORDER BY …)


class Binder:
    """Binds one expression tree in a scope, bottom-up."""

    def __init__(self, scope: Scope, source: SourceText, place: Span) -> None:
        self.scope = scope
        self.source = source
        self.place = place  # for errors in nodes that have no place of their own

    def bind(self, node: exp.Expr) -> Term:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            message, hint = _REFUSED.get(type(node), ("this is not supported in an expression", "see docs/language.md"))
            raise self.error(message, node, hint)
        return self.scope.settle(handler(self, node))

    def operand(self, node: exp.Expr, least: Precedence) -> Term:
        """Bind an operand; without parentheses around it, Spark's precedence must agree with the tree."""
        term = self.bind(node)
        if term.level < least and not isinstance(node, _CLOSED):
            raise self.error("the operators can be read in two ways", node, "add parentheses")
        return term.fit(least)

    def error(self, message: str, node: exp.Expr, hint: str) -> QueryError:
        return self.source.error(message, span_of(node, self.place), hint)

    def wrap(self, error: WindloomError, node: exp.Expr) -> QueryError:
        return self.source.wrap(error, span_of(node, self.place))

    def refuse_extras(self, node: exp.Expr, *known: str) -> None:
        """Refuse unknown options of a node: it may carry those of other dialects, which must not pass silently."""
        for key, value in node.args.items():
            if key not in known and value not in (None, False, []):
                raise self.error(f"'{key.strip('_')}' is not supported here", node, "see docs/language.md")

    # Leaves -----------------------------------------------------------------------------------------------------

    def _column(self, node: exp.Expr) -> Term:
        dotted = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
        parts = [part for part in dotted if isinstance(part, exp.Identifier)]
        if len(parts) != sum(part is not None for part in dotted):
            raise self.error("'*' can only stand in count(*)", node, "name the columns")
        return self.scope.column(parts, node, self)

    # Operators --------------------------------------------------------------------------------------------------

    def _binary(self, node: exp.Expr) -> Term:
        """Bind a chain of operators. Chains lean to the left and can be long, so this is a loop, not a recursion."""
        chain: list[exp.Expr] = []
        first: exp.Expr = node
        while type(first) in _BINARY:
            chain.append(first)
            first = first.this
        term, left = self.bind(first), first
        for link in reversed(chain):
            symbol, level = _BINARY[type(link)]
            if term.level < level and not isinstance(left, _CLOSED):
                raise self.error("the operators can be read in two ways", left, "add parentheses")
            right = self.operand(link.expression, Precedence(level + 1))
            name = symbol.strip().lower()
            operands: tuple[Scalar, ...] = (term.tree,)
            if name in ("and", "or") and isinstance(term.tree, Apply) and term.tree.name == name:
                operands = term.tree.operands  # so that long chains are not deep
            tree = apply(name, *operands, right.tree)
            term = self.scope.settle(compose(level, term.fit(level), symbol, right, tree=tree))
            left = link
        return term

    def _unary(self, node: exp.Expr) -> Term:
        operand = self.operand(node.this, Precedence.UNARY)
        if isinstance(node, exp.BitwiseNot):
            return compose(Precedence.UNARY, "~", operand, typed_as=apply("~", operand.tree))
        tree = literals.negative(operand.tree, operand.sql)
        if isinstance(node.this, exp.Paren) and literals.is_narrower(tree, operand.tree):
            operand, tree = (
                replace(operand, sql=f"({operand.sql})", over=f"({operand.over})"),
                apply("negative", operand.tree),
            )
        # Two minus signs in a row would open a comment.
        operand = operand.fit(Precedence.PRIMARY) if operand.sql.startswith("-") else operand
        return compose(Precedence.UNARY, "-", operand, tree=tree)

    def _not(self, node: exp.Expr) -> Term:
        inner = inside(node.this)
        negatable: dict[type[exp.Expr], Callable[..., Term]] = {
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.RegexpLike: self._like,
        }
        # `NOT LIKE ALL (…)` negates each pattern, which is not what NOT before it does.
        quantified = isinstance(inner.args.get("expression"), exp.Any | exp.All)
        if type(inner) in (exp.Like, exp.ILike) and not inner.args.get("negate") and not quantified:
            return self._like(inner, negated=True)
        if type(inner) in negatable:
            return negatable[type(inner)](inner, negated=True)
        operand = self.operand(node.this, Precedence.NOT)
        return compose(Precedence.NOT, "NOT ", operand, tree=apply("not", operand.tree))

    def _is(self, node: exp.Expr, negated: bool = False) -> Term:
        what = node.expression
        if not isinstance(what, exp.Null | exp.Boolean):
            raise self.error("IS must be followed by [NOT] NULL, TRUE or FALSE", node, "compare values with =")
        left, right = self.operand(node.this, Precedence.COMPARE).fit(Precedence.BIT_OR), self.bind(what)
        is_null = isinstance(what, exp.Null)
        tree = apply("isnull", left.tree) if is_null else apply("<=>", left.tree, right.tree)
        tree = apply("not", tree) if negated else tree
        return compose(Precedence.PREDICATE, left, " IS NOT " if negated else " IS ", right, tree=tree)

    def _is_distinct(self, node: exp.Expr) -> Term:
        left, right = (
            self.operand(side, Precedence.COMPARE).fit(Precedence.BIT_OR) for side in (node.this, node.expression)
        )
        tree = apply("not", apply("<=>", left.tree, right.tree))
        return compose(Precedence.PREDICATE, left, " IS DISTINCT FROM ", right, tree=tree)

    def _in(self, node: exp.Expr, negated: bool = False) -> Term:
        if node.args.get("query") is not None:
            raise self.error("subqueries are not supported", node, "list the values: x IN (1, 2)")
        if not node.expressions:
            raise self.error("IN needs a list of values", node, "for example x IN (1, 2)")
        self.refuse_extras(node, "this", "expressions")
        values = [self.bind(value) for value in node.expressions]
        left = self.operand(node.this, Precedence.BIT_OR)
        tree = apply("in", left.tree, *(value.tree for value in values))
        tree = apply("not", tree) if negated else tree
        word = " NOT IN (" if negated else " IN ("
        return compose(Precedence.PREDICATE, left, word, *comma_separated(values), ")", tree=tree)

    def _between(self, node: exp.Expr, negated: bool = False) -> Term:
        self.refuse_extras(node, "this", "low", "high")
        value, low, high = (self.operand(node.args[key], Precedence.BIT_OR) for key in ("this", "low", "high"))
        tree = apply("and", apply(">=", value.tree, low.tree), apply("<=", value.tree, high.tree))
        tree = apply("not", tree) if negated else tree
        word = " NOT BETWEEN " if negated else " BETWEEN "
        return compose(Precedence.PREDICATE, value, word, low, " AND ", high, tree=tree)

    def _like(self, node: exp.Expr, negated: bool = False, escape: exp.Expr | None = None) -> Term:
        self.refuse_extras(node, "this", "expression", "negate")
        word = _LIKES[type(node)]
        negated = negated or bool(node.args.get("negate"))
        value, pattern = self.operand(node.this, Precedence.BIT_OR), node.expression
        pieces: list[str | Term] = [value, f" {'NOT ' if negated else ''}{word} "]
        if isinstance(pattern, exp.Any | exp.All):
            listed = pattern.this.expressions if isinstance(pattern.this, exp.Tuple) else [inside(pattern.this)]
            quantifier = "ANY (" if isinstance(pattern, exp.Any) else "ALL ("
            patterns = [self.bind(each) for each in listed]
            pieces += [quantifier, *comma_separated(patterns), ")"]
        else:
            patterns = [self.operand(pattern, Precedence.BIT_OR)]
            pieces += patterns
        if escape is not None:
            return compose(Precedence.PREDICATE, *pieces, " ESCAPE ", self.bind(escape))
        likes = (apply("like", value.tree, each.tree) for each in patterns)
        return compose(Precedence.PREDICATE, *pieces, typed_as=apply("and", *likes))

    def _escape(self, node: exp.Expr) -> Term:
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise self.error("ESCAPE belongs to LIKE or ILIKE", node, "for example s LIKE 'a!%' ESCAPE '!'")
        return self._like(node.this, escape=node.expression)

    # Conditions, casts, parts of values -------------------------------------------------------------------------

    def _case(self, node: exp.Expr) -> Term:
        subject = None if node.this is None else self.bind(node.this)
        pieces: list[str | Term] = ["CASE"] if subject is None else ["CASE ", subject]
        parts: list[Scalar] = []
        otherwise: Scalar = literals.NULL
        for branch in node.args["ifs"]:
            condition, value = self.bind(branch.this), self.bind(branch.args["true"])
            pieces += [" WHEN ", condition, " THEN ", value]
            parts += [condition.tree if subject is None else apply("=", subject.tree, condition.tree), value.tree]
        if node.args.get("default") is not None:
            default = self.bind(node.args["default"])
            pieces += [" ELSE ", default]
            otherwise = default.tree
        return compose(Precedence.PRIMARY, *pieces, " END", tree=apply("case", *parts, otherwise))

    def _if(self, node: exp.Expr) -> Term:
        otherwise = node.args.get("false")
        if otherwise is None:
            raise self.error("if() takes three arguments", node, "for example if(price > 0, price, 0)")
        return self._call("if", [self.bind(part) for part in (node.this, node.args["true"], otherwise)])

    def _cast(self, node: exp.Expr) -> Term:
        self.refuse_extras(node, "this", "to", "safe", "_type")
        inner = self.bind(node.this)
        word, to = "TRY_CAST" if node.args.get("safe") else "CAST", node.args["to"].sql("spark")
        try:
            tree: Scalar | None = cast(inner.tree, DataType.parse(to))
        except WindloomError:  # no type that we know has this name
            tree = None
        pieces = (f"{word}(", inner, f" AS {to})")
        term = compose(Precedence.PRIMARY, *pieces, tree=tree if word == "CAST" else None, typed_as=tree)
        return replace(term, name=inner.column)  # Spark calls a column and its cast by one name

    def _subscript(self, node: exp.Expr) -> Term:
        self.refuse_extras(node, "this", "expressions")
        if len(node.expressions) != 1 or node.this is None:
            raise self.error("a subscript is one index or key", node, "for example items[0] or tags['a']")
        value = self.operand(node.this, Precedence.PRIMARY)
        return compose(Precedence.PRIMARY, value, "[", self.bind(node.expressions[0]), "]")

    def _field(self, node: exp.Expr) -> Term:
        field = node.expression
        if not isinstance(field, exp.Identifier):
            raise self.error("functions of other schemas are not supported", node, "use the functions of Spark SQL")
        return self.field_of(self.operand(node.this, Precedence.PRIMARY), field)

    def field_of(self, value: Term, field: exp.Identifier) -> Term:
        access = compose(Precedence.PRIMARY, value, ".", Expression.of_column(field.name).sql)
        return self.scope.settle(replace(access, name=field.name))

    def fields_of(self, struct: exp.Anonymous) -> dict[str, exp.Expr]:
        """Return the fields of `struct(a, b AS c)`, or of a named one, by Spark's names; none of other functions.

        Arrow has no structs with two fields of one name.
        """
        fields: dict[str, exp.Expr] = {}
        written = struct.expressions
        if struct.name.lower() == "named_struct" and all(isinstance(each, exp.Literal) for each in written[::2]):
            pairs = zip(written[::2], written[1::2], strict=False)  # Spark refuses a name without a value
            written = [exp.Alias(this=value, alias=name.this) for name, value in pairs]
        elif struct.name.lower() != "struct":
            return fields
        for place, each in enumerate(written, 1):
            name = each.alias_or_name if isinstance(each, exp.Alias | exp.Column | exp.Dot) else f"col{place}"
            if name.lower() in map(str.lower, fields):
                hint = f"name one of them: … AS {name}_{place}"
                raise self.error(f"the struct has two fields '{name}'", struct, hint)
            fields[name] = each.this if isinstance(each, exp.Alias) else each
        return fields

    def _tuple(self, node: exp.Expr) -> Term:
        if not node.expressions:
            raise self.error("'()' is empty", node, "put an expression between the parentheses")
        return compose(Precedence.PRIMARY, "(", *comma_separated([self.bind(value) for value in node.expressions]), ")")

    def _collate(self, node: exp.Expr) -> Term:
        name = node.expression.name
        if not _IDENTIFIER.fullmatch(name.lower()):
            raise self.error("cannot read the collation", node, "for example name COLLATE UTF8_LCASE")
        return compose(Precedence.PRIMARY, self.operand(node.this, Precedence.PRIMARY), f" COLLATE {name.upper()}")

    # Functions --------------------------------------------------------------------------------------------------

    def _function(self, node: exp.Expr) -> Term:
        assert isinstance(node, exp.Anonymous)
        # Quoted or not, only the name identifies a function: backticks must not bypass the checks.
        name = node.name.lower()
        if not _IDENTIFIER.fullmatch(name):
            raise self.error(f"'{node.name}' is not the name of a function", node, "use the functions of Spark SQL")
        if self.scope.is_aggregate(name):
            return self.scope.aggregate(Call(name, node), self)
        if any(isinstance(each, exp.Star) for each in node.expressions):
            hint = meant(["count"]) if closest(name, ["count"]) else "name the columns"
            raise self.error(f"'*' can only stand in count(*), not in {name}()", node, hint)
        self.fields_of(node)
        refused = why_refused(name, len(node.expressions))
        if refused is not None:
            raise self.error(refused[0], node, refused[1])
        return self._call(name, [self._argument(name, index, each) for index, each in enumerate(node.expressions)])

    def _modified(self, node: exp.Expr) -> Term:
        """Return an aggregate followed by WITHIN GROUP (…), FILTER (WHERE …), IGNORE NULLS or RESPECT NULLS."""
        where, ignore_nulls, within, inner = None, None, None, node
        while isinstance(inner, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            if isinstance(inner, exp.Filter):
                where = inner.expression.this
            elif isinstance(inner, exp.WithinGroup):
                within = inner.expression
            else:
                ignore_nulls = isinstance(inner, exp.IgnoreNulls)
            inner = inner.this
        if not isinstance(inner, exp.Anonymous) or not self.scope.is_aggregate(inner.name.lower()):
            self.bind(inner)  # reports first what is wrong with the call itself
            word = "FILTER" if where is not None else "IGNORE NULLS" if ignore_nulls else "RESPECT NULLS"
            word = "WITHIN GROUP" if within is not None else word
            raise self.error(f"{word} can only follow an aggregate", inner, SUPPORTED)
        return self.scope.aggregate(Call(inner.name.lower(), inner, where, ignore_nulls, within), self)

    def _argument(self, function: str, index: int, node: exp.Expr) -> Term:
        if index == 0 and function in UNIT_FIRST and isinstance(node, exp.Column) and node.name.upper() in UNITS:
            return Term.text(node.name.upper())
        if function == "struct" and isinstance(node, exp.Alias):
            return compose(Precedence.PRIMARY, self.bind(node.this), f" AS {Expression.of_column(node.alias).sql}")
        if function == "struct" and (term := self.bind(node)).uses:
            # Spark calls fields after columns, and others by their place; a placeholder must not become a name.
            name = node.name if isinstance(node, exp.Column | exp.Dot) else f"col{index + 1}"
            return compose(Precedence.PRIMARY, term, f" AS {Expression.of_column(name).sql}")
        if isinstance(node, exp.Lambda):
            names = [Expression.of_column(variable.name).sql for variable in node.expressions]
            if any(name.startswith("__") for name in names):
                raise self.error("names that begin with '__' are reserved", node, "give the variable another name")
            head = names[0] if len(names) == 1 else f"({', '.join(names)})"
            return compose(Precedence.PRIMARY, f"{head} -> ", self.bind(node.this))
        return self.bind(node)

    def _call(self, name: str, arguments: list[Term]) -> Term:
        tree = apply(name, *(argument.tree for argument in arguments))
        return compose(Precedence.PRIMARY, f"{name}(", *comma_separated(arguments), ")", tree=tree)

    def _extract(self, node: exp.Expr) -> Term:
        unit = node.name.lower()
        if not _IDENTIFIER.fullmatch(unit):
            raise self.error("cannot read the field to extract", node, "for example EXTRACT(HOUR FROM ts)")
        source = self.bind(node.expression)
        typed_as = apply("hour", source.tree) if unit in _WHOLE_FIELDS else None
        return compose(Precedence.PRIMARY, f"EXTRACT({unit.upper()} FROM ", source, ")", typed_as=typed_as)

    def _trim(self, node: exp.Expr) -> Term:
        self.refuse_extras(node, "this", "expression", "position")
        position, characters = node.args.get("position"), node.args.get("expression")
        if position is None and characters is None:
            return self._call("trim", [self.bind(node.this)])
        pieces: list[str | Term] = ["TRIM(", f"{position or 'BOTH'} "]
        if characters is not None:
            pieces += [self.bind(characters), " "]
        pieces += ["FROM ", self.bind(node.this), ")"]
        typed_as = apply("concat", *(piece.tree for piece in pieces if isinstance(piece, Term)))
        return compose(Precedence.PRIMARY, *pieces, typed_as=typed_as)

    def _by_position(self, name: str, node: exp.Expr, *keys: str) -> Term:
        """Return functions with words between their arguments, written as the plain call that means the same."""
        self.refuse_extras(node, *keys)
        arguments = [node.args[key] for key in keys if node.args.get(key) is not None]
        return self._call(name, [self.bind(argument) for argument in arguments])


_HANDLERS: dict[type[exp.Expr], Callable[[Binder, Any], Term]] = {
    **dict.fromkeys(_BINARY, Binder._binary),
    exp.Literal: lambda binder, node: Term.text(str(node.this), literals.literal(str(node.this))),
    exp.Boolean: lambda binder, node: Term.text(
        "TRUE" if node.this else "FALSE", ConstantValue(bool(node.this), BOOLEAN)
    ),
    exp.Null: lambda binder, node: Term.text("NULL", literals.NULL),
    exp.Column: Binder._column,
    # A bare identifier is a variable of an enclosing lambda; columns come as Column nodes.
    exp.Identifier: lambda binder, node: Term.text(Expression.of_column(node.name).sql),
    exp.Paren: lambda binder, node: binder.bind(node.this),
    exp.Neg: Binder._unary,
    exp.BitwiseNot: Binder._unary,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.NullSafeNEQ: Binder._is_distinct,
    exp.In: Binder._in,
    exp.Between: Binder._between,
    exp.Like: Binder._like,
    exp.ILike: Binder._like,
    exp.RegexpLike: Binder._like,
    exp.Escape: Binder._escape,
    exp.Case: Binder._case,
    exp.If: Binder._if,
    exp.TryCast: Binder._cast,
    exp.Bracket: Binder._subscript,
    exp.Dot: Binder._field,
    exp.Tuple: Binder._tuple,
    exp.Collate: Binder._collate,
    exp.Anonymous: Binder._function,
    exp.Filter: Binder._modified,
    exp.WithinGroup: Binder._modified,
    exp.IgnoreNulls: Binder._modified,
    exp.RespectNulls: Binder._modified,
    exp.Extract: Binder._extract,
    exp.Trim: Binder._trim,
    exp.Substring: lambda binder, node: binder._by_position("substring", node, "this", "start", "length"),
    exp.StrPosition: lambda binder, node: binder._by_position("position", node, "substr", "this", "position"),
    exp.Overlay: lambda binder, node: binder._by_position("overlay", node, "this", "expression", "from_", "for_"),
}
