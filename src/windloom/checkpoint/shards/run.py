"""One shard of a round: read its state, run the same pure step, write its new state and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from windloom.answers.answers import Answers
from windloom.answers.blocks import Timer
from windloom.checkpoint.shards.blocks import write_blocks
from windloom.checkpoint.shards.files import ShardFiles
from windloom.checkpoint.shards.notes import ShardNote
from windloom.checkpoint.shards.pieces import Outlet, PieceWriter
from windloom.checkpoint.shards.split import join_cells, shards_of
from windloom.checkpoint.state_codec import decode, encode, restored_state
from windloom.checkpoint.storage import fault
from windloom.errors import WindloomError
from windloom.plan.plan import Plan
from windloom.plan.sharding import sharding_of
from windloom.rounds.step import StepCounts, step
from windloom.state.cells import Cells, keep_groups, merge_all
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, ScanResult


@dataclass(frozen=True, slots=True)
class ShardRound:
    """What every shard of a round is sent: the same plan, frontiers and facts about the past.

    `input` lacks the cells of streams: every shard has its own. `left` is the state that the last round left, without
    these cells: what is kept of which set, and which windows are closed, is the same for all shards, and the driver
    decides it. It is in terms of `previous`, if that is another plan; then `began` is the same in terms of `plan`.
    The driver also holds versions of relations: every shard is sent all their cells.

    `remade` are sets whose cells the driver has made from kept tuples, because these reach further back; `past` names
    the files that hold them, by shard. Shards do not need what rows are made of, and are not sent it.
    """

    number: int
    plan: Plan
    input: RoundInput
    history_ticks: int = 0
    left: State = field(default_factory=State)
    previous: Plan | None = None
    began: State | None = None
    remade: frozenset[int] = frozenset()
    past: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShardPlaces:
    """Where shards keep what outlives a round: `states` are the files of the last round, none before the first.

    `outlet` is where shards write rows themselves, if the sink takes pieces.
    """

    files: ShardFiles
    states: tuple[str, ...]
    outlet: Outlet | None = None

    def held(self, round: ShardRound, shard: int) -> State:
        """The state of a shard that the last round left, in terms of that round's plan."""
        plan = round.plan if round.previous is None else round.previous
        if not self.states:
            return restored_state(round.left, plan)
        held = shard_state(self.files, self.states[shard], round.left, plan)
        moved = moved_sets(plan, round.plan)
        return self._resharded(held, moved, round.left, plan, shard) if moved else held

    def past(self, round: ShardRound, shard: int) -> dict[int, Cells]:
        """The cells of a shard that were made from kept tuples."""
        return join_cells([self.files.read(round.past[shard])], round.plan) if shard in round.past else {}

    def _resharded(
        self, held: State, moved: Mapping[int, tuple[int, ...] | None], left: State, plan: Plan, shard: int
    ) -> State:
        """The state of a shard if a new plan divides some sets by other columns: their cells come from all shards."""
        parts: dict[int, list[Cells]] = {}
        for name in self.states:
            for number, cells in shard_state(self.files, name, left, plan).cells.items():
                if number in moved:
                    own = shards_of(cells, moved[number], len(self.states)) == shard
                    if own.any():
                        parts.setdefault(number, []).append(keep_groups(cells, own))
        kept = {number: cells for number, cells in held.cells.items() if number not in moved}
        return replace(held, cells={**kept, **{number: merge_all(each) for number, each in parts.items()}})


def moved_sets(old: Plan, new: Plan) -> dict[int, tuple[int, ...] | None]:
    """Sets of the old plan, by number, that the new plan divides by other columns, with these columns."""
    if old is new:
        return {}
    before, after, found = sharding_of(old), sharding_of(new), {}
    known = new.by_identity
    for partial_set in old.sets:
        other = known.get(partial_set.identity)
        if other is not None and before.of(partial_set.number) != after.of(other.number):
            found[partial_set.number] = after.of(other.number)
    return found


def step_shard(
    round: ShardRound, held: State, cells: Mapping[int, Cells], past: Mapping[int, Cells] | None = None
) -> tuple[State, Answers, StepCounts, dict[int, int]]:
    """The step of one shard; the last value is, by number of the set, the tick before which it has dropped cells."""
    state = held if round.previous is None else migrate(held, round.previous, round.plan)
    if round.began is not None:
        state = round.began.holding(state)
    if round.remade:
        kept = {number: own for number, own in state.cells.items() if number not in round.remade}
        state = replace(state, cells={**kept, **(past or {})})
    versions = restored_state(State(round.input.taken.cells), round.plan).cells
    given = round.input.taking(ScanResult({**versions, **cells}))
    after, answers, counts = step(state, given, round.plan, history_ticks=round.history_ticks)
    kept_from = {
        number: past.kept_from
        for number, past in after.history.items()
        if past.kept_from > state.history_of(number).kept_from
    }
    return after, answers, counts, kept_from


def run_shard(
    round: ShardRound, places: ShardPlaces, shard: int, cells: Mapping[int, Cells], *, is_first_attempt: bool = True
) -> ShardNote:
    """Runs one shard: reads files of the last round, and writes files that do not count until the note is recorded."""
    held, past = places.held(round, shard), places.past(round, shard)
    after, answers, counts, kept_from = step_shard(round, held, cells, past)
    state_name, answers_name, folds_name = ShardFiles.new_names(round.number, shard)
    divided = sharding_of(round.plan).divided
    outlet = places.outlet
    writer = PieceWriter(outlet, round.number, shard) if outlet is not None and outlet.is_reached else None
    timer = Timer()
    blocks = answers.blocks(without=divided, timed=timer)
    written = write_blocks(blocks if writer is None else writer.take(round.plan, blocks))
    first = next(written, None)
    if first is not None:
        places.files.write(answers_name, chain([first], written))
    pieces = () if writer is None else writer.finish()
    folds = answers.folds(divided)
    if folds:
        places.files.write(folds_name, [encode(State(folds))])
    if shard == 0 and is_first_attempt:
        fault("after pieces", round.number + 1)
    own = _own_cells(after, round.plan)
    places.files.write(state_name, [encode(own)])
    left = None if first is None else answers_name
    return ShardNote(
        shard,
        state_name,
        own.nbytes,
        left,
        counts,
        kept_from,
        pieces,
        folds_name if folds else None,
        timer.seconds,
    )


def shard_state(files: ShardFiles, name: str, facts: State, plan: Plan) -> State:
    """The cells of a file, in terms of a plan, with the facts that hold for all shards."""
    data = files.read(name)
    try:
        held = decode(data)
        return restored_state(replace(facts, cells={**facts.cells, **held.cells}, owed=held.owed), plan)
    except WindloomError as error:
        raise WindloomError(f"the shard file '{name}': {error.message}", error.detail, error.hint) from None


def _own_cells(state: State, plan: Plan) -> State:
    """The cells of a state that no other shard has."""
    cells = {number: cells for number, cells in state.cells.items() if not plan.sets[number].is_relation}
    return State(cells, owed=state.owed)
