"""Source E, figures 4.4 to 4.11: doubly partitioned indices, those by insertion, and files that never change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from time import process_time

import numpy as np
from bench.fed_rounds import MINUTE
from numpy.typing import NDArray

from experiments.current_table import CurrentTable
from experiments.pages import DIFFERS, REPRODUCED, TREND, Absent, Cell, Data, Figure, Page, Table, Verdict
from experiments.partitioned_index import RECORD, Layout, PartitionedIndex, Records, drawn
from windloom.explain.picture.line_charts import Series, line_chart

#: The longest lifetime, in periods: as the mean is half of it, 36 updates bring as much as is there.
LONGEST, KEYS = 72, 100
#: Records that are there, and updates that are measured.
SMALL, SMALL_UPDATES = 50_000, 36
LARGE, LARGE_UPDATES = 200_000, 9
WAYS = (2, 3, 4, 5)
#: Buckets of a key in a sub-index of *NoRebuild*.
BUCKETS = 2.5
CURRENT = "current (Windloom)"


@dataclass(frozen=True, slots=True)
class Kind:
    """An index by its name in the thesis: G and E, round-robin or chronological, rebuilt or not."""

    insertions: int
    ends: int
    round_robin: bool
    rebuilt: bool

    @property
    def family(self) -> str:
        if self.ends == 1:
            return "R-ins" if self.rebuilt else "D-ins"
        return ("Rebuild" if self.rebuilt else "NoRebuild") + ("" if self.round_robin else " chr")

    @property
    def name(self) -> str:
        if self.ends == 1:
            return f"{self.family}{self.parts}"
        return self.family.replace(" chr", "") + f"{self.insertions}x{self.ends}" + ("" if self.round_robin else " chr")

    @property
    def parts(self) -> int:
        return self.insertions * self.ends


@dataclass
class Measured:
    """Means per operation: seconds, and bytes that an update reads and writes, in how many files."""

    update: list[float] = field(default_factory=list)
    probe: list[float] = field(default_factory=list)
    scan: list[float] = field(default_factory=list)
    read: float = 0.0
    written: float = 0.0
    opened: float = 0.0
    bytes: int = 0

    def seconds(self, what: str) -> float:
        return fmean(getattr(self, what))


@dataclass(frozen=True)
class History:
    """The records that there are when the first update comes, and the batches of all updates."""

    inserted: NDArray[np.int64]
    records: Records
    batches: Sequence[Records]

    @classmethod
    def drawn(cls, records: int, updates: int, *, fluctuates: bool = False) -> History:
        rng = np.random.default_rng(4)
        counts = np.full(LONGEST + updates, records / 36.5)
        if fluctuates:
            for own in (counts[:LONGEST], counts[LONGEST:]):
                factors = 2 ** rng.uniform(-1, 1, len(own))  # the largest rate is up to four times the smallest
                own *= factors / factors.mean()
        periods = [
            drawn(rng, period, round(count), LONGEST, KEYS)
            for period, count in zip(range(1 - LONGEST, updates + 1), counts, strict=True)
        ]
        early = periods[:LONGEST]
        inserted = np.repeat(np.arange(1 - LONGEST, 1), [len(own) for own in early])
        whole = np.concatenate(early)
        alive = whole["end"] > 0
        return cls(inserted[alive], whole[alive], periods[LONGEST:])

    def truth(self) -> NDArray[np.int64]:
        """Keys and ends of what is there after the last update, in order."""
        whole = np.concatenate([self.records, *self.batches])
        return _sorted(whole[whole["end"] > len(self.batches)])


def _sorted(records: Records) -> NDArray[np.int64]:
    found = np.stack([records["key"].astype(np.int64), records["end"]])
    return found[:, np.lexsort(found)]


def measure_index(kind: Kind, history: History) -> Measured:
    layout = Layout(kind.insertions, kind.ends, kind.round_robin, LONGEST)
    bucket = None if kind.rebuilt else max(1, round(len(history.records) / (kind.parts * KEYS * BUCKETS)))
    rng, found = np.random.default_rng(1), Measured()
    with tempfile.TemporaryDirectory(prefix="windloom-index-") as folder:
        index = PartitionedIndex(Path(folder), layout, bucket)
        index.build(history.inserted, history.records, 0)
        built = (index.traffic.read, index.traffic.written)
        read = 0
        for period, records in enumerate(history.batches, 1):
            before = index.traffic.read
            found.update.append(_took(partial(index.update, period, records)))
            read += index.traffic.read - before
            found.probe.append(_took(partial(index.probe, int(rng.integers(KEYS)))))
            found.scan.append(_took(lambda: sum(len(records) for records in index.scan())))
        held = np.concatenate(list(index.scan()))
        assert (_sorted(held) == history.truth()).all(), kind.name
        updates = len(history.batches)
        found.read, found.written = read / updates, (index.traffic.written - built[1]) / updates
        found.opened, found.bytes = index.traffic.opened / updates, index.bytes
        index.close()
    return found


def measure_current(history: History) -> Measured:
    """The same batches into the sink; what was there before comes period by period."""
    rng, found = np.random.default_rng(1), Measured()
    with tempfile.TemporaryDirectory(prefix="windloom-index-") as folder:
        table = CurrentTable(Path(folder), LONGEST)
        for period in range(1 - LONGEST, 1):
            early = table.answers(period + LONGEST, _shifted(history.records[history.inserted == period]))
            table.update(early)
        written, files = table.written, table.files_written
        for period, records in enumerate(history.batches, 1):
            answers = table.answers(period + LONGEST, _shifted(records))
            found.update.append(_took(partial(table.update, answers)))
            found.probe.append(_took(partial(table.probe, int(rng.integers(KEYS)))))
            found.scan.append(_took(table.scan))
        updates = len(history.batches)
        found.written, found.opened = (table.written - written) / updates, (table.files_written - files) / updates
        found.bytes = table.bytes
        rows = table.scan()
        ends = rows["valid_until"].cast("int64").to_numpy() // MINUTE - LONGEST
        held = np.zeros(rows.num_rows, RECORD)
        held["key"], held["end"] = rows["k"].to_numpy(), ends
        assert (_sorted(held) == history.truth()).all()
    return found


def _shifted(records: Records) -> Records:
    """Rounds of a stream have numbers from 0 on."""
    found = records.copy()
    found["end"] += LONGEST
    return found


def _took(action: Callable[[], object]) -> float:
    """Seconds of processor time, of the system's copying too; what the disk has to take is told in bytes."""
    begun = process_time()
    action()
    return process_time() - begun


