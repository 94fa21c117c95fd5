from __future__ import annotations

import pytest

from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import WindloomError
from windloom.model import Aggregate, DataType, Expression
from windloom.model.aggregate import COUNT_STAR

X = Expression.of_column("x")
Y = Expression.of_column("y")


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
        ("bool_and", "boolean", "boolean"),
        ("max_by", "decimal(10,2)", "decimal(10,2)"),
        ("first", "timestamp", "timestamp"),
        ("bool_or", "boolean", "boolean"),
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
    for aggregate in (Aggregate("last", X), Aggregate("min_by", X, Y)):
        with pytest.raises(WindloomError, match="cannot take") as caught:
            aggregate.result_type(DataType.parse(argument))
        assert f"'x' is of type {argument}" in caught.value.detail
    with pytest.raises(WindloomError, match=r"cannot take 'min_by\(x, y\)'") as caught:
        Aggregate("min_by", X, Y).check_by(DataType.parse(argument))
    assert f"'y' is of type {argument}, which has no order" in caught.value.detail


@pytest.mark.parametrize("argument", ["int", "string", "void"])
def test_conditions_are_taken_of_booleans(argument: str) -> None:
    with pytest.raises(WindloomError, match=r"cannot take 'bool_or\(x\)'") as caught:
        Aggregate("bool_or", X).result_type(DataType.parse(argument))
    assert "not a boolean" in caught.value.detail
    assert "compare" in caught.value.hint


def test_a_filter_is_a_part_of_every_component_and_shown_with_it() -> None:
    average = Aggregate("avg", X, where=Y)
    assert str(average) == "avg(x) FILTER (WHERE y)"
    assert list(map(str, average.components)) == ["sum(x) FILTER (WHERE y)", "count(x) FILTER (WHERE y)"]
    assert not set(average.components) & set(Aggregate("avg", X).components)
    assert average.expressions == (X, Y)
    count = Aggregate("count", where=Y)
    assert str(count) == str(*count.components) == "count(*) FILTER (WHERE y)"
    assert count.components != (COUNT_STAR,)
    assert count.result_type(None).name == "bigint"


def test_a_filter_is_a_condition() -> None:
    for kind in ("boolean", "void"):
        Aggregate("count", where=Y).check_where(DataType.parse(kind))
    with pytest.raises(WindloomError, match="FILTER condition 'y' is not a condition") as caught:
        Aggregate("count", where=Y).check_where(DataType.parse("int"))
    assert caught.value.detail == "it is of type int"


def test_conditions_share_their_component_with_extremes() -> None:
    assert Aggregate("bool_and", X).components == Aggregate("min", X).components
    assert Aggregate("bool_or", X).components == Aggregate("max", X).components


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
        assert str(Aggregate(name, X)) == f"{name}(x)"
    assert str(Aggregate("max_by", X, Y)) == str(Aggregate("max_by", X, Y).components[0]) == "max_by(x, y)"


def test_a_pick_is_shared_only_if_it_looks_at_the_same() -> None:
    by_y, by_x = (Aggregate("max_by", X, by).components for by in (Y, X))
    assert by_y != by_x
    assert Aggregate("max_by", X, Y).expressions == (X, Y)
