"""What every kind of window defines; no other code asks for the kind of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from windloom.errors import WindloomError
from windloom.model.aggregate import Component
from windloom.model.clauses import Emits
from windloom.model.expression import Expression
from windloom.model.formatting import amount, share, short_duration
from windloom.model.time import format_duration

#: The longest range, slide or offset (about 10,000 years), which keeps window arithmetic inside 64 bits.
MAX_TICKS = 2**58


class Window(ABC):
    """The windows of a query. For slicings and costs they are `[k·slide + offset, k·slide + offset + range)`.

    Windows of time and of rows are exactly those. A kind that has other windows defines the stretches of this form
    that they are made of.
    """

    __slots__ = ()

    #: The name of the kind, in JSON and in registries.
    kind: ClassVar[str]
    #: How a window of the kind is written, and other ways to write one.
    example: ClassVar[str]
    further_examples: ClassVar[tuple[str, ...]] = ()
    #: Its place where kinds are listed.
    listed_at: ClassVar[int] = 9
    #: Spark's function that makes windows of the kind, if there is one.
    function: ClassVar[str | None] = None
    #: The kind in a few words: `windows of time`.
    plural: ClassVar[str]
    #: Whether its ticks are positions of tuples instead of time.
    is_of_positions: ClassVar[bool] = False
    #: Whether slices stay as they are cut for as long as a window needs them, as aggregates by slice require.
    keeps_slices: ClassVar[bool] = True
    #: Whether its cells are slices, cut at edges that are known beforehand.
    is_sliced: ClassVar[bool] = True
    #: Whether it holds a version of a relation: then it has no time, and the next version replaces its cells.
    is_version: ClassVar[bool] = False
    #: Why its windows cannot be joined with those of another stream.
    join_obstacle: ClassVar[str | None] = None
    #: Why it cannot be a window over tuples that are joined with a relation.
    enriched_obstacle: ClassVar[str | None] = None
    #: Why a query over these windows cannot report its rows with a kind of emission.
    emission_obstacles: ClassVar[Mapping[Emits, str]] = {}
    #: Why Spark's own aggregation cannot make its partials, as a phrase about a query: `has windows of rows`.
    native_obstacle: ClassVar[str | None] = None
    #: Why no watermark determines the last complete window of every group.
    wide_obstacle: ClassVar[str | None] = None
    #: How many slices a window has, as a phrase without its subject; `{}` stands for the number of them.
    slices_phrase: ClassVar[str] = "spans {}"
    #: The windows that a tuple lies in, as a phrase without its subject; by default, those that slide over it.
    tuple_phrase: ClassVar[str] = ""
    #: The point that the watermark must pass before a window is reported.
    passed_text: ClassVar[str] = "its end"
    #: Whether the rows that its windows hold can be reported.
    reports_rows: ClassVar[bool] = True
    #: Whether the cells of a coarse grouping can be made from those of a finer one.
    rolls_up: ClassVar[bool] = True
    #: The components that its sets keep besides COUNT(*) and those that queries ask for.
    components: ClassVar[tuple[Component, ...]] = ()

    if TYPE_CHECKING:

        @property
        def range_ticks(self) -> int: ...

        @property
        def slide_ticks(self) -> int: ...

        @property
        def offset_ticks(self) -> int: ...

    # ---- lengths ------------------------------------------------------------------------------------------------

    def _check(self, lengths: Iterable[tuple[str, int]]) -> None:
        """Refuse lengths (name, ticks) that no window can have."""
        for what, ticks in lengths:
            if ticks <= 0:
                raise WindloomError(
                    f"the {what} of a window must be positive, not {self.length_text(ticks)}",
                    hint=f"for example {self.example}",
                )
            if ticks > MAX_TICKS:
                raise WindloomError(
                    f"the {what} {self.length_text(ticks)} is too long", hint=f"at most {self.length_text(MAX_TICKS)}"
                )

    @property
    def is_tumbling(self) -> bool:
        """Whether every tuple lies in exactly one window."""
        return self.range_ticks == self.slide_ticks

    @property
    def overlap(self) -> float:
        """The average number of these stretches that hold one tuple: range / slide."""
        return self.range_ticks / self.slide_ticks

    @property
    def windows_per_tuple(self) -> float | None:
        """The average number of windows that hold one tuple; None means every window that ends after it."""
        return self.overlap

    @property
    def extent_ticks(self) -> int | None:
        """The most ticks from the beginning of a window to its end; None if it grows without bound."""
        return self.range_ticks

    @property
    def restart_ticks(self) -> int | None:
        """The ticks after which windows begin again, if all that end in between begin together; None if they slide."""
        return None

    def last_start(self, tick: int) -> int:
        """Return the latest `k·slide + offset` at or before the tick."""
        return tick - (tick - self.offset_ticks) % self.slide_ticks

    @property
    def end_ticks(self) -> int:
        """Where windows end, modulo the slide. Two windows end together if these values and the slides are equal."""
        return (self.offset_ticks + self.range_ticks) % self.slide_ticks

    @abstractmethod
    def with_slide(self, slide_ticks: int) -> Window:
        """Return windows of this kind with another slide; a range of whole slides stays one, as nearly as possible."""

    def _range_at(self, slide_ticks: int) -> int:
        length = self.range_ticks
        if length % self.slide_ticks == 0:
            length = max(1, round(length / slide_ticks)) * slide_ticks
        return length

    # ---- sets and scans -----------------------------------------------------------------------------------------

    @property
    def set_identity(self) -> tuple[str, ...]:
        """The kind's part of the identity of a set; windows with equal parts are answered from the same cells."""
        return ()

    @property
    def set_text(self) -> str:
        """The kind's part of the identity as a user would write it, `[SESSION GAP 5 minutes]`; empty if it has none."""
        return ""

    @property
    def counted_by(self) -> tuple[Expression, ...] | None:
        """The keys (perhaps none) by which tuples are counted, if positions are sliced; None if slices are of time."""
        return None

    # ---- words --------------------------------------------------------------------------------------------------

    @property
    def _sort_key(self) -> tuple[object, ...]:
        lengths = self.range_ticks, self.slide_ticks, self.offset_ticks
        return *lengths, self.kind, self.restart_ticks or 0, self.counted_by or ()

    def __lt__(self, other: Window) -> bool:
        return self._sort_key < other._sort_key

    def length_text(self, ticks: int) -> str:
        """Return a length as people write it: a duration, or a number of rows."""
        return str(ticks) if self.is_of_positions else format_duration(ticks)

    def short_length(self, ticks: int) -> str:
        """Return a length as a short label: `5 min`."""
        return str(ticks) if self.is_of_positions else short_duration(ticks)

    def __str__(self) -> str:
        offset = f" OFFSET {self.length_text(self.offset_ticks)}" if self.offset_ticks else ""
        return f"[{self._written()}{offset}]"

    @abstractmethod
    def _written(self) -> str:
        """Return the text of the bracket, without an offset."""

    @property
    def short(self) -> str:
        """A short label: `1 h / 1 min`."""
        offset = f" + {self.short_length(self.offset_ticks)}" if self.offset_ticks else ""
        return self._short_lengths() + offset

    def _short_lengths(self) -> str:
        rhythm = " tumbling" if self.is_tumbling else f" / {self.short_length(self.slide_ticks)}"
        return self.short_length(self.range_ticks) + rhythm

    def _multiples(self) -> str:
        offset = f" + {self.short_length(self.offset_ticks)}" if self.offset_ticks else ""
        return f"k · {self.short_length(self.slide_ticks)}{offset}"

    @abstractmethod
    def intervals_text(self) -> str:
        """Return the intervals that the windows are, as a phrase."""

    def tuple_text(self) -> str:
        """Return the windows that a tuple lies in, as a phrase without its subject."""
        if self.tuple_phrase:
            return self.tuple_phrase
        if self.is_tumbling:
            return "lies in exactly one window"
        if self.slide_ticks > self.range_ticks:
            return f"lies in one window, or in a gap between windows: {share(1 - self.overlap)} of all tuples do"
        return f"lies in {amount(self.overlap, 'window')}" + ("" if self.overlap.is_integer() else ", on average")

    @property
    def cells_text(self) -> str:
        """A description of the cells of its sets, if they are not slices."""
        return ""
