"""Sequences: the values of a window in order of event time, as lists of (time, value) with counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import ListWindows, PlannedArgument, argument_sql
from windloom.aggregates.columns import ListColumns, ListRule, no_lists, ranks_of
from windloom.aggregates.frequencies import Frequencies, array_type, arrays_of
from windloom.aggregates.picks import pick_pairs
from windloom.kernels.lists.lists import Members, Question
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples, list_values
from windloom.model.aggregate import Aggregate, Function
from windloom.model.types import arrow_type


class Sequences(Frequencies):
    kinds = ("sequences",)
    rule = ListRule("sequences")
    is_ranked = False
    by_tick = kinds
    functions = (Function("collect_list", kinds, array_type, {"array_agg": ()}),)

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> ListColumns:
        assert read.by is not None
        pairs = pick_pairs(set_tuples.tuples.column(read.by).column, set_tuples.argument(read).column)
        ranks, dictionary = ranks_of(pairs)
        lists = list_values(set_tuples, read, ranks, len(dictionary))
        return ListColumns(self.rule, lists, dictionary).without_unused()

    def neutral(self, planned: PlannedArgument, count: int) -> ListColumns:
        assert planned.argument_type is not None
        pair = pa.struct([("by", pa.int64()), ("value", arrow_type(planned.argument_type))])
        return no_lists(self.rule, pair, count)

    def question(self, aggregate: Aggregate, context: ListWindows) -> Question:
        return Members(context.codes, repeats=True)

    def answer(self, aggregate: Aggregate, question: Any, listed: ListColumns, rows: slice) -> pa.Array:
        lists = question.items
        bounds = lists.bounds[rows.start : rows.stop + 1]
        entries = slice(int(bounds[0]), int(bounds[-1]))
        codes, counts = lists.codes[entries], lists.counts[entries]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return arrays_of(listed.dictionary.field("value"), np.repeat(codes, counts), ends[bounds - bounds[0]])

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        value = argument_sql(aggregate)
        pair = f"CASE WHEN ({value}) IS NOT NULL THEN named_struct('y', {tick}, 'x', {value}) END"
        return f"transform(array_sort(collect_list({pair})), __each -> __each.x)"
