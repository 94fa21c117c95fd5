"""Chooses the intake of a stream by predicted cost.

One native `groupBy` is the cheapest way to a few partials of one grouping. For unlike sets it makes more partials than
there are tuples, with generated code for each. Then it is cheaper to project tuples and weave them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from windloom.aggregates.registry import PlannedComponent
from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.intake.cost import native_cost, rolled_up, scanned_rate, woven_cost
from windloom.optimizer.intake.signatures import is_fed, sign
from windloom.optimizer.intake.woven import keeping_of, local_projection, woven_scan
from windloom.plan.costs import Choices
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.rows import PlannedRows, Retention
from windloom.plan.scans import LocalProjection, NativeFeed, NativeScan, Scan, Signature, WovenScan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import choose_slice_id

# A native scan for sets of one stream: groupings united, slices cut at all edges, predicates as bits.

#: At most this many conditions of filters become bits of a signature: each may double the partials.
MOST_FILTER_BITS = 3


def native_scan(number: int, sets: Sequence[PartialSet], why: str = "", *, tells: bool = True) -> NativeScan:
    """Return the native scan of sets of one stream, sliced by time, whose components all have native partials."""
    signed = sign(sets)
    filters = _filter_conditions(sets, signed.bits)
    conditions = tuple(filters[sql] for sql in sorted(filters))
    bits = {**signed.bits, **{condition.sql: len(signed.bits) + i for i, condition in enumerate(conditions)}}
    types = dict(chain.from_iterable(zip(each.group_by, each.group_types, strict=True) for each in sets))
    group_by = tuple(sorted(types))
    scanned: dict[PlannedComponent, tuple[PlannedComponent, int | None]] = {}  # itself, or unfiltered, with a bit
    for planned in (planned for partial_set in sets for planned in partial_set.components):
        where = planned.component.where
        scanned[planned] = planned, None
        if where is not None and where.sql in bits and _reads_columns(planned):
            scanned[planned] = replace(planned, component=replace(planned.component, where=None)), bits[where.sql]
    components = tuple(dict.fromkeys(planned for planned, _ in scanned.values()))
    united = EdgeSet.of(edge_class for partial_set in sets for edge_class in partial_set.edges.classes)
    edges = sets[0].edges if len(sets) == 1 else united
    feeds = tuple(
        NativeFeed(
            partial_set.number,
            signed.bit(partial_set.predicate),
            tuple(group_by.index(expression) for expression in partial_set.group_by),
            tuple(components.index(scanned[planned][0]) for planned in partial_set.components),
            tuple(scanned[planned][1] for planned in partial_set.components),
        )
        for partial_set in sets
    )
    return NativeScan(
        number,
        sets[0].stream,
        Signature(signed.pushed, signed.predicates + conditions, len(signed.predicates), signed.only_signed),
        group_by,
        tuple(types[expression] for expression in group_by),
        components,
        edges,
        choose_slice_id(edges),
        feeds,
        tells,
        why,
    )


def _filter_conditions(sets: Iterable[PartialSet], signed: Collection[str]) -> dict[str, Expression]:
    """Return the filter conditions that become bits, by SQL; none if there are too many.

    Computing an expression may fail for tuples that no query wants; reading a column cannot. So a component must only
    read columns, unless the set wants every tuple.
    """
    new: dict[str, Expression] = {}
    for partial_set in sets:
        for planned in partial_set.components:
            where = planned.component.where
            if where is None or where.sql in signed or not _reads_columns(planned):
                continue
            if partial_set.predicate is None or where.column is not None:
                new[where.sql] = where
    return new if len(new) <= MOST_FILTER_BITS else {}


def _reads_columns(planned: PlannedComponent) -> bool:
    read = (planned.component.argument, planned.component.by, *planned.component.others)
    return all(each is None or each.column is not None for each in read)


#: How tuples become cells: chosen by predicted cost, by compiled kernels, or by Spark's own aggregation.
INTAKES = ("auto", "woven", "native")


def choose_scans(
    streams: Iterable[Stream],
    sets: Sequence[PartialSet],
    way: str,
    constants: Constants,
    given: Choices | None = None,
    early: Mapping[int, bool] | None = None,
    rows: Sequence[PlannedRows] = (),
    stores: Sequence[Retention] = (),
    files: Mapping[str, frozenset[str]] | None = None,
) -> tuple[Scan, ...]:
    """Return the scans that feed every set that can have tuples, and every store.

    `early` says for some sets, by number, whether Spark aggregates them, whatever `way` says. `given` are recorded
    choices, which replace the choice: by stream, and by the text of sets whose intake differs from their stream's.
    `files` has, by stream, the columns that the driver can read itself.
    """
    chosen: list[Scan] = []
    recorded = {} if given is None else given.options_of("intake")
    logs = {} if given is None else given.options_of("log")
    for stream in streams:
        of_stream = [partial_set for partial_set in sets if partial_set.stream == stream.name and is_fed(partial_set)]
        timed = [partial_set for partial_set in of_stream if partial_set.counted_by is None]
        counted: dict[tuple[Expression, ...], list[PartialSet]] = {}
        for partial_set in of_stream:
            if partial_set.counted_by is not None:
                counted.setdefault(partial_set.counted_by, []).append(partial_set)
        watched = [partial_set for members in counted.values() for partial_set in members]
        store = next((store for store in stores if store.stream == stream.name), None)
        scans: list[Scan] = []
        if store is not None:
            if way == "native":
                raise _not_native(stream, "its tuples are kept, for row queries or because keep_tuples asks for it")
            scans.append(
                woven_scan(len(chosen), timed, watched, "its tuples are kept", keeping_of(store, rows, stream))
            )
        elif timed or watched:
            if given is None:
                fixed = {each.number: early[each.number] for each in timed if early and each.number in early}
            else:
                fixed = {each.number: recorded[each.text] == "native" for each in timed if each.text in recorded}
            columns = (files or {}).get(stream.name, frozenset())
            recorded_way = None if given is None else recorded.get(stream.name, "woven")
            stream_sets = _StreamSets(len(chosen), stream, timed, watched, columns)
            scans += stream_sets.scans(way, fixed, constants, recorded_way)
        for scan in scans:
            log = logs.get(stream.name)
            chosen.append(replace(scan, log=log) if log and isinstance(scan, WovenScan) else scan)
        for members in counted.values():
            why = f"{members[0].window.plural} need the positions of tuples"
            chosen.append(woven_scan(len(chosen), members, why=why))
    for position, scan in enumerate(chosen):
        if isinstance(scan, WovenScan):
            numbers = {each.number for each in scan.feeds}
            fed = [partial_set for partial_set in sets if partial_set.number in numbers]
            chosen[position] = replace(scan, rolled_up=rolled_up(scan, fed, constants))
    return tuple(chosen)


def intakes_of(plan: Plan) -> dict[str, str]:
    """Return the intake of every stream and, by their text, of sets whose intake differs from their stream's."""
    ways = {}
    for scan in reversed(plan.scans):
        if isinstance(scan, WovenScan) and scan.counted_by is None:
            ways[scan.stream] = "woven"
        elif isinstance(scan, NativeScan) and scan.tells:
            ways[scan.stream] = "native"
        elif isinstance(scan, NativeScan):
            ways |= {plan.sets[fed.number].text: "native" for fed in scan.feeds}
    return ways


