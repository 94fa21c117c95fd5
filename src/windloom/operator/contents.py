"""What the state of an operator holds, by set: read from the heads of its buckets, without reading any segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windloom.checkpoint.frames import read_frame
from windloom.checkpoint.state_codec import decode
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.operator.buckets import read_catalogue
from windloom.plan.plan import Plan
from windloom.state.frontiers import advanced
from windloom.state.segments import Segment


@dataclass(frozen=True, slots=True)
class SetContents:
    """The state of one set in all buckets. `size` is in bytes, with summaries; ticks are None without cells.

    `kept_for` is the query with the longest window, which keeps its cells longest.
    """

    text: str
    queries: tuple[str, ...]
    cells: int
    segments: int
    summaries: int
    size: int
    oldest: int | None
    newest: int | None
    kept_for: str


@dataclass(frozen=True, slots=True)
class StateContents:
    """The state of an operator: `frontiers` by stream; `heads` are the bytes of facts and catalogues."""

    buckets: int
    frontiers: Mapping[str, int]
    sets: tuple[SetContents, ...]
    heads: int


def contents_of(heads: Sequence[bytes], plan: Plan) -> StateContents:
    """Return what the buckets with these heads hold; `plan` is the one that their segments were made with."""
    segments: dict[int, list[Segment]] = {}
    frontiers: dict[str, int] = {}
    for head in heads:
        frame = read_frame("head", "the state of a bucket", head, "restore the checkpoint from a copy")
        frontiers = advanced(frontiers, decode(bytes(frame.blobs["facts"])).frontiers)
        for number, of_bucket in read_catalogue(frame.body).items():
            segments.setdefault(number, []).extend(of_bucket)
    sets = []
    for partial_set in plan.sets:
        own = segments.get(partial_set.number, [])
        fine, members = [each for each in own if each.level == 0], list(partial_set.queries)
        longest = max(members, key=lambda member: member.query.window.extent_ticks or TICK_MAX)
        sets.append(
            SetContents(
                partial_set.text,
                tuple(member.name for member in members),
                sum(each.cells for each in fine),
                len(fine),
                len(own) - len(fine),
                sum(each.size for each in own),
                min((each.first for each in fine), default=None),
                max((each.last for each in fine), default=None),
                longest.name,
            )
        )
    closed = {name: tick for name, tick in frontiers.items() if TICK_MIN < tick < TICK_MAX}
    return StateContents(len(heads), closed, tuple(sets), sum(map(len, heads)))
