"""Turns the tokens of a SELECT without its FROM clause into sqlglot's syntax tree, with little interpretation.

The end of the module lists the Spark SQL functions that a query must not call, and why; all others are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.spark import SparkParser

from windloom.aggregates.equivalents import EQUIVALENTS, REFUSED
from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import QueryError
from windloom.language.sql.tokens import SPARK, SourceText, Span, fold_literals, is_name, replaced, source_end
from windloom.model.windows import WINDOW_FUNCTIONS

#: Functions with a grammar of their own (`CAST(x AS t)`, `EXTRACT(u FROM x)`, …).
_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")

_PREDICATES = (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE)

#: Words that have a meaning for sqlglot that they do not have inside an expression of Spark SQL.
_PLAIN_WORDS = {
    TokenType[word]
    for word in """
    WINDOW CURRENT_CATALOG CURRENT_DATE CURRENT_DATETIME CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP
    CURRENT_USER LOCALTIME LOCALTIMESTAMP SESSION_USER
    """.split()  # noqa: SIM905 - a table of words
}

#: Refused before parsing, because the tree does not hold their place.
_REFUSED = {
    TokenType.SELECT: (
        "subqueries are not supported",
        "use one SELECT; only [NOT] EXISTS (SELECT …) can stand in WHERE",
    ),
    TokenType.PLACEHOLDER: ("parameters are not supported", "write the value itself"),
    TokenType.PARAMETER: ("parameters are not supported", "write the value itself"),
}

#: FILTER after an aggregate; `filter(…)` by itself is a function of arrays.
_FILTER = (TokenType.R_PAREN, TokenType.FILTER, TokenType.L_PAREN)
_SIGNED_CAST = (TokenType.DASH, TokenType.NUMBER, TokenType.DCOLON)
_OPENERS = (TokenType.SELECT, TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA)
_ENDERS = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)


class _UnreadableError(ParseError):
    def __init__(self, reason: str, token: Token) -> None:
        super().__init__(reason)
        self.reason = reason
        self.token = token


class _SelectParser(SparkParser):
    """sqlglot's Spark parser without its knowledge of functions, and without the operators of other dialects.

    That knowledge is there to translate between dialects: it reads `nvl` as COALESCE, `instr(s, x)` as LOCATE,
    `regexp_extract(s, p, 1)` as a call without the 1. A query goes from Spark SQL to Spark SQL, so a function stays
    the name and the arguments with which it was written.
    """

    FUNCTIONS = {}  # noqa: RUF012 - sqlglot declares it as a class variable
    ARRAY_CONSTRUCTORS = {}  # noqa: RUF012
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_GRAMMAR}  # noqa: RUF012
    COLUMN_OPERATORS = {  # noqa: RUF012
        kind: SparkParser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    RANGE_PARSERS = {kind: SparkParser.RANGE_PARSERS[kind] for kind in _PREDICATES}  # noqa: RUF012
    UNARY_PARSERS = {  # noqa: RUF012
        **{kind: SparkParser.UNARY_PARSERS[kind] for kind in (TokenType.NOT, TokenType.TILDE, TokenType.DASH)},
        TokenType.PLUS: lambda self: self._parse_positive(),
    }
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
    }

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> None:
        raise _UnreadableError(message, token or self._curr)

    def _parse_positive(self) -> exp.Expr:
        operand = self._parse_unary()
        if operand is None:
            self.raise_error("Expected an operand")
        # sqlglot would drop the sign, but in Spark it turns a string into a number.
        return self.expression(exp.Anonymous(this="positive", expressions=[operand]))

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):  # sqlglot would accept the query without AND
            self.raise_error("Expected AND")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _build_predicate(
        self,
        klass: type[exp.Binary],
        this: exp.Expr | None,
        expression: exp.Expr | None,
        comments: list[str] | None = None,
        negate: bool = False,
    ) -> exp.Expr:
        # sqlglot adds its own parentheses here, which would hide that it reads a chain of operators unlike Spark.
        predicate = klass(this=this, expression=expression)
        if negate:
            predicate.set("negate", True)
        return self.expression(predicate)


def parse_select(tokens: Sequence[Token], source: SourceText) -> exp.Select:
    """Return the syntax tree of `SELECT … WHERE … GROUP BY … HAVING …`."""
    _check_tokens(tokens, source)
    readable = [
        replaced(token, TokenType.VAR, token.text) if token.token_type in _PLAIN_WORDS else token for token in tokens
    ]
    parser = _SelectParser(error_level=ErrorLevel.IMMEDIATE, dialect=SPARK)
    try:
        trees = parser.parse(readable, source.text)
    except _UnreadableError as error:
        raise _explain(error, tokens, source) from None
    except RecursionError:
        raise too_deep(Span.of(tokens), source) from None
    except Exception as error:
        # sqlglot fails on some texts with other errors than its own; the text is at fault all the same.
        raise source.error("the query cannot be read", tokens[0], "check it against docs/language.md") from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise source.error("this is not a single SELECT", tokens[0], "write one SELECT … FROM stream [RANGE … SLIDE …]")
    return tree


def parse_condition(tokens: Sequence[Token], source: SourceText) -> exp.Expr:
    """Return the syntax tree of a condition that stands alone, as after ON."""
    first = tokens[0]
    kinds = {TokenType.SELECT: "SELECT", TokenType.NUMBER: "1", TokenType.WHERE: "WHERE"}
    before = [replaced(first, kind, text) for kind, text in kinds.items()]
    tree = parse_select([*before, *fold_literals(tokens, source)], source)
    where = tree.args.get("where")
    if where is None or {key for key, value in tree.args.items() if value} - {"kind", "expressions", "where"}:
        raise source.error("the condition cannot be read", first, "check it against docs/language.md")
    node: exp.Expr = where.this
    return node


def parse_expression(text: str) -> exp.Expr:
    """Return the syntax tree of an expression that Windloom itself has written."""
    parser = _SelectParser(error_level=ErrorLevel.IMMEDIATE, dialect=SPARK)
    select = parser.parse(SPARK.tokenize(f"SELECT {text}"), text)[0]
    assert isinstance(select, exp.Select)
    item: exp.Expr = select.expressions[0].pop()
    return item


def _check_tokens(tokens: Sequence[Token], source: SourceText) -> None:
    for before, token in pairwise([*tokens, Token(TokenType.R_PAREN, "")]):
        kind = token.token_type
        if kind in _REFUSED:
            raise source.error(_REFUSED[kind][0], token, _REFUSED[kind][1])
        # sqlglot skips superfluous commas, but something beside them may be missing.
        if kind is TokenType.COMMA and before.token_type in _OPENERS:
            raise source.error("unexpected ','", token, "remove it, or add what is missing before it")
        if before.token_type is TokenType.COMMA and kind in _ENDERS:
            raise source.error("unexpected ','", before, "remove it, or add what is missing after it")
    for before, token, paren, after in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        kinds = (before.token_type, token.token_type, paren.token_type)
        if kinds == _FILTER and after.token_type is not TokenType.WHERE:  # sqlglot does not require it
            raise source.error("FILTER needs a WHERE", after, "for example sum(volume) FILTER (WHERE price > 10)")
    for sign, number, cast in zip(tokens, tokens[1:], tokens[2:], strict=False):
        # Spark reads the sign as part of the number, sqlglot as an operator on the cast.
        if (sign.token_type, number.token_type, cast.token_type) == _SIGNED_CAST:
            hint = f"add parentheses, for example (-{number.text})::…"
            raise source.error("the operators can be read in two ways", sign, hint)


def too_deep(at: Span, source: SourceText) -> QueryError:
    return source.error("the query is nested too deeply", at, "split the expression, or use IN (…) for long lists")


def span_of(node: exp.Expr, fallback: Span) -> Span:
    """Return the place of a node in the text: its own place, or the first place known below it, or around it."""
    around: exp.Expr | None = node
    while around is not None:
        places = [below.meta for below in around.walk() if "start" in below.meta]
        if "start" in around.meta:
            places = [around.meta]
        if places:
            first = min(places, key=lambda meta: int(meta["start"]))
            return Span(first["start"], first["end"] + 1)
        around = around.parent
    return fallback


def _explain(error: _UnreadableError, tokens: Sequence[Token], source: SourceText) -> QueryError:
    """Return the error for a text that sqlglot could not read, in the words of that text."""
    if not error.token:
        message = f"something is missing after '{source.raw(tokens[-1])}'"
        return source.error(message, source_end(tokens), "complete the expression")
    raw = source.raw(error.token)
    if "END after CASE" in error.reason:
        return source.error("CASE without END", error.token, "close it with END")
    if error.reason.lower().startswith("expected type"):
        return source.error(f"unknown type '{raw}'", error.token, "use a type of Spark SQL, such as double or string")
    if "Expecting )" in error.reason:
        hint = "a ')' or an operator is missing before it"
    elif error.token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) and is_name(error.token):
        hint = f"a comma or an operator may be missing; a column of that name needs backticks: `{raw}`"
    else:
        hint = "a comma or an operator may be missing before it"
    return source.error(f"cannot read '{raw}' here", error.token, hint)


#: Functions of Spark that stand before OVER.
OF_ROWS = frozenset(
    """
    counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """.split()  # noqa: SIM905 - a table of words is easier to keep than a list of strings
)

#: Functions that make several rows from one.
GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
    """.split()  # noqa: SIM905
)

