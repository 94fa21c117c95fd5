"""Registers: the largest rank of a hash in each register, for approximate distinct counts (HyperLogLog)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import ListWindows, PlannedArgument
from windloom.aggregates.columns import ListColumns, ListRule
from windloom.aggregates.frequencies import Frequencies, count_type
from windloom.kernels.compiling import new_array
from windloom.kernels.families import REGISTERS
from windloom.kernels.hashing import hash_integers, pack_ranks
from windloom.kernels.lists.lists import Question, RegisterQuestion
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples, list_values
from windloom.model.aggregate import PACKED_RANK_BITS, RANK_BITS, REGISTER_BITS, STANDARD_ERROR, Aggregate, Function
from windloom.model.aggregate import REGISTERS as COUNT
from windloom.model.types import DataType, TypeKind, as_integers

#: Verification rejects an estimate that is off by more standard errors; by chance, one in two million is.
_STANDARD_ERRORS = 5


class Registers(Frequencies):
    kinds = ("registers",)
    combined_by = REGISTERS
    rule = ListRule("registers", largest=True)
    value_type = pa.int64()
    is_ranked = False
    woven_without_spark = (TypeKind.INTEGER,)
    functions = (Function("approx_count_distinct", kinds, count_type, is_approximate=True),)

    def woven_sql(self, argument: str, kind: DataType | None) -> str:
        """Return register and rank in one number, the rank in the lowest bits; NULL for NULL.

        The register is the lowest bits of the hash. The rank is one more than the number of trailing zeros of its other
        bits; the largest rank if all of them are zero.
        """
        hashed = f"xxhash64({argument})"
        rest = f"(shiftrightunsigned({hashed}, {64 - RANK_BITS}) | {1 << RANK_BITS}L)"
        rank = f"CAST(bit_count({rest} ^ ({rest} - 1L)) AS BIGINT)"
        packed = f"shiftleft(({hashed} & {COUNT - 1}L), {PACKED_RANK_BITS}) | {rank}"
        return f"if(({argument}) IS NOT NULL, {packed}, NULL)"

    def woven_arrow(self, argument: pa.Array) -> pa.Array:
        values, is_long = as_integers(argument), argument.type == pa.int64()
        packed = pack_ranks(hash_integers(values, is_long), REGISTER_BITS, PACKED_RANK_BITS)
        return pa.array(packed, mask=argument.is_null().to_numpy(zero_copy_only=False) if argument.null_count else None)

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> ListColumns:
        lists = list_values(set_tuples, read, set_tuples.argument(read).integers, COUNT, PACKED_RANK_BITS)
        return ListColumns(self.rule, lists, pa.array(np.arange(COUNT))).without_unused()

    def question(self, aggregate: Aggregate, context: ListWindows) -> Question:
        return RegisterQuestion(context.codes, new_array(context.rows, np.int64))

    def is_within(self, aggregate: Aggregate, truth: Any, answer: Any) -> bool:
        return bool(abs(answer - truth) <= _STANDARD_ERRORS * STANDARD_ERROR * truth + 1)
