"""User-defined aggregates: lift, combine and lower are the user's own functions, compiled.

Their tuples are always woven, because Spark's own aggregation cannot run the functions. A window without
a value is NULL, whatever the function makes of the neutral value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import Parts, PlannedArgument, Refuse, ValueAggregator, argument_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns, valid_in
from windloom.errors import WindloomError
from windloom.kernels.families import Columns, Family
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.user_families import lower_rows, number_kind, update, user_family
from windloom.model.aggregate import Aggregate, UserDefined
from windloom.model.types import DataType, TypeKind, with_nulls


class UserAggregates(ValueAggregator):
    """One aggregator for all user-defined aggregates: the component holds what differs."""

    def family(self, planned: PlannedArgument) -> Family:
        return user_family(own_of(planned))

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        column = set_tuples.argument(read)
        is_whole = own_of(planned).argument.kind is TypeKind.INTEGER
        out = self.family(planned).neutral(len(set_tuples.grid))
        update(*set_tuples.where(read, read.argument), column.integers if is_whole else column.floats, out)
        valid = valid_in(set_tuples, read)
        return ComponentColumns((type(out)(*(set_tuples.taken(values) for values in out)),), valid)

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        assert aggregate.own is not None
        valid, columns = combined[0].valid, combined[0].limbs[0]
        wanted = np.ones(len(columns[0]), np.bool_) if valid is None else valid
        out = np.zeros(len(wanted), number_kind(aggregate.own.result))
        lower_rows(columns, wanted, out)
        return with_nulls(out, valid)

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        """Return the list of all arguments of a window, from which `fold` computes the answer."""
        assert aggregate.own is not None
        return f"collect_list(CAST({argument_sql(aggregate)} AS {aggregate.own.argument}))"


def own_of(planned: PlannedArgument) -> UserDefined:
    assert planned.component.own is not None
    return planned.component.own


def restored(planned: PlannedArgument, lifted: AnyLifted) -> AnyLifted:
    """Return cells that were read from a file, as cells of the aggregate's own family."""
    assert isinstance(lifted, ComponentColumns)
    family = user_family(own_of(planned))
    stored: Columns = lifted.limbs[0]
    if stored._fields != family.columns._fields:
        raise WindloomError(
            f"aggregate '{family.name}' is not the one that the state was made with",
            f"its values have the fields {', '.join(family.columns._fields)}, those of the state had"
            f" {', '.join(stored._fields)}",
            "define it as it was, or give the new one another name",
        )
    columns = (column.astype(kind) for column, kind in zip(stored, family.kinds, strict=True))
    return ComponentColumns((family.of(*columns),), lifted.valid)


def fold(own: UserDefined, arguments: Sequence[float | None] | None) -> float | int | bool | None:
    """Return the definition: lifts every argument and combines them from left to right, in plain Python."""
    known = [argument for argument in arguments or () if argument is not None]
    if not known:
        return None
    try:
        total = own.lift(known[0])
        for argument in known[1:]:
            total = own.combine(total, own.lift(argument))
        answer = own.lower(total)
    except (ArithmeticError, ValueError) as error:
        # Compiled code gives NaN or infinity here, and there is nothing to compare it with.
        raise WindloomError(
            f"aggregate '{own.name}' cannot be computed in plain Python",
            f"{type(error).__name__}: {error}; its arguments are from {min(known)} to {max(known)}",
            "leave out such arguments with FILTER or WHERE, or define the functions for them",
        ) from None
    if own.result.kind is TypeKind.BOOLEAN:
        return bool(answer)
    return int(answer) if own.result.kind is TypeKind.INTEGER else float(answer)
