"""Trees of expressions over aggregates: what the text says, without the text."""

from __future__ import annotations

import pytest

from windloom.language.select import parse_query
from windloom.model import DataType, Stream
from windloom.model.expression import MOST_LEVELS, Apply, Cast, ColumnRef, ConstantValue, Opaque, Scalar, apply, cast

TRADES = Stream(
    "trades",
    {"ts": DataType.parse("timestamp"), "symbol": DataType.parse("string"), "price": DataType.parse("double")},
    time="ts",
)
A0, A1, G0 = ColumnRef("__a0"), ColumnRef("__a1"), ColumnRef("__g0")
INT = DataType.parse("int")


def tree_of(expression: str) -> Scalar | None:
    text = f"SELECT symbol, {expression} AS x FROM trades [TUMBLE 1 minute] GROUP BY symbol"
    output = parse_query("q", text, {"trades": TRADES}).outputs[0]
    assert output.expression is not None
    return output.expression.tree


def number(value: int) -> ConstantValue:
    return ConstantValue(value, INT)


@pytest.mark.parametrize(
    ("expression", "tree"),
    [
        ("max(price) - min(price)", apply("-", A0, A1)),
        ("max(price) * 2 + 1", apply("+", apply("*", A0, number(2)), number(1))),
        ("max(price) div 2", apply("div", A0, number(2))),
        ("-max(price)", apply("negative", A0)),
        ("-5 + count(*)", apply("+", number(-5), A0)),
        ("count(*) BETWEEN 1 AND 2", apply("and", apply(">=", A0, number(1)), apply("<=", A0, number(2)))),
        ("count(*) NOT IN (1, 2)", apply("not", apply("in", A0, number(1), number(2)))),
        ("max(price) IS NOT NULL", apply("not", apply("isnull", A0))),
        ("symbol = 'X'", apply("=", G0, ConstantValue("X", DataType.parse("string")))),
        ("CAST(max(price) AS int)", cast(A0, INT)),
        ("if(count(*) > 1, 1, 2)", apply("if", apply(">", A0, number(1)), number(1), number(2))),
        (
            "CASE count(*) WHEN 1 THEN 2 END",
            apply("case", apply("=", A0, number(1)), number(2), ConstantValue(None, DataType.parse("void"))),
        ),
        ("upper(symbol)", apply("upper", G0)),
        ("(max(price) + 1) IS DISTINCT FROM 2", apply("not", apply("<=>", apply("+", A0, number(1)), number(2)))),
    ],
)
def test_an_expression_over_aggregates_has_a_tree(expression: str, tree: Scalar) -> None:
    assert tree_of(expression) == tree


def test_syntax_without_a_tree_of_its_own_says_what_it_is() -> None:
    assert tree_of("symbol LIKE 'a%'") == Opaque("… LIKE …")
    assert tree_of("TRY_CAST(symbol AS int) + 1") == apply("+", Opaque("TRY_CAST(… AS INT)"), number(1))


def test_an_alias_of_the_select_list_is_replaced_by_its_tree() -> None:
    text = "SELECT count(*) AS n, n + 1 AS m FROM trades [TUMBLE 1 minute] HAVING m > 2"
    query = parse_query("q", text, {"trades": TRADES})
    assert query.having is not None
    assert query.having.tree == apply(">", apply("+", A0, number(1)), number(2))


def test_a_tree_that_is_too_deep_is_not_kept_and_its_text_is() -> None:
    text = "count(*)" + " + 1" * (MOST_LEVELS + 10)
    tree = tree_of(text)
    assert isinstance(tree, Opaque | Apply)
    found = [tree]
    while isinstance(found[-1], Apply):
        found.append(found[-1].operands[0])
    assert isinstance(found[-1], Opaque)
    assert len(found) <= MOST_LEVELS


def test_expressions_are_told_apart_by_their_text_alone() -> None:
    text = "SELECT count(*) + 1 AS x FROM trades [TUMBLE 1 minute]"
    first, second = (parse_query("q", text, {"trades": TRADES}).outputs[0].expression for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert isinstance(tree_of("CAST(count(*) AS int)"), Cast)


def test_syntax_without_a_tree_is_as_deep_as_the_tree_that_tells_its_type() -> None:
    text = "symbol"
    for _ in range(MOST_LEVELS // 4):
        text = f"TRY_CAST({text} AS string)"
    tree = tree_of(text)
    assert isinstance(tree, Opaque)
    assert tree.depth == 1 + MOST_LEVELS // 4
