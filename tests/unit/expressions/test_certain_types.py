"""Types that Spark gives in every session, and what has a type although only Spark can evaluate it."""

from __future__ import annotations

import pytest

from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import certain_type, resolve, typed
from windloom.language.sql.join_names import expression_type, tuple_tree
from windloom.model import DataType, Expression
from windloom.model.expression import MOST_LEVELS

_NAMES = {
    "i": "int",
    "l": "bigint",
    "r": "float",
    "x": "double",
    "c": "decimal(10,2)",
    "w": "decimal(38,10)",
    "s": "string",
    "p": "boolean",
    "day": "date",
    "ts": "timestamp",
    "arr": "array<int>",
}
COLUMNS = {name: DataType.parse(kind) for name, kind in _NAMES.items()}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + l", "bigint"),
        ("c * 2", "decimal(12,2)"),
        ("c * 2Y", "decimal(14,2)"),
        ("r + r", "float"),
        ("2.5F", "float"),
        ("-128Y", "tinyint"),
        ("-2147483648", "int"),
        ("-(2147483648)", "bigint"),
        ("TIMESTAMP '2024-02-29 12:00:00'", "timestamp"),
        ("coalesce(day, ts)", "timestamp"),
        ("day < ts", "boolean"),
        ("s > 1", "boolean"),
        ("s LIKE 'a%' AND s NOT ILIKE ANY ('b', 'c')", "boolean"),
        ("TRY_CAST(s AS INT) + 1", "int"),
        ("TRIM(BOTH 'a' FROM s) || 'b'", "string"),
        ("EXTRACT(HOUR FROM ts) & 7L", "bigint"),
        ("~i", "int"),
        ("arr IS NULL", "boolean"),
        ("substring(s, 1, 2)", "string"),
        ("CASE WHEN s RLIKE 'a' THEN 1 ELSE 2.5 END", "decimal(11,1)"),
        (" OR ".join(f"i = {n}" for n in range(3 * MOST_LEVELS)), "boolean"),
    ],
)
def test_the_type_of_an_expression_is_told_if_every_session_gives_it(text: str, kind: str) -> None:
    assert str(expression_type(Expression(text), COLUMNS)) == kind


@pytest.mark.parametrize(
    "text",
    [
        "r + i",  # a float or a double
        "coalesce(r, i)",
        "w * w",  # more than 38 digits
        "w + 1 > 0 OR p AND w * w > 1",
        "CAST(s AS DECIMAL(39, 2))",
        "CASE WHEN NULL THEN 1 END",
        "EXTRACT(SECOND FROM ts)",  # with a fraction
        "coalesce(arr, arr)",
        "arr[0]",
        "i << 2",
        "s + 1",
        "to_json(s)",
        "'a\\n'",
    ],
)
def test_the_type_of_an_expression_is_left_to_spark_if_sessions_differ_or_no_rule_has_it(text: str) -> None:
    assert expression_type(Expression(text), COLUMNS) is None


def test_the_first_part_that_only_spark_knows_is_the_reason_for_all() -> None:
    tree = tuple_tree("(s LIKE 'a') = (power(x, 2) > to_json(s))", COLUMNS)
    with pytest.raises(NotKnownError, match=r"^… LIKE …$"):
        typed(tree, COLUMNS)
    node = typed(tuple_tree("power(x, 2) > 1 AND s LIKE 'a'", COLUMNS), COLUMNS)
    assert (node.kind.name, node.why_spark, node.operands) == ("boolean", "power()", ())


def test_a_type_that_is_not_certain_is_that_of_ansi_mode() -> None:
    tree = tuple_tree("r + i", COLUMNS)
    assert certain_type(tree, COLUMNS) is None
    assert resolve(tree, COLUMNS).kind.name == "double"
