"""Native lists: a list component leaves Spark as one row an entry, beside the other partials of its set.

Partials of one slice and group may come in several rows; the step merges them (see `read_partials`). So values are
counted by grouping by them, Spark's own compiled hash aggregation, and no list is ever built in the JVM: one shuffle,
no objects, flat columns. A row holds NULL in the fields of components that it says nothing about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windloom.aggregates import PlannedComponent
from windloom.aggregates.card import ListCard
from windloom.spark.unions import union_all

#: Other fields up to which one list is counted in the same pass, each of them once a value, and not by another scan.
FEW_FIELDS = 4


@dataclass(frozen=True, slots=True)
class NativeList:
    """A list component: SQL of an entry's value and of what is counted for it, and the names of these two fields.

    Values are computed on tuples, NULL for those that have no entry. `most`: no more entries than that are kept of a
    slice and group, the largest.
    """

    value_sql: str
    count_sql: str
    value: str
    count: str
    most: int | None = None


def summarised(
    projected: DataFrame,
    keys: Sequence[str],
    components: Sequence[PlannedComponent],
    inputs: Sequence[Sequence[str]],
    extra: Sequence[tuple[str, str]] = (),
) -> DataFrame:
    """Partials: `keys`, the components' fields `c0…` in order, then `extra`, further (name, aggregate).

    `inputs` names the columns of `projected` that hold what each component reads of a tuple.
    """
    plain: list[tuple[str, str]] = []
    lists: list[NativeList] = []
    fields: list[str] = []
    for planned, read in zip(components, inputs, strict=True):
        own = [f"c{len(fields) + i}" for i in range(len(planned.fields))]
        card, sql = planned.card, planned.card.native_sql(planned, read)
        if card.by_value:
            most = card.rule.most if isinstance(card, ListCard) else None
            lists.append(NativeList(sql[0], sql[1], own[0], own[1], most))
        else:
            plain += zip(own, sql, strict=True)
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
    if len(lists) == 1 and len(plain) <= FEW_FIELDS and lists[0].most is None:
        # Tuples without a value are counted too, in a row that has none.
        return _by_value(projected, keys, lists[0], aggregates)
    parts = [projected.groupBy(*keys).agg(*aggregates)]
    parts += [_largest(_by_value(projected, keys, one).where(f"{one.value} IS NOT NULL"), keys, one) for one in lists]
    kinds = {name: kind for part in parts for name, kind in part.dtypes}
    aligned = [
        part.selectExpr(*(name if name in part.columns else f"CAST(NULL AS {kinds[name]}) AS {name}" for name in kinds))
        for part in parts
    ]
    return union_all(aligned)


def _by_value(projected: DataFrame, keys: Sequence[str], one: NativeList, more: Sequence[Column] = ()) -> DataFrame:
    by_value = projected.withColumn(one.value, F.expr(one.value_sql)).groupBy(*keys, one.value)
    return by_value.agg(*more, F.expr(f"{one.count_sql} AS {one.count}"))


def _largest(entries: DataFrame, keys: Sequence[str], one: NativeList) -> DataFrame:
    if one.most is None:
        return entries
    # Of equals the smaller value, so that the same tuples give the same entries however they are partitioned.
    order = Window.partitionBy(*keys).orderBy(F.col(one.count).desc(), F.col(one.value))
    ranked = entries.withColumn("rank", F.row_number().over(order))
    return ranked.where(F.col("rank") <= one.most).drop("rank")
