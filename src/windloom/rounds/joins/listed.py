"""Lists of values of one side, added up over all matches: holistic aggregates of a join are answered from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.listed import Listed
from windloom.errors import WindloomError
from windloom.kernels.folds.lists import add_lists, match_rows
from windloom.kernels.folds.matching import Stretches
from windloom.kernels.lists.cells import Lists, reduce_lists
from windloom.rounds.joins.partner import Partner
from windloom.rounds.joins.rows import ListedRows

#: Matches that are collected before they are added up.
PENDING_MATCHES = 1 << 20

Matches = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]


class ListFold:
    """The lists of `owner`, each counted as often as `times` says for the row of `other` that it meets."""

    def __init__(self, lists: ListedRows, owner: Partner, other: Partner, times: NDArray[np.int64], rows: int) -> None:
        self._held, self._owner, self._other, self._times = lists, owner, other, times
        self._made = Lists(np.zeros(rows + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
        self._pending: list[Matches] = []

    def add(self, stretches: Stretches) -> None:
        rows = (self._owner.rows(stretches), self._other.rows(stretches), stretches.out, stretches.length)
        self._pending.append(match_rows(*rows, self._owner.last, self._times, self._other.last))
        if sum(len(outs) for outs, _, _ in self._pending) >= PENDING_MATCHES:
            self._add_up()

    def done(self) -> ListedRows:
        self._add_up()
        listed = self._held.listed
        cells = self._made if listed.rule.most is None else reduce_lists(self._made, listed.rule.most)
        return one_each(replace(listed, cells=cells))

    def _add_up(self) -> None:
        if not self._pending:
            return
        outs, rows, times = (np.concatenate(columns) for columns in zip(*self._pending, strict=True))
        self._pending = []
        listed = self._held.listed
        runs = (self._held.lo, self._held.hi)
        matched = (outs, rows, times)
        added = add_lists(self._made, listed.cells, len(listed.dictionary), matched, runs, largest=listed.rule.largest)
        if added is None:
            raise WindloomError(
                "a join has too many matches",
                "a value of a list would count 2^63 times or more",
                "join on more columns, or use a shorter window",
            )
        self._made = added


def one_each(listed: Listed) -> ListedRows:
    """Return rows with one cell each."""
    lo = np.arange(len(listed), dtype=np.int32)
    return ListedRows(listed, lo, lo + np.int32(1))
