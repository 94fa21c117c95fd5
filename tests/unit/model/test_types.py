from __future__ import annotations

import pytest

from windloom.errors import WindloomError
from windloom.model import DataType, TypeKind


@pytest.mark.parametrize(
    ("written", "name", "kind"),
    [
        ("BIGINT", "bigint", TypeKind.INTEGER),
        ("long", "bigint", TypeKind.INTEGER),
        (" Integer ", "int", TypeKind.INTEGER),
        ("byte", "tinyint", TypeKind.INTEGER),
        ("REAL", "float", TypeKind.FLOAT),
        ("decimal", "decimal(10,0)", TypeKind.DECIMAL),
        ("DEC(7)", "decimal(7,0)", TypeKind.DECIMAL),
        ("numeric( 38 , 18 )", "decimal(38,18)", TypeKind.DECIMAL),
        ("varchar(20)", "string", TypeKind.STRING),
        ("char(3)", "string", TypeKind.STRING),
        ("string collate UTF8_BINARY", "string", TypeKind.STRING),
        ("timestamp_ltz", "timestamp", TypeKind.TIMESTAMP),
        ("timestamp_ntz", "timestamp_ntz", TypeKind.TIMESTAMP_NTZ),
        ("void", "void", TypeKind.NULL),
        ("ARRAY<INT>", "array<int>", TypeKind.OTHER),
        ("struct<Code:INT,When:TIMESTAMP>", "struct<Code:int,When:timestamp>", TypeKind.OTHER),
        ("interval day to second", "interval day to second", TypeKind.OTHER),
    ],
)
def test_types_are_read_as_spark_spells_them(written: str, name: str, kind: TypeKind) -> None:
    found = DataType.parse(written)
    assert (found.name, found.kind) == (name, kind)
    assert DataType.parse(found.name) == found


@pytest.mark.parametrize("written", ["decimal(a)", "decimal(10,2", "decimal 10"])
def test_a_decimal_that_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(WindloomError, match="cannot read the type"):
        DataType.parse(written)


def test_a_collation_makes_a_string_that_only_spark_can_compare() -> None:
    collated = DataType.parse("string collate UTF8_LCASE")
    assert not collated.is_groupable
    assert not collated.is_ordered


@pytest.mark.parametrize(
    ("name", "numeric", "ordered", "groupable"),
    [
        ("int", True, True, True),
        ("double", True, True, True),
        ("decimal(10,2)", True, True, True),
        ("string", False, True, True),
        ("boolean", False, True, True),
        ("binary", False, True, True),
        ("void", False, False, True),
        ("map<string,int>", False, False, False),
    ],
)
def test_what_can_be_done_with_a_type(name: str, numeric: bool, ordered: bool, groupable: bool) -> None:
    found = DataType.parse(name)
    assert (found.is_numeric, found.is_ordered, found.is_groupable) == (numeric, ordered, groupable)
