"""Literals as Spark reads them: their values and types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from windloom.expressions.literals import literal
from windloom.model import DataType
from windloom.model.expression import ConstantValue, Opaque


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, "int"),
        ("-2147483648", -(2**31), "int"),
        ("2147483648", 2**31, "bigint"),
        ("7L", 7, "bigint"),
        ("7Y", 7, "tinyint"),
        ("0.05", Decimal("0.05"), "decimal(2,2)"),
        ("10.50", Decimal("10.50"), "decimal(4,2)"),
        ("0.", Decimal(0), "decimal(1,0)"),
        ("5BD", Decimal(5), "decimal(1,0)"),
        ("9223372036854775808", Decimal(2**63), "decimal(19,0)"),
        ("1E2", 100.0, "double"),
        ("2.5D", 2.5, "double"),
        ("'it'", "it", "string"),
        ("DATE '1970-01-02'", 1, "date"),
    ],
)
def test_a_literal_has_the_value_and_type_that_spark_gives_it(text: str, value: Any, kind: str) -> None:
    assert literal(text) == ConstantValue(value, DataType.parse(kind))


@pytest.mark.parametrize(
    "text", ["128Y", "1.5F", "1E999", "'a\\n'", "X'1F'", "DATE '2024-13-01'", "TIMESTAMP '2024-01-01'", "1E2BD"]
)
def test_a_literal_that_is_not_surely_understood_is_opaque(text: str) -> None:
    assert literal(text) == Opaque(text)