#: Functions whose result depends on the clock, on chance, on the session or on where a row is stored.
#: With them, a replayed round could give other rows, and two queries could not share results.
CHANGING = frozenset(
    """
    aes_encrypt curdate current_catalog current_database current_date current_path current_role current_schema
    current_time current_timestamp current_timezone current_user getdate input_file_block_length
    input_file_block_start input_file_name localtime localtimestamp monotonically_increasing_id now rand randn random
    randstr session_user shuffle spark_partition_id sysdate today uniform user uuid version
    """.split()  # noqa: SIM905
)

#: Functions that read the clock only if they are called without arguments.
CHANGING_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp", "to_unix_timestamp"})

#: Functions that run code, or that look names up at run time.
CODE = frozenset({"reflect", "java_method", "try_reflect", "identifier"})

#: Functions about Spark's own windows.
WINDOWS = frozenset({*WINDOW_FUNCTIONS, "window_time"})

#: Functions whose first argument may be a bare unit of time.
UNIT_FIRST = frozenset({"timestampadd", "timestampdiff", "date_add", "dateadd", "date_diff", "datediff"})

#: For hints.
SUPPORTED = "supported: " + ", ".join((*FUNCTIONS, *EQUIVALENTS))


def why_refused(name: str, arguments: int) -> tuple[str, str] | None:
    """Return message and hint for a function (by lower-case name) that no query may call, or None."""
    if name in REFUSED:
        return f"{name}() is not supported", REFUSED[name]
    if name in OF_ROWS:
        return f"{name}() is not supported yet", SUPPORTED
    if name in GENERATORS:
        return f"{name}() makes several rows from one, which is not supported", "do it in the DataFrame of the stream"
    if name in CHANGING or (name in CHANGING_WITHOUT_ARGUMENTS and arguments == 0):
        return (
            f"{name}() gives another answer each time, so results would depend on when and where they are computed",
            "use the columns of the stream; compute such values in its DataFrame",
        )
    if name in CODE:
        return f"{name}() is not allowed: a query is never run as code", "use the columns and functions of Spark SQL"
    if name == "window_time":
        return (
            "window_time() cannot stand beside the GROUP BY of its window, as in Spark",
            "write the last instant of the window, window.end - INTERVAL 1 MICROSECOND",
        )
    if name in WINDOWS:
        return f"{name}() can only stand in GROUP BY", "the columns window_start and window_end are always reported"
    return None
