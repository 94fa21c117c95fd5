"""Windows of rows: `[ROWS 1000 SLIDE 100]`, a number of tuples in order of time."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.clauses import Emits
from windloom.model.expression import Expression
from windloom.model.windows.window import Window


@dataclass(frozen=True, slots=True)
class RowsWindow(Window):
    """Windows `[k·slide + offset, k·slide + offset + range)` of positions of tuples.

    Positions are counted separately for every value of `partition_by`, which has no order: `PARTITION BY a, b` counts
    like `PARTITION BY b, a`.

    >>> RowsWindow(1000, 10).short
    '1000 rows / 10'
    """

    range_ticks: int
    slide_ticks: int
    offset_ticks: int = 0
    partition_by: tuple[Expression, ...] = ()

    kind = "rows"
    listed_at = 3
    example = "[ROWS 1000 SLIDE 100]"
    plural = "windows of rows"
    is_of_positions = True
    join_obstacle = "positions of two streams have no instant in common"
    enriched_obstacle = "they count the tuples of a stream, whether these match or not"
    reports_rows = False
    native_obstacle = "has windows of rows"
    wide_obstacle = "its windows end at positions, which no watermark tells"
    passed_text = "its last tuple"
    emission_obstacles = {  # noqa: RUF012 - a constant
        Emits.EARLY: "which tuples a window holds is known when no earlier one can come: then it is final",
        **dict.fromkeys(
            (Emits.CHANGES, Emits.EMPTY), "they end at positions, not at instants that all groups have in common"
        ),
    }

    def __post_init__(self) -> None:
        self._check([("number of rows", self.range_ticks), ("slide", self.slide_ticks)])
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.slide_ticks)
        object.__setattr__(self, "partition_by", tuple(sorted(set(self.partition_by))))

    def with_slide(self, slide_ticks: int) -> RowsWindow:
        return RowsWindow(self._range_at(slide_ticks), slide_ticks, self.offset_ticks, self.partition_by)

    @property
    def set_identity(self) -> tuple[str, ...]:
        return ("rows", *(expression.sql for expression in self.partition_by))

    @property
    def set_text(self) -> str:
        keys = ", ".join(map(str, self.partition_by))
        return f"[PARTITION BY {keys} ROWS]" if keys else "[ROWS]"

    @property
    def counted_by(self) -> tuple[Expression, ...] | None:
        return self.partition_by

    def _written(self) -> str:
        keys = ", ".join(str(expression) for expression in self.partition_by)
        counted = f"PARTITION BY {keys} " if keys else ""
        return f"{counted}ROWS {self.range_ticks} SLIDE {self.slide_ticks}"

    def _short_lengths(self) -> str:
        return f"{self.range_ticks} rows" + (" tumbling" if self.is_tumbling else f" / {self.slide_ticks}")

    def intervals_text(self) -> str:
        of = f" of each {', '.join(map(str, self.partition_by))}" if self.partition_by else ""
        return f"positions [p, p + {self.range_ticks}){of} for every p = {self._multiples()}"