def intake_obstacle(plan: Plan, stream: str) -> str | None:
    """Return why the intake of a stream cannot be native; None if it can."""
    if plan.store(stream) is not None:
        return "its tuples are kept"
    of_stream = [partial_set for partial_set in plan.sets if partial_set.stream == stream and is_fed(partial_set)]
    timed = [partial_set for partial_set in of_stream if partial_set.counted_by is None]
    return _obstacle(timed, [partial_set for partial_set in of_stream if partial_set.counted_by is not None])


@dataclass(frozen=True, slots=True)
class _StreamSets:
    """The sets of one stream that are cut by time, and those of positions, which a scan by time only watches.

    `columns` are those of the stream that the driver can read itself, and `number` is that of the stream's first scan.
    """

    number: int
    stream: Stream
    sets: Sequence[PartialSet]
    watched: Sequence[PartialSet]
    columns: frozenset[str]

    def scans(self, way: str, early: Mapping[int, bool], constants: Constants, recorded: str | None) -> list[Scan]:
        """Return one scan for all sets or, if some are early and some are late, one for each kind."""
        native = [partial_set for partial_set in self.sets if early.get(partial_set.number) is True]
        if (obstacle := _obstacle(native, ())) is not None:
            raise WindloomError(
                f"a side of a join over stream '{self.stream.name}' cannot be aggregated early",
                obstacle,
                "leave joins='EAP…' out, or give it a 0 for this side",
            )
        free = [partial_set for partial_set in self.sets if partial_set.number not in early]
        late = [partial_set for partial_set in self.sets if early.get(partial_set.number) is False]
        if not native and not late:
            return [self._alike(way, constants, recorded)]
        way = recorded or way
        if free and way == "native" and (obstacle := _obstacle(free, self.watched)) is not None:
            raise _not_native(self.stream, obstacle)
        is_native = way == "native" or (way == "auto" and not late and _obstacle(free, self.watched) is None)
        native, late = (native + free, late) if is_native else (native, late + free)
        if not native or (not late and not self.watched):
            why = "asked for, by joins"
            return [native_scan(self.number, self.sets, why) if native else self._woven(why)]
        why = "some of its sets are asked for early, others late, by joins"
        watched = [*native, *self.watched]
        early_scan = native_scan(self.number, native, why, tells=False)
        return [early_scan, woven_scan(self.number + 1, late, watched, why)]

    def _alike(self, way: str, constants: Constants, recorded: str | None) -> Scan:
        """Return one scan for all sets: as recorded, or else as asked for, or else as predicted to be cheaper."""
        obstacle, chosen = _obstacle(self.sets, self.watched), recorded or way
        if chosen == "native" and obstacle is not None:
            raise _not_native(self.stream, obstacle)
        woven = self._woven()
        if obstacle is not None:
            return replace(woven, why="asked for" if way == "woven" else obstacle)
        native = native_scan(self.number, self.sets)
        if way != "auto":
            return replace(native if chosen == "native" else woven, why="asked for")
        rate = scanned_rate(self.sets)
        costs = {
            "woven": woven_cost(constants, woven, self.sets, rate).total / rate,
            "native": native_cost(constants, native, self.sets, rate).total / rate,
        }
        if chosen == "auto":
            chosen = "woven" if costs["woven"] < costs["native"] else "native"
        other = "native" if chosen == "woven" else "woven"
        why = f"predicted {costs[chosen] * 1e6:.3g} µs per tuple; {other}, it would be {costs[other] * 1e6:.3g} µs"
        return replace(woven if chosen == "woven" else native, why=why)

    def _woven(self, why: str = "") -> WovenScan:
        """Return a woven scan of all sets, which the driver reads from files itself if it can."""
        woven = woven_scan(self.number, self.sets, self.watched, why)
        local = local_projection(woven, self.stream) if self.columns else ""
        if isinstance(local, LocalProjection) and self.columns.issuperset(local.reads):
            woven = replace(woven, local=local)
        return woven


def _not_native(stream: Stream, obstacle: str) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' cannot be taken in natively",
        obstacle,
        "leave intake out, or use intake='woven'",
    )


def _obstacle(sets: Sequence[PartialSet], watched: Sequence[PartialSet]) -> str | None:
    """Return why Spark's own aggregation cannot make the partials of these sets."""
    if watched:
        return f"query '{next(watched[0].queries).name}' {watched[0].window.native_obstacle}"
    for partial_set in sets:
        if partial_set.window.native_obstacle is not None:
            return f"query '{next(partial_set.queries).name}' {partial_set.window.native_obstacle}"
        for planned in partial_set.components:
            if not planned.aggregator.is_native:
                return f"'{planned.component}' has no partials that Spark can aggregate"
    return None
