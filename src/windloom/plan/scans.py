"""Scans: how the tuples of a stream become the cells of the sets that read it.

A *native* scan is one `groupBy` of Spark: its partials, by slice, signature and group, are rolled up to the sets. A
*woven* scan only projects tuples; compiled kernels make the cells of all its sets from them. Both give the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from windloom.aggregates.registry import PlannedComponent
from windloom.expressions.node import Node
from windloom.kernels.tuples.set_tuples import ComponentInput
from windloom.kernels.tuples.signatures import SIGNATURE_BITS, Bits
from windloom.model.expression import Expression
from windloom.model.types import BIGINT, DataType
from windloom.model.windows import Window
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import SliceId

# A projection that needs no Spark: the expressions of a woven scan with their types, for Arrow columns.


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """One projected column. With `component`, its aggregator makes the column from the value of the expression."""

    node: Node
    component: PlannedComponent | None = None


@dataclass(frozen=True, slots=True)
class LocalProjection:
    """The columns that a woven scan projects; `reads` are the stream's columns that it needs, including the time."""

    reads: tuple[str, ...]
    where: Node | None
    predicates: tuple[Node, ...]
    columns: tuple[LocalColumn, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The tuples that a scan reads of a stream. The signature of a tuple shows which of `predicates` it satisfies.

    It has one bit for each. The first `wanting` of them are predicates of sets, the others conditions of FILTERs.
    `where` is a condition that every set's predicate implies, so that other tuples are never read. With `only_signed`,
    tuples that satisfy no predicate of a set are left out as well.
    """

    where: Expression | None = None
    predicates: tuple[Expression, ...] = ()
    wanting: int = 0
    only_signed: bool = False

    @property
    def words(self) -> int:
        """The number of columns of the signature."""
        return -(-len(self.predicates) // SIGNATURE_BITS)

    @property
    def wanting_bits(self) -> list[int]:
        """The bits of the predicates of sets, by word. The condition of a FILTER alone does not make a tuple wanted."""
        words = [0] * self.words
        for bit in range(self.wanting):
            words[bit // SIGNATURE_BITS] |= 1 << bit % SIGNATURE_BITS
        return words

    @property
    def sees_all(self) -> bool:
        """Whether every tuple of the stream is read."""
        return self.where is None and not self.only_signed


@dataclass(frozen=True, slots=True)
class NativeFeed:
    """A set that a native scan feeds, and how partials of the scan become those of the set.

    Partials whose signature has the predicate's bit are rolled up to the set's grouping; a component with a filter
    takes those that have the filter's bit as well.
    """

    number: int  # of the set
    bit: int | None  # None: every tuple of the scan
    groups: tuple[int, ...]  # the set's grouping columns, as positions among those of the scan
    components: tuple[int, ...]  # the set's components, as positions among those of the scan
    filters: tuple[int | None, ...]  # for each of them, the bit of its filter


@dataclass(frozen=True, slots=True)
class NativeScan:
    """One `groupBy` over a stream, by slice, signature and the grouping columns of all its sets.

    It `tells` which tuples are late and how far the stream has come, unless a woven scan of the same stream does so.
    """

    number: int
    stream: str
    signature: Signature
    group_by: tuple[Expression, ...]
    group_types: tuple[DataType, ...]
    components: tuple[PlannedComponent, ...]  # the first is always COUNT(*)
    edges: EdgeSet
    slice_id: SliceId
    feeds: tuple[NativeFeed, ...]
    tells: bool = True
    why: str = field(default="", compare=False)  # it was chosen

    @property
    def key_types(self) -> tuple[DataType, ...]:
        """The types of the columns that distinguish its partials of one slice: signature, then grouping."""
        return (BIGINT,) * self.signature.words + self.group_types

    @property
    def is_plain(self) -> bool:
        """Whether its partials are those of its only set."""
        return len(self.feeds) == 1 and not self.signature.predicates


@dataclass(frozen=True, slots=True)
class ProjectedColumn:
    """One column of the projected tuples: SQL that Spark evaluates.

    `guards` are sets of signature bits: the SQL is evaluated for tuples that have all bits of one of them, and is NULL
    for others, because an expression may fail on tuples that a predicate or a FILTER excludes. If `guards` is None, the
    SQL is evaluated for every tuple. `component` is set if its aggregator projects something other than its argument.
    """

    sql: str
    guards: tuple[Bits, ...] | None = None
    component: PlannedComponent | None = field(default=None, compare=False)

    def guarded_sql(self, predicates: Sequence[Expression], sql: str | None = None) -> str:
        """Return the SQL, or `sql` instead, evaluated only where it is needed; `predicates` are the signature's."""
        sql = self.sql if sql is None else sql
        if self.guards is None:
            return sql
        satisfied = " OR ".join(" AND ".join(f"({predicates[bit].sql})" for bit in bits) for bits in self.guards)
        return f"CASE WHEN {satisfied} THEN {sql} END"


#: Finer cells are rolled up if there are at least this many times more tuples than cells.
FEW_CELLS = 8
#: At least this many predicates of one grouping are needed for sets to be rolled up from signatures.
FEWEST_SIGNED = 3
#: Rolling up must take less than this part of the work, since it comes before all other work and fewer threads do it.
SIGNED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The expected number of sets that are rolled up from cells by signature, and of their signatures.

    Kernels decide again for the tuples at hand.
    """

    sets: int
    signatures: float


@dataclass(frozen=True, slots=True)
class WovenFeed:
    """A set that a woven scan feeds, from tuples that have the bit of its predicate, grouped by columns.

    `via` are sets of the same tuples in finer groups, whose cells hold everything that this set needs: if those cells
    are few, they are rolled up instead.
    """

    number: int  # of the set
    bit: int | None  # None: every tuple of the scan
    groups: tuple[int, ...]
    components: tuple[ComponentInput, ...]
    via: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyedSet:
    """A set whose tuples folds read: cut at `edges`, grouped by the key and by some of the columns `outs` of the feed.

    `cells` are the edges at which others need its cells; None if nothing else needs them.
    """

    number: int
    edges: EdgeSet
    outs: tuple[int, ...]
    cells: EdgeSet | None


@dataclass(frozen=True, slots=True)
class KeyedFeed:
    """Tuples that folds read in order of a join key, in a batch run on the driver, instead of the cells of `sets`.

    Columns are given by position: the key, the columns by which tuples are grouped besides, the values that are added
    up, and the columns in which tuples are counted. A row of the band that a tuple meets has `width` slices.
    """

    key: int
    bit: int | None
    outs: tuple[int, ...]
    values: tuple[int, ...]
    counted: tuple[int, ...]
    sets: tuple[KeyedSet, ...]
    width: float

    @property
    def edges(self) -> EdgeSet:
        return EdgeSet.of(edge_class for keyed_set in self.sets for edge_class in keyed_set.edges.classes)


@dataclass(frozen=True, slots=True)
class RetainedColumns:
    """The tuples that a scan gives to the store of the stream: those that have one of `bits`; all if it is None.

    `places` are the columns of the store among those of the scan; None for the time column, which the tick gives.
    `strands` are those that read the store, by name of their query and window, with the bits of their predicates: the
    scan reports which of their tuples are late.
    """

    names: tuple[str, ...]
    places: tuple[int | None, ...]
    bits: tuple[int, ...] | None
    strands: tuple[tuple[str, Window, int | None], ...] = ()
    conditions: tuple[tuple[str, int | None], ...] = ()  # the SQL of the strands' conditions, and its bit


@dataclass(frozen=True, slots=True)
class WovenScan:
    """One projection of a stream's tuples, from which kernels make the cells of all its sets.

    `counted_by` is None if slices are of time; if positions are sliced, it holds the keys by which tuples are counted.
    `watched` are sets that another scan feeds, mainly those of positions, with their bits: for each stream, a single
    scan whose slices are of time reports which tuples are late. `log` is what the log of a round keeps of the scan:
    tuples, cells, or whichever of the two are smaller. `kept` is set if the stream has a store. `local` is set if the
    driver may read the stream's files and project their tuples itself; if that fails after all, Spark does it.
    `keyed` are tuples that folds may read instead of cells.
    """

    number: int
    stream: str
    signature: Signature
    columns: tuple[ProjectedColumn, ...]
    feeds: tuple[WovenFeed, ...]
    counted_by: tuple[Expression, ...] | None = None
    watched: tuple[tuple[int, int | None], ...] = ()
    why: str = field(default="", compare=False)  # it was chosen
    log: str = "smaller"
    kept: RetainedColumns | None = None
    local: LocalProjection | None = field(default=None, compare=False)
    rolled_up: RolledUp | None = field(default=None, compare=False)
    keyed: tuple[KeyedFeed, ...] = ()


Scan = NativeScan | WovenScan