def run(quick: bool) -> Page:
    small = History.drawn(SMALL // 20 if quick else SMALL, 6 if quick else SMALL_UPDATES)
    large = History.drawn(SMALL // 10 if quick else LARGE, 3 if quick else LARGE_UPDATES)
    uneven = History.drawn(SMALL // 20 if quick else SMALL, 6 if quick else SMALL_UPDATES, fluctuates=True)
    ways = WAYS[:2] if quick else WAYS
    double = [Kind(way, way, True, rebuilt) for way in ways for rebuilt in (True, False)]
    single = [Kind(way * way, 1, False, rebuilt) for way in ways for rebuilt in (True, False)]
    chronological = [Kind(way, way, False, rebuilt) for way in ways for rebuilt in (True, False)]
    shapes = [Kind(4, 4, True, True), Kind(2, 8, True, True), Kind(8, 2, True, True)]
    on_small = {kind: measure_index(kind, small) for kind in dict.fromkeys([*double, *single, *chronological, *shapes])}
    on_uneven = {kind: measure_index(kind, uneven) for kind in (*double, *single)}
    on_large = {kind: measure_index(kind, large) for kind in (*double, *single)}
    currents = (measure_current(small), measure_current(uneven), measure_current(large))
    return _page(small, large, shapes, (on_small, on_uneven, on_large), currents)


_DIFFERENCE = """How far the structures are apart is not as in the thesis: its disk read and wrote pages, here what is
read lies in memory, and copying is what is paid for. So NoRebuild, which reads and writes many small buckets, is not
faster than Rebuild where it writes less, and in figure 4.4 an update of 4x4 is no faster than one of 2x8 or 8x2 though
it opens 7 instead of 9 sub-indices and writes 22 % less: times of one run differ by more. Of figure 4.8 nothing can be
said: most indices took less time, not more, with fluctuating rates, and they wrote less, because that history is about
one percent smaller. Round-robin parts are of more equal sizes than chronological ones, but what
they write is the same on average: a cost that is proportional to it does not show the 10 to 20 % of the thesis.

**What rounds and files make unnecessary.** The grid of G × E sub-indices keeps the number of pages low that an update
*changes*. Files that are never changed need no such number: a round writes what is new, deletes files whose records
have all ended, and divides by end, once, what will end soon; the tables tell how many bytes that is. What is left of
the grid is which files are put together: the sink's parts by end, and files by the rounds in which rows came. Rebuild
or NoRebuild, round-robin or chronological, and how large a bucket is, are not asked any more.

**What they do not replace** is the directory by key: a probe of the sink's table reads all its files, where an index
reads the buckets of one key. Who probes often registers a query by that key, or builds an index beside the table."""

ByKind = Mapping[Kind, Measured]


def _page(
    small: History,
    large: History,
    shapes: Sequence[Kind],
    found: tuple[ByKind, ByKind, ByKind],
    currents: tuple[Measured, Measured, Measured],
) -> Page:
    on_small, on_uneven, on_large = found
    fresh = fmean(len(batch) for batch in small.batches) * RECORD.itemsize
    best = _best(on_small, ("Rebuild", "NoRebuild"))
    wave = _best(on_small, ("R-ins", "D-ins"))
    current = currents[0]
    large_best, large_wave = _best(on_large, ("Rebuild", "NoRebuild")), _best(on_large, ("R-ins", "D-ins"))
    return Page(
        title="Source E, figures 4.4–4.11: results of varying lifetimes on disk",
        settings=f"Records of 1,000 bytes, {KEYS} keys, lifetimes of 1 to {LONGEST} periods, both uniform; what they "
        f"hold cannot be compressed. {len(small.records):,} records ({_megabytes(small)} MB) and "
        f"{len(small.batches)} updates, and {len(large.records):,} ({_megabytes(large)} MB) and {len(large.batches)} "
        "updates; the thesis has 500 MB and 5 GB. After every update one key is probed, and everything is scanned. "
        "The indices of the thesis are in `experiments/partitioned_index.py`: a file and a directory by key for each "
        f"sub-index, {BUCKETS:g} buckets of a key on average where nothing is rebuilt. Times are of the processor, "
        "copying by the system included; an update ends with `fsync`, what is read comes from memory, as all of it "
        "fits, and what the disk has to take is told in bytes. The sink `current` gets the same "
        "batches as rounds, with `valid_until`, and its defaults (16 parts by end, 8 files each). After the last "
        "update all hold the same records, which is checked.",
        claim="4.4: 4x4 is updated 20 % faster than 2x8 and 8x2, as 7 and not 9 of 16 sub-indices are touched, and 8x2 "
        "faster than 2x8. 4.5: doubly partitioned indices are updated over twice as fast as R-ins and D-ins, "
        "round-robin ones 10 to 20 % faster than chronological ones; NoRebuild is a little faster than Rebuild; from "
        "n = 25 on (R-ins and D-ins: 9) updates become slower again. 4.6, 4.7: probes and scans become slower with n. "
        "4.8: rates that fluctuate by four cost doubly partitioned indices less. 4.9–4.11: ten times the data, up to "
        "three times as fast.",
        figures=_figures(on_small, on_large, currents),
        tables=[
            ("Figure 4.4: relative to 4x4", _shapes(shapes, on_small)),
            (
                f"{_megabytes(small)} MB: means per operation; written is relative to what is new",
                _overview(on_small, currents[0], fresh),
            ),
            ("Figure 4.8: what fluctuating rates add to the time of an update", _uneven(on_small, on_uneven, currents)),
        ],
        data={
            "expiring_index_small.csv": _data(on_small, currents[0]),
            "expiring_index_uneven.csv": _data(on_uneven, currents[1]),
            "expiring_index_large.csv": _data(on_large, currents[2]),
        },
        findings=f"Doubly partitioned against by insertion alone, the fastest of each: "
        f"{wave[1].seconds('update') / best[1].seconds('update'):.1f} times as fast with {_megabytes(small)} MB "
        f"({best[0].name} against {wave[0].name}), "
        f"{large_wave[1].seconds('update') / large_best[1].seconds('update'):.1f} times with {_megabytes(large)} MB "
        f"({large_best[0].name} against {large_wave[0].name}). The sink `current` writes {current.opened:.1f} files "
        f"per update and changes none; an update takes {current.seconds('update') / best[1].seconds('update'):.2f} of "
        f"the time of {best[0].name} with {_megabytes(small)} MB, and "
        f"{currents[2].seconds('update') / large_best[1].seconds('update'):.2f} of {large_best[0].name} with "
        f"{_megabytes(large)} MB. A scan of it takes {1000 * current.seconds('scan'):.0f} ms, of {best[0].name} "
        f"{1000 * best[1].seconds('scan'):.0f} ms; a probe {1000 * current.seconds('probe'):.1f} and "
        f"{1000 * best[1].seconds('probe'):.1f} ms.",
        difference=_DIFFERENCE,
    )


def _megabytes(history: History) -> str:
    return f"{len(history.records) * RECORD.itemsize / 1e6:.3g}"


def _best(found: ByKind, families: Sequence[str]) -> tuple[Kind, Measured]:
    own = {kind: measured for kind, measured in found.items() if kind.family in families and kind.insertions != 8}
    return min(own.items(), key=lambda item: item[1].seconds("update"))


def _shapes(shapes: Sequence[Kind], found: ByKind) -> Table:
    base = found[shapes[0]]
    rows: list[Sequence[Cell]] = [
        (
            kind.name,
            *(found[kind].seconds(what) / base.seconds(what) for what in ("update", "probe", "scan")),
            found[kind].written / base.written,
            found[kind].opened,
        )
        for kind in shapes
    ]
    return Table(("index", "update", "probe", "scan", "bytes written", "sub-indices opened per update"), rows)


def _overview(found: ByKind, current: Measured, fresh: float) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            name,
            *(1000 * measured.seconds(what) for what in ("update", "probe", "scan")),
            measured.written / fresh,
            measured.opened,
            measured.bytes / 1e6,
        )
        for name, measured in [*((kind.name, own) for kind, own in found.items()), (CURRENT, current)]
    ]
    columns = ("index", "update, ms", "probe, ms", "scan, ms", "written", "sub-indices or files written", "MB on disk")
    return Table(columns, rows)


def _uneven(even: ByKind, uneven: ByKind, currents: Sequence[Measured]) -> Table:
    pairs = [(kind.name, even[kind], own) for kind, own in uneven.items()]
    pairs.append((CURRENT, currents[0], currents[1]))
    rows: list[Sequence[Cell]] = [
        (
            name,
            1000 * before.seconds("update"),
            1000 * after.seconds("update"),
            f"{after.seconds('update') / before.seconds('update') - 1:+.0%}",
            f"{after.written / before.written - 1:+.0%}",
        )
        for name, before, after in pairs
    ]
    return Table(("index", "steady, ms", "fluctuating, ms", "time", "bytes written"), rows)


def _data(found: ByKind, current: Measured) -> Table:
    named = [*((kind.name, kind.parts, own) for kind, own in found.items()), (CURRENT, None, current)]
    return Table(
        ("index", "parts", "update_s", "probe_s", "scan_s", "read_bytes", "written_bytes", "opened", "bytes"),
        [
            (
                *(name, parts, own.seconds("update"), own.seconds("probe"), own.seconds("scan")),
                *(own.read, own.written, own.opened, own.bytes),
            )
            for name, parts, own in named
        ],
    )


def _figures(on_small: ByKind, on_large: ByKind, currents: tuple[Measured, Measured, Measured]) -> list[Figure]:
    def chart(
        found: ByKind, current: Measured, value: Callable[[Measured], float], label: str, *, all_kinds: bool
    ) -> str:
        families: dict[str, list[tuple[float, float]]] = {}
        for kind, measured in found.items():
            square = kind.ends == 1 or kind.insertions == kind.ends
            if square and (all_kinds or not kind.family.endswith("chr")):
                families.setdefault(kind.family, []).append((kind.parts, value(measured)))
        series = [Series(family, sorted(points)) for family, points in families.items()]
        reach = sorted({x for own in series for x, _ in own.points})
        series.append(Series("current", [(x, value(current)) for x in reach]))
        return line_chart(series, y_label=label, x_label="sub-indices (n)", log_y="probe" in label)

    def timed(what: str) -> Callable[[Measured], float]:
        return lambda measured: 1000 * measured.seconds(what)

    def written(measured: Measured) -> float:
        return measured.written / 1e6

    small, _, large = currents
    told = [
        ("update", "4.5", on_small, small, "small", timed("update"), "ms per update", True),
        ("written", "beside 4.5", on_small, small, "small", written, "MB per update", True),
        ("probe", "4.6", on_small, small, "small", timed("probe"), "ms per probe", False),
        ("scan", "4.7", on_small, small, "small", timed("scan"), "ms per scan", False),
        ("update", "4.9", on_large, large, "large", timed("update"), "ms per update", False),
        ("probe", "4.10", on_large, large, "large", timed("probe"), "ms per probe", False),
        ("scan", "4.11", on_large, large, "large", timed("scan"), "ms per scan", False),
    ]
    meant = {"update": "time of an update", "written": "bytes that an update writes", "probe": "time of a probe"}
    return [
        Figure(
            f"expiring_index_{what}_{size}.svg",
            f"Figure {number}: {meant.get(what, 'time of a scan')}, {size} data",
            chart(found, current, value, label, all_kinds=every),
        )
        for what, number, found, current, size, value, label, every in told
    ]


ON_SMALL, ON_UNEVEN, ON_LARGE = (f"expiring_index_{name}.csv" for name in ("small", "uneven", "large"))


def _double(name: str) -> bool:
    return name.startswith(("Rebuild", "NoRebuild")) and not name.endswith(" chr")


def _rows(data: Data, file: str) -> dict[str, dict[str, float]]:
    found = {
        row["index"]: {key: float(value) for key, value in row.items() if key != "index" and value}
        for row in data.rows(file)
    }
    if not found:
        raise Absent(file)
    return found


def _fastest(found: dict[str, dict[str, float]], families: Callable[[str], bool]) -> str:
    own = [name for name in found if families(name) and name != "Rebuild8x2"]
    return min(own, key=lambda name: found[name]["update_s"])


def headline(data: Data) -> str:
    found = _rows(data, ON_SMALL)
    names = (_fastest(found, lambda name: name.startswith(("R-ins", "D-ins"))), _fastest(found, _double), CURRENT)
    written = ", ".join(f"{found[name]['written_bytes'] / 1e6:.1f} MB ({name})" for name in names)
    took = ", ".join(f"{1000 * found[name]['update_s']:.0f}" for name in names)
    probe = ", ".join(f"{1000 * found[name]['probe_s']:.1f}" for name in names)
    return (
        f"{found['Rebuild4x4']['bytes'] / 1e6:.3g} MB: an update writes {written} and takes {took} ms; a probe by key "
        f"takes {probe} ms, because the sink has no directory by key."
    )


def verdicts(data: Data) -> list[Verdict]:
    small, uneven, large = (_rows(data, file) for file in (ON_SMALL, ON_UNEVEN, ON_LARGE))
    base = small["Rebuild4x4"]
    four = {name: small[name]["update_s"] / base["update_s"] for name in ("Rebuild2x8", "Rebuild8x2")}
    even = {name: small[name]["written_bytes"] / base["written_bytes"] for name in four}
    found = [
        Verdict(
            "E fig. 4.4",
            "4x4 is updated 20 % faster than 2x8 and 8x2; 8x2 faster than 2x8",
            f"2x8 takes {four['Rebuild2x8']:.2f} and 8x2 {four['Rebuild8x2']:.2f} of 4x4's time, and write "
            f"{even['Rebuild2x8']:.2f} of its bytes",
            REPRODUCED if min(four.values()) > 1.1 else TREND if min(even.values()) > 1.1 else DIFFERS,
            "in bytes, not in time: data lie in memory, and times of one run differ by more",
        )
    ]
    for number, rows, what in ((5, small, "update_s"), (9, large, "update_s")):
        wave, best = _fastest(rows, lambda name: name.startswith(("R-ins", "D-ins"))), _fastest(rows, _double)
        gain = rows[wave][what] / rows[best][what]
        found.append(
            Verdict(
                f"E fig. 4.{number}",
                "doubly partitioned updates over twice as fast" if number == 5 else "up to three times as fast",
                f"{gain:.1f} times ({best} against {wave}); `current` {1000 * rows[CURRENT][what]:.0f} ms to "
                f"{1000 * rows[best][what]:.0f}",
                REPRODUCED if gain >= (2 if number == 5 else 2.9) else TREND if gain > 1.2 else DIFFERS,
                "" if number == 5 else "200 MB instead of 5 GB",
            )
        )
    for number, rows, what in (
        (6, small, "probe_s"),
        (7, small, "scan_s"),
        (10, large, "probe_s"),
        (11, large, "scan_s"),
    ):
        two, five = rows["NoRebuild2x2"][what], rows["NoRebuild5x5"][what]
        one, six = rows["Rebuild2x2"][what], rows["Rebuild5x5"][what]
        found.append(
            Verdict(
                f"E fig. 4.{number}",
                f"{'probes' if what == 'probe_s' else 'scans'} become slower with n",
                f"Rebuild {1e3 * one:.2g} → {1e3 * six:.2g} ms, NoRebuild {1e3 * two:.2g} → {1e3 * five:.2g} ms, "
                f"`current` {1e3 * rows[CURRENT][what]:.3g} ms",
                REPRODUCED if six > one and five > two else TREND if five > two else DIFFERS,
                "" if six > one else "with Rebuild, data that lie in memory are scanned alike",
            )
        )
    more = {name: uneven[name]["update_s"] / small[name]["update_s"] - 1 for name in uneven}
    slower = sum(value > 0.02 for value in more.values())
    found.append(
        Verdict(
            "E fig. 4.8",
            "rates that fluctuate by four cost doubly partitioned indices less",
            f"{slower} of {len(more)} indices slower at all; {min(more.values()):+.0%} to {max(more.values()):+.0%}",
            DIFFERS if slower < len(more) / 2 else TREND,
            "the noise of one run is larger than the effect",
        )
    )
    return found
