"""Native lists: a list component leaves Spark as one row an entry, beside the other partials of its set.

Partials of one slice and group may come in several rows; the step merges them (see `read_partials`). So values are
counted by grouping by them, Spark's own compiled hash aggregation, and no list is ever built in the JVM: one shuffle,
no objects, flat columns. A row holds NULL in the fields of components that it says nothing about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windloom.model.expression import Expression
from windloom.plan.physical import PlannedComponent
from windloom.spark.native import component_sql

#: Other fields up to which one list is counted in the same pass, each of them once a value, and not by another scan.
FEW_FIELDS = 4


@dataclass(frozen=True, slots=True)
class NativeList:
    """A list component: the column that holds its argument, and its two fields among the set's."""

    argument: str
    value: str
    count: str


def summarised(
    projected: DataFrame,
    keys: Sequence[str],
    components: Sequence[PlannedComponent],
    arguments: Mapping[Expression, str],
    extra: Sequence[tuple[str, str]] = (),
) -> DataFrame:
    """Partials: `keys`, the components' fields `c0…` in order, then `extra`, further (name, aggregate).

    `arguments` names the columns of `projected` that hold the components' arguments.
    """
    plain: list[tuple[str, str]] = []
    lists: list[NativeList] = []
    fields: list[str] = []
    for planned in components:
        argument = "" if planned.component.argument is None else arguments[planned.component.argument]
        own = [f"c{len(fields) + i}" for i in range(len(planned.fields))]
        if planned.family.is_list:
            lists.append(NativeList(argument, *own))
        else:
            plain += zip(own, component_sql(planned, argument), strict=True)
        fields += own
    found = _grouped(projected, keys, [*plain, *extra], lists)
    return found.select(*keys, *fields, *(name for name, _ in extra)) if lists else found


def _grouped(
    projected: DataFrame, keys: Sequence[str], plain: Sequence[tuple[str, str]], lists: Sequence[NativeList]
) -> DataFrame:
    """`plain` are (field, aggregate) of everything that is no list."""
    aggregates = [F.expr(f"{sql} AS {name}") for name, sql in plain]
    if not lists:
        return projected.groupBy(*keys).agg(*aggregates)
    if len(lists) == 1 and len(plain) <= FEW_FIELDS:
        return _in_one_pass(projected, keys, aggregates, lists[0])
    parts = [projected.groupBy(*keys).agg(*aggregates)]
    parts += [_counted(projected, keys, one) for one in lists]
    kinds = {name: kind for part in parts for name, kind in part.dtypes}
    aligned = [
        part.selectExpr(*(name if name in part.columns else f"CAST(NULL AS {kinds[name]}) AS {name}" for name in kinds))
        for part in parts
    ]
    return reduce(DataFrame.unionAll, aligned)


def _in_one_pass(projected: DataFrame, keys: Sequence[str], aggregates: Sequence[Column], one: NativeList) -> DataFrame:
    by_value = projected.withColumn(one.value, F.col(one.argument)).groupBy(*keys, one.value)
    counted = F.expr(f"count({one.argument}) AS {one.count}")
    return by_value.agg(*aggregates, counted)


def _counted(projected: DataFrame, keys: Sequence[str], one: NativeList) -> DataFrame:
    present = projected.where(f"{one.argument} IS NOT NULL").withColumn(one.value, F.col(one.argument))
    return present.groupBy(*keys, one.value).agg(F.expr(f"count(1) AS {one.count}"))
