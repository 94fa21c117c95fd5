"""Relations in a round: whether one has changed, streams that are joined with them, and versions on the driver.

Whether a relation has changed is found from the plans of two frames and their files, without reading a row. Spark joins
streams with relations as their tuples come in, before anything is projected. A version of a retroactive relation comes
to the driver: one job projects what queries need, then the cells are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.answers.joins.sides import no_cells
from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.stream import EnrichedStream
from windloom.plan.plan import Plan, PlannedRelation
from windloom.spark.collect import collected, estimated_bytes
from windloom.spark.errors import as_windloom_errors
from windloom.spark.projection import projected
from windloom.state.cells import Cells
from windloom.weave.round_input import take_together, take_tuples

#: The times at which files were last read, which do not matter.
_READ_TIMES = re.compile(r"access_time=\d+")
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
#: A relation is sent to every executor, and no tuple is shuffled, unless Spark estimates it at more than this.
BROADCAST_BYTES = 512 << 20
#: From this size on, Spark's estimate means that it does not know the size.
_UNKNOWN_BYTES = 1 << 62
_HOW = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """A frame from which a version was read; `files` are the files it read, None if it read anything else too."""

    frame: DataFrame
    files: str | None

    @classmethod
    def of(cls, frame: DataFrame) -> SeenFrame:
        return cls(frame, _files_of(frame))

    def is_same(self, frame: DataFrame) -> bool:
        """Return whether another frame certainly gives the same rows.

        The same DataFrame does: a relation that changes is given as a new DataFrame. Two DataFrames do if they are the
        same query over the same files, which have neither changed nor moved.
        """
        if frame is self.frame:
            return True
        if self.files is None or self.files != _files_of(frame):
            return False
        try:
            return bool(self.frame.sameSemantics(frame))
        except Exception:  # a remote session does not compare plans
            return False


def _files_of(frame: DataFrame) -> str | None:
    """Return paths, sizes and times of all files that a frame reads; None if it reads or may read anything else."""
    try:
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        listings = []
        for index in range(leaves.size()):
            leaf = leaves.apply(index)
            relation = leaf.relation() if leaf.nodeName().startswith("LogicalRelation") else None
            if relation is None or relation.getClass().getName() != _FILES:
                return None
            listings.append(str(relation.location().allFiles().mkString("\n")))
    except Exception:  # a remote session does not show its plan, and not every index of files lists them
        return None
    return _READ_TIMES.sub("", "\n\n".join(listings))


def enriched_frame(stream: EnrichedStream, base: DataFrame, versions: Mapping[str, DataFrame]) -> DataFrame:
    """Return the tuples of `base` with the columns of all relations, named as in the enriched stream."""
    frame = base
    for enrichment in stream.enrichments:
        version = versions[enrichment.relation]
        renamed = version.select(
            *(F.col(Expression.of_column(name).sql).alias(enrichment.column(name)) for name in version.columns)
        )
        size = known_bytes(renamed)
        frame = frame.join(
            F.broadcast(renamed) if size is None or size <= BROADCAST_BYTES else renamed,
            F.expr(enrichment.on.sql),
            _HOW[enrichment.kind],
        )
    return frame


def known_bytes(frame: DataFrame) -> int | None:
    """Return Spark's estimate of the size of a frame, or None if it has none."""
    size = estimated_bytes(frame)
    return None if size is None or size >= _UNKNOWN_BYTES else size


@dataclass(frozen=True, slots=True)
class RoundFrames(Mapping[str, DataFrame]):
    """The frames of a round by stream; frames of enriched streams are made when they are asked for."""

    plan: Plan
    frames: Mapping[str, DataFrame]
    versions: Mapping[str, DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.watched(name, lambda frame: frame)

    def watched(self, name: str, watching: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return the frame of a stream, with `watching` applied to its tuples before they are joined."""
        stream = next((enriched_stream for enriched_stream in self.plan.enriched if enriched_stream.name == name), None)
        if stream is None:
            return watching(self.frames[name])
        return enriched_frame(stream, watching(self.frames[stream.base]), self.versions)

    def __iter__(self) -> Iterator[str]:
        """Yield the streams of the round that have tuples; enriched streams are not among them."""
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, slots=True)
class TakenVersion:
    """The cells of a version, by number of the set, and how many of its rows some query wants."""

    cells: dict[int, Cells]
    rows: int

    @property
    def nbytes(self) -> int:
        return sum(cells.nbytes for cells in self.cells.values())


def take_version(plan: Plan, planned: PlannedRelation, frame: DataFrame, limit: int | None = None) -> TakenVersion:
    """Return the cells of every set of a relation, even if it has none; raise if they take more than `limit` bytes."""
    relation, scan = planned.relation, planned.scan
    cells_by_set = {number: no_cells(plan.sets[number]) for number in planned.sets}
    if scan is None:
        return TakenVersion(cells_by_set, 0)
    parts, rows, size = [], 0, 0
    with as_windloom_errors(f"relation '{relation.name}'"):
        for table in collected(projected(scan, relation, frame), f"relation '{relation.name}'"):
            parts.append(take_tuples(plan, scan, table))
            rows += table.num_rows
            size += sum(cells.nbytes for cells in parts[-1].cells.values())
            if limit is not None and size > limit:
                raise WindloomError(
                    f"relation '{relation.name}' is larger than the driver holds",
                    f"what queries need of it is more than {size / 2**20:,.0f} MiB, of {limit / 2**20:,.0f} MiB",
                    f"declare it NONRETROACTIVE, and tuples are joined with it on the executors as they come in;"
                    f" or let queries read fewer columns of '{relation.name}'",
                )
    return TakenVersion({**cells_by_set, **(take_together(parts).cells if parts else {})}, rows)
