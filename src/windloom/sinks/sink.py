"""The interface of sinks: a sink takes the answers of a round, and may be given the same round again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.answers.blocks import Block
from windloom.errors import WindloomError
from windloom.model.clauses import AS_OF, REPORT, Emits
from windloom.model.query import Query
from windloom.model.types import as_array
from windloom.spark.api import SparkSession
from windloom.state.cells import number_groups


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of answers: its columns with their Spark types; its queries, each with its grouping columns.

    `rows` names the queries that report rows, of which several may be equal. All rows of a window come in one round,
    except for `pairs`: the interval joins, whose rows have no window. `asked` holds all queries as they were asked, for
    a sink that must know how their rows come and go.
    """

    columns: Mapping[str, str]
    queries: Mapping[str, tuple[str, ...]]
    rows: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    asked: Mapping[str, Query] = field(default_factory=dict)

    def emitting(self, kind: Emits) -> list[str]:
        """Return the queries with this emission: rows of EMIT CHANGES may be deletions, of EMIT EARLY withdrawals."""
        return [name for name, query in self.asked.items() if query.emission.kind is kind]


class RoundAnswers(Protocol):
    """The answers of a round, made while they are read; `tables` describes every table that the plan may fill."""

    @property
    def tables(self) -> Mapping[str, TableInfo]: ...

    def rows(self) -> Iterable[tuple[str, pa.Table]]:
        """Return finished rows, by name of their table; rows of a table may come in several parts."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Return rows as the step made them, before HAVING and expressions over aggregates; read instead of `rows`."""
        ...

    def until(self, query: str) -> int:
        """Return the tick up to which all windows of a query have been reported; none begins after the last tuple."""
        ...

    def schema(self, query: str) -> pa.Schema:
        """Return the columns of a query's rows, without `query`."""
        ...


class NotReadBackError(WindloomError):
    """The sink passes rows on, and they cannot be read back from it."""


class Sink(Protocol):
    """`write` is given whole rounds, in order; after a crash the last round comes again, with the same rows.

    The same happens without a crash if `write` raises SinkDownError, because the target of the sink is down: the round
    waits, and is given to the sink again. A class that inherits from this one gets defaults for the methods that not
    every sink needs.
    """

    def write(self, round: int, answers: RoundAnswers) -> Mapping[str, float] | None:
        """Take a round; may return figures of the round, by name, which `handle.progress` shows."""
        ...

    def rows(self, table: str) -> pa.Table | None:
        """Return the rows of a table, None if there are none yet; raise NotReadBackError if the sink cannot."""
        raise NotReadBackError(
            "the answers are not read back from here",
            "the sinks of the stream hand rows on to others",
            'read them there, or add a sink that keeps them: sink=[…, "live"]',
        )

    def close(self) -> None:
        """Close the sink; called when the stream has ended."""
        return


@runtime_checkable
class Selective(Protocol):
    """A sink that cannot take the rows of every query."""

    def check(self, query: Query) -> None:
        """Raise if the sink cannot take the query; called before any round has it."""
        ...


def check_query(sinks: Iterable[Sink], query: Query) -> None:
    """Refuse a query that one of the sinks cannot take."""
    for sink in sinks:
        if isinstance(sink, Selective):
            sink.check(query)


def read_back(sinks: Sequence[Sink], table: str) -> pa.Table | None:
    """Return the rows of a table, from the first sink that keeps rows."""
    refusals: list[NotReadBackError] = []
    for sink in sinks:
        try:
            rows = sink.rows(table)
        except NotReadBackError as error:
            refusals.append(error)
            continue
        if rows is not None:
            return rows
    if len(refusals) == len(sinks):
        raise refusals[0]
    return None


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """The checkpoint whose rounds a sink takes; the sink may keep its own files under its path."""

    spark: SparkSession
    checkpoint_path: str
    checkpoint_id: str


class NamedSink(Sink, Protocol):
    """A sink that is asked for by name.

    `open(place, *, …)` makes one. Its keyword arguments are the options of the sink; options from the command line are
    text. `target` is the name of the option that says where the sink writes (`path`, `url`); None for a sink that needs
    no target.
    """

    target: ClassVar[str | None]
    open: ClassVar[Callable[..., Any]]


#: How EMIT EARLY reports that a row no longer stands; each report of a window and group replaces the one before it.
WITHDRAWN = "withdrawn"


def replaced(
    rows: pa.Table, keys: Sequence[str], *, is_ordered: bool = True, keeps_withdrawn: bool = False
) -> pa.Table:
    """Return the last report of every window and group, in the order of rows; withdrawn rows are left out.

    `keys` are the grouping columns, and `query` if there are rows of several queries. Rows are in the order of rounds;
    if they are not (`is_ordered=False`), their `as_of` decides, and a row without one is the last report.
    """
    if not rows.num_rows:
        return rows
    by = np.zeros(rows.num_rows, np.int64)
    if not is_ordered:
        ticks = as_array(rows[AS_OF]).cast(pa.int64())
        by = ticks.fill_null(np.iinfo(np.int64).max).to_numpy(zero_copy_only=False)
    chosen = np.sort(_last(rows, ["window_start", "window_end", *keys], by))
    reports = rows.take(pa.array(chosen))
    return reports if keeps_withdrawn else reports.filter(pc.not_equal(reports[REPORT], WITHDRAWN))


def present(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the present result: all provisional rows, and the final row of each group in its last window."""
    is_final = pc.equal(rows[REPORT], "final")
    final = rows.filter(is_final)
    if not final.num_rows:
        return rows
    last = _last(final, keys, as_array(final["window_end"]).cast(pa.int64()).to_numpy())
    return pa.concat_tables([rows.filter(pc.invert(is_final)), final.take(pa.array(np.sort(last)))])


def _last(rows: pa.Table, keys: Sequence[str], by: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each group with the largest value of `by`; the last such row if there are several."""
    arrays = [as_array(rows[key]) for key in keys]
    numbers, _ = number_groups(arrays, rows.num_rows)
    last_rows = np.zeros(int(numbers.max()) + 1, np.int64)
    order = np.argsort(by, kind="stable")
    last_rows[numbers[order]] = order  # of several, the last one stays
    return last_rows
