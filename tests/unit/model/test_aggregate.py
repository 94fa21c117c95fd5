from __future__ import annotations

import pytest

from windloom.errors import WindloomError
from windloom.model import FUNCTIONS, Aggregate, DataType, Expression
from windloom.model.holistic import COMPONENT_OF

X = Expression.of_column("x")


@pytest.mark.parametrize(
    ("function", "argument", "result"),
    [
        ("sum", "tinyint", "bigint"),
        ("sum", "bigint", "bigint"),
        ("sum", "float", "double"),
        ("sum", "decimal(10,2)", "decimal(20,2)"),
        ("sum", "decimal(38,18)", "decimal(38,18)"),
        ("avg", "int", "double"),
        ("avg", "decimal(10,2)", "decimal(14,6)"),
        ("min", "float", "float"),
        ("max", "decimal(10,2)", "decimal(10,2)"),
        ("max", "string", "string"),
        ("min", "boolean", "boolean"),
        ("max", "timestamp_ntz", "timestamp_ntz"),
        ("count", "map<int,int>", "bigint"),
        ("var_pop", "int", "double"),
        ("stddev_samp", "decimal(10,2)", "double"),
    ],
)
def test_results_have_the_types_of_spark(function: str, argument: str, result: str) -> None:
    assert Aggregate(function, X).result_type(DataType.parse(argument)).name == result


@pytest.mark.parametrize("function", ["sum", "avg", "var_pop", "stddev_samp"])
@pytest.mark.parametrize("argument", ["string", "boolean", "date", "binary", "array<int>", "void"])
def test_numbers_are_not_made_of_other_things(function: str, argument: str) -> None:
    with pytest.raises(WindloomError) as caught:
        Aggregate(function, X).result_type(DataType.parse(argument))
    assert caught.value.message == f"cannot take '{function}(x)'"
    assert f"of type {argument}" in caught.value.detail
    assert "cast" in caught.value.hint


@pytest.mark.parametrize("argument", ["array<int>", "map<int,int>", "string collate UTF8_LCASE", "void"])
def test_extremes_need_an_order(argument: str) -> None:
    with pytest.raises(WindloomError, match="cannot take 'max"):
        Aggregate("max", X).result_type(DataType.parse(argument))


def test_an_aggregate_but_count_needs_an_argument() -> None:
    assert Aggregate("count").result_type(None).name == "bigint"
    with pytest.raises(WindloomError, match="needs an argument"):
        Aggregate("sum").result_type(None)


def test_an_average_shares_its_components_with_sum_and_count() -> None:
    shared = {*Aggregate("sum", X).components, *Aggregate("count", X).components}
    assert set(Aggregate("avg", X).components) == shared
    assert Aggregate("stddev_samp", X).components == Aggregate("var_pop", X).components


def test_every_name_of_a_function_is_an_aggregate_with_components() -> None:
    for name in set(FUNCTIONS.values()):
        assert Aggregate(name, X).components
        if name not in COMPONENT_OF:
            assert str(Aggregate(name, X)) == f"{name}(x)"
