"""What the woven intake takes of a stream: which expressions Spark evaluates per tuple, and which sets read them."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.expression import Expression
from windloom.weave.cut import Read
from windloom.weave.tuples import SIGNATURE_BITS, Bits


@dataclass(frozen=True, slots=True)
class Projected:
    """One column of the projected tuples: SQL that Spark evaluates.

    `guards` are sets of signature bits: the SQL is evaluated for tuples that have all bits of one of them, and is NULL
    for others. Behind a predicate or a FILTER, an expression may fail on tuples that nobody wants. None: the SQL is
    evaluated for every tuple.
    """

    sql: str
    guards: tuple[Bits, ...] | None = None


@dataclass(frozen=True, slots=True)
class WovenSet:
    """How the cells of a set are made from tuples: those that have the predicate's bit, grouped by columns."""

    number: int  # of the set
    bit: int | None  # None: every tuple of the scan
    groups: tuple[int, ...]
    components: tuple[Read, ...]


@dataclass(frozen=True, slots=True)
class WovenScan:
    """One reading of a stream whose projected tuples become the cells of all its sets, by compiled kernels.

    A tuple's signature says which of `predicates` it satisfies: bit i for the i-th. The first `wanting` of them are
    predicates of sets, the others conditions of FILTERs. `where` is what every set's predicate implies, so that tuples
    outside it are never projected. With `only_signed`, tuples that satisfy no predicate of a set are left out as well.
    """

    number: int
    stream: str
    where: Expression | None
    predicates: tuple[Expression, ...]
    wanting: int
    only_signed: bool
    columns: tuple[Projected, ...]
    feeds: tuple[WovenSet, ...]
    counted_by: tuple[Expression, ...] | None = None  # None: slices are of time, else of positions

    @property
    def words(self) -> int:
        """Columns that the signature takes."""
        return -(-len(self.predicates) // SIGNATURE_BITS)

    @property
    def sees_all(self) -> bool:
        """Every tuple of the stream is among its projected tuples."""
        return self.where is None and not self.only_signed and self.counted_by is None
