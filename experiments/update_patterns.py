"""Source E, figures 3.8 to 3.15: negative tuples, the direct approach and update patterns, and Windloom's rounds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow.parquet as pq

from experiments.linked_lists import CAME, EARLY, KEPT, NEGATIVE, TOUCHED, Ints
from experiments.pages import DIFFERS, REPRODUCED, TREND, Cell, Data, Figure, Page, Table, Verdict
from experiments.pattern_operators import BAGS, DIRECT, NOT_EXISTS, NT, UPA, UPA_BY_END
from experiments.pattern_plans import Distinct, Joined, Links, Negated, NegatedJoin, PatternQuery
from experiments.pattern_rounds import Rounds, run_rounds
from windloom.explain.picture.line_charts import Series, line_chart

SOURCES, PAIRS, SKEW = 2_000, 20_000, 0.8
#: The window at which a join has as many results as it has tuples of a link (ftp), and ten times as many (telnet).
EVEN = 20_000
SHORT, MIDDLE, LONG = (
    (2_000, 5_000, 10_000, 20_000),
    (2_000, 5_000, 10_000, 20_000, 50_000),
    (2_000, 10_000, 20_000, 50_000, 100_000),
)
SPANS, LEAST = 2, 1_000
#: Rounds of Windloom that are measured, when windows are full.
ROUNDS = 4
#: Lazy expirations of a window, and slides of Windloom's.
_EXPIRATIONS, _SLIDES = 20, 10


@dataclass(frozen=True, slots=True)
class Way:
    """One line of a figure."""

    name: str
    make: Callable[[Links, int], PatternQuery]


@dataclass(frozen=True)
class Case:
    """One figure: a query, its ways, and the windows they are measured with."""

    figure: str
    title: str
    links: Callable[[int], Links]
    ways: Sequence[Way]
    lengths: Sequence[int]
    asked: str  # of Windloom


@dataclass(frozen=True, slots=True)
class Measured:
    """Per 1,000 units of time: milliseconds; per unit: what was counted."""

    milliseconds: float
    counts: Ints
    units: int

    def per_unit(self, which: int) -> float:
        return float(self.counts[which]) / self.units


def sources(rng: np.random.Generator, shape: tuple[int, int], values: int) -> Ints:
    weights = np.arange(1, values + 1) ** -SKEW
    found: Ints = rng.choice(values, shape, p=weights / weights.sum())
    return found


def drawn(links: int, values: int = SOURCES, share: float = 1.0, chosen: Sequence[int] = ()) -> Callable[[int], Links]:
    """Links of generated tuples: sources are skewed, and those in `chosen` pass with a probability.

    Of what is negated (the second link, if not both are joined) some sources are others: so two fifths of the results
    of query 3 go before their time, as in the thesis.
    """

    def made(units: int) -> Links:
        rng = np.random.default_rng(7)
        passes = np.ones((links, units), np.bool_)
        passes[list(chosen)] = rng.random((len(chosen), units)) < share
        value = sources(rng, (links, units), values)
        if links > 1 and 1 not in chosen:
            value[1] += values // 20
        return Links(value, passes)

    return made


def passing(results: float, selected: int) -> float:
    """The share of tuples that pass on so many links, for a join over `EVEN` units to have so many results per unit."""
    weights = np.arange(1, SOURCES + 1) ** -SKEW
    same = float(((weights / weights.sum()) ** 2).sum())
    return float((results / (EVEN * same)) ** (1 / selected))


def _joined(way: int, parts: int, eager: bool, links: Links, length: int) -> PatternQuery:
    return Joined(links, way, length, parts, eager=eager)


def _distinct(way: int, links: Links, length: int) -> PatternQuery:
    return Distinct(links, way, length)


def _negated(way: int, kind: int, links: Links, length: int) -> PatternQuery:
    return Negated(links, way, length, kind=kind)


def cases() -> list[Case]:
    def joins(*parts: int) -> list[Way]:
        ways = [("NT", NT, 10, False), ("DIRECT", DIRECT, 10, False), ("DIRECT, eager", DIRECT, 10, True)]
        ways += [(f"UPA({own})", UPA, own, False) for own in parts]
        ways += [(f"UPA({own}), eager", UPA, own, True) for own in parts]
        return [Way(name, partial(_joined, way, own, eager)) for name, way, own, eager in ways]

    def distinct(*ways: tuple[str, int]) -> list[Way]:
        return [Way(name, partial(_distinct, way)) for name, way in ways]

    def negations(kind: int) -> list[Way]:
        ways = (("NT", NT), ("UPA", UPA), ("UPA, day known", UPA_BY_END))
        return [Way(name, partial(_negated, way, kind)) for name, way in ways]

    three = (("NT", NT), ("DIRECT", DIRECT), ("UPA", UPA))
    plans = [
        Way("NT", lambda links, length: NegatedJoin(links, NT, length)),
        Way("NT (join up)", lambda links, length: NegatedJoin(links, NT, length, joins_last=True)),
        Way("UPA", lambda links, length: NegatedJoin(links, UPA, length)),
    ]
    ftp, telnet, third = passing(1.0, 2), passing(10.0, 2), passing(1.0, 1)
    pairs = drawn(1, PAIRS)
    return [
        Case("3.8", "Query 1, ftp", drawn(2, share=ftp, chosen=(0, 1)), joins(10), MIDDLE, "join"),
        Case("3.9", "Query 1, telnet", drawn(2, share=telnet, chosen=(0, 1)), joins(10, 50), SHORT, "join"),
        Case("3.10", "Query 2, sources", drawn(1), distinct(*three), LONG, "distinct"),
        Case("3.11", "Query 2, pairs of addresses", pairs, distinct(*three), LONG, "distinct"),
        Case("3.14", "Query 3, bags", drawn(2), negations(BAGS), MIDDLE, "bags"),
        Case("3.14", "Query 3, NOT EXISTS", drawn(2), negations(NOT_EXISTS), MIDDLE, "not_exists"),
        Case("3.15", "Query 4", drawn(3, share=third, chosen=(2,)), plans, MIDDLE, "negated_join"),
    ]


def measure(way: Way, case: Case, length: int, recorded: Links | None = None) -> Measured:
    """When windows are full: the fastest of some spans, each with whole intervals of expiration."""
    delta = max(1, length // _EXPIRATIONS)
    span = -(-LEAST // delta) * delta if delta < LEAST else 2 * delta
    first = length + delta
    links = case.links(first + SPANS * span) if recorded is None else recorded
    if recorded is not None:
        span = (recorded.units - first) // SPANS // delta * delta
    query = way.make(links, length)
    query.feed(first)
    before, took = query.counts.copy(), []
    for number in range(1, SPANS + 1):
        begun = process_time()
        query.feed(first + number * span)
        took.append(process_time() - begun)
    return Measured(1e6 * min(took) / span, query.counts - before, SPANS * span)


def recorded_links() -> Recorded | None:
    """LBL-PKT-4, TCP: three links by destination, as the thesis divides its trace; a tuple of each in a unit."""
    path = Path(os.environ.get("WINDLOOM_DATA", "../shared/data")) / "lbl_pkt4" / "lbl_pkt4_tcp_synfin.parquet"
    if not path.exists():
        return None
    table = pq.read_table(path, columns=["src", "dst", "sport", "dport"])
    source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    service = np.minimum(table["sport"].to_numpy(), table["dport"].to_numpy())
    own = [np.flatnonzero(target % 3 == link) for link in range(3)]
    units = min(map(len, own))
    passes = np.stack([np.isin(service[rows[:units]], (20, 21)) for rows in own])
    value = np.stack([source[rows[:units]] for rows in own]).astype(np.int64)
    pairs = np.stack([1_000 * source[rows[:units]] + target[rows[:units]] for rows in own]).astype(np.int64)
    return Recorded(Links(value, passes), pairs)


@dataclass(frozen=True, slots=True)
class Recorded:
    links: Links
    pairs: Ints  # of addresses

    def of(self, case: Case) -> Links:
        """As a query reads them: only those that query 1 and the third link of query 4 select are selected."""
        passes = self.links.passes.copy()
        if case.asked != "join":
            passes[:2] = True
        return Links(self.pairs if "pairs" in case.title else self.links.value, passes)


Found = Mapping[str, Mapping[str, Mapping[int, Measured]]]  # by title, way and length


@dataclass(frozen=True, slots=True)
class Asked:
    """A query in Windloom's rounds beside the operators, at one window."""

    title: str
    text: str
    length: int
    rounds: Rounds


def run(quick: bool) -> Page:
    from windloom.spark.session import local_session

    all_cases = cases()
    found: dict[str, dict[str, dict[int, Measured]]] = {}
    for case in all_cases:
        lengths = case.lengths[:2] if quick else case.lengths
        by_way = {way.name: {length: measure(way, case, length) for length in lengths} for way in case.ways}
        found[case.title] = by_way
    spark = local_session(cores=2, memory="4g", app="windloom experiments")
    length = 400 if quick else EVEN
    asked = [_asked(spark, case, case.asked, length) for case in all_cases]
    asked.append(_asked(spark, all_cases[2], "grouped", length))
    if not quick:
        asked += [_asked(spark, all_cases[2], name, 10 * EVEN) for name in ("distinct", "grouped")]
    recorded = recorded_links()
    on_record = (
        {}
        if recorded is None
        else {
            case.title: {way.name: measure(way, case, 2_000, recorded.of(case)) for way in case.ways}
            for case in all_cases
            if "telnet" not in case.title  # there is too little of it
        }
    )
    return _page(all_cases, found, asked, on_record, recorded)


def _asked(spark: object, case: Case, name: str, length: int) -> Asked:
    """Rounds that bring a tenth of a window; what they show at last is what the operators hold."""
    slide = length // _SLIDES
    units = length + (ROUNDS + 1) * slide
    links = case.links(units + 1)
    rounds = run_rounds(spark, name, links, length, slide, ROUNDS)  # type: ignore[arg-type]
    query = case.ways[-1].make(links, length)
    query.feed(units)
    truth = query.results()
    if name in ("distinct", "grouped", "bags"):
        truth = Counter((int(links.value[0, time]),) for (time,) in truth.elements())
    assert rounds.present == truth, (case.title, name)
    return Asked(case.title, name, length, rounds)


def _page(
    all_cases: Sequence[Case],
    found: Found,
    asked: Sequence[Asked],
    on_record: Mapping[str, Mapping[str, Measured]],
    recorded: Recorded | None,
) -> Page:
    tables: list[tuple[str, Table]] = [
        (
            f"Windows of {asked[0].length:,} units: what is done for a unit of time, and what Windloom's rounds do",
            _beside(all_cases, found, asked),
        ),
        ("Figures 3.12 and 3.13: tuples that query 2 keeps, on average", _space(found)),
    ]
    if on_record and recorded is not None:
        tables.append(
            (
                f"Recorded: LBL-PKT-4, TCP, three links of {recorded.links.units:,} tuples, windows of 2,000",
                _recorded(on_record),
            )
        )
    return Page(
        title="Source E, figures 3.8–3.15: update patterns",
        settings=_SETTINGS.format(sources=SOURCES, pairs=PAIRS, skew=SKEW, even=EVEN, spans=SPANS, rounds=ROUNDS),
        claim=_CLAIM,
        figures=_figures(all_cases, found),
        tables=tables,
        data={
            "update_patterns.csv": _data(found),
            "update_patterns_rounds.csv": _round_data(asked),
        },
        findings=_findings(found, asked),
        difference=_DIFFERENCE,
    )


_SETTINGS = """LBL-CONN, the thesis' trace, is not available, and LBL-PKT-4 has too few TCP packets for large
windows, so tuples are generated: one per link and unit of time, {sources:,} sources ({pairs:,} pairs of addresses)
with frequencies like rank^-{skew:g}. So many tuples pass the selection of query 1 that its result has as many rows
as a link has tuples at windows of {even:,} units (*ftp*), or ten times as many (*telnet*). A tuple of the thesis has
about 50 bytes: its windows of 100 KB to 10 MB are 2,000 to 200,000 units; here they end where the slowest way takes
seconds per 1,000 tuples.

The operators (`experiments/pattern_operators.py`, `pattern_plans.py`) are compiled and work tuple by tuple. All hash
tables and calendar queues have ten parts, each a linked list, as in the thesis. Where expiration is lazy, it comes
every 5 % of a window. Times are milliseconds of processor time per 1,000 units of time when windows are full, the
fastest of {spans} spans; what is counted has no noise. `tests/unit/test_pattern_operators.py` compares every way
with the definition of its query.

Windloom gets the same tuples in rounds of 10 % of a window, with windows that slide by as much, and keeps the present
result in the sink `current`; {rounds} rounds are measured when windows are full, by the time of the processors,
Spark's JVM included. After the last one its table has exactly the rows that the operators hold, which is checked."""

_CLAIM = """3.8: with few results UPA is nearly twice as fast as the others, and DIRECT is faster than NT. 3.9: with
ten times the results DIRECT is by far the slowest, UPA with ten parts becomes slow, with fifty it is up to ten times
as fast as NT. 3.10, 3.11: UPA, with δ*, is ten times as fast as the others for 2,000 sources, and twice as fast as
NT for pairs, where DIRECT is slow. 3.12, 3.13: it keeps up to a hundred times less. 3.14: negation is faster with
UPA only up to windows of 500 KB; 40 % of its results go before their time. 3.15: UPA with negation pulled up is the
fastest for large windows, NT with the join pulled up for small ones."""

_DIFFERENCE = """**Lazy or eager.** The thesis expires results every 5 % of a window. With that, scanning all of
them (DIRECT) is cheap, and figure 3.8 comes out. Figure 3.9, where DIRECT is by far the slowest and a calendar of
ten days becomes slow as well, comes out only in part if results that end go at once (*eager*): DIRECT then looks at
all of them for every tuple, and a calendar's days are sorted, so that every result has to find its place. At windows
of 20,000, eager UPA(10) is the slowest of all, slower than DIRECT, and eager UPA(50) is as slow as NT. Both are
measured.

**Query 4 is the inverse of the thesis.** There UPA with negation pulled up is the fastest for large windows. Here UPA
is about the fastest up to 10,000 units and the slowest at 50,000, where NT with the join pulled up takes a quarter of
its time. It is not noise: at 50,000 UPA looks at 46,900 nodes per unit of time, NT with the join pulled up at 19,800,
and NT at 105,600. Why the thesis saw the opposite we cannot say; its structures have no sizes in the text.

**Corrections.** Query 3 is written with NOT EXISTS, and its operator (section 2.2.2) is the difference of bags; both
are here. The two plans of query 4 are equal only if negation is NOT EXISTS. In the difference of bags a tuple of the
first link that ends while it is hidden takes a result with it, which section 2.2.2 does not mention. A negative
tuple tells its expiration time, so it need not be looked for in all parts of a calendar queue, as section 3.5.2
says, but in one (*UPA, day known*).

**What rounds and slices make unnecessary.** All these structures decide how a result *changes* with every tuple.
Windloom answers windows at their ends. A join reports each row once, with the end that is known for it
(`valid_until`); nothing is looked up and nothing is withdrawn when it comes, so there are no negative tuples and no
calendar queue: the sink deletes whole files. What enters a round is joined by Spark at once, where equal keys are
looked up once, so there is no state to expire tuple by tuple. For DISTINCT and negation a round computes the
difference of two windows, and sends deletions (*withdrawn*) only for rows that were there at one end and not at the
next: rows that come and go between two ends, which negative tuples are spent on, never appear. The sources of query
2 as groups of slices (`GROUP BY`) need no tuples at all. Which plan of query 4 is better is not asked: negation
costs nothing downstream if nothing is retracted.

**What they cost.** A round has a price of its own, whatever it brings: it is logged, and Spark plans and runs jobs.
For a few thousand tuples per round that is most of the time, and an operator in memory that promises nothing after a
crash is faster by far; a round of ten times as many tuples takes about twice as long, or no longer. Whoever needs a
row within milliseconds of its tuple needs the operators of the thesis, and not rounds."""


def _beside(all_cases: Sequence[Case], found: Found, asked: Sequence[Asked]) -> Table:
    rows: list[Sequence[Cell]] = []
    for case in all_cases:
        for name, by_length in found[case.title].items():
            if asked[0].length in by_length:
                own = by_length[asked[0].length]
                counted = [own.per_unit(which) for which in (TOUCHED, NEGATIVE, CAME)]
                rows.append((case.title, name, own.milliseconds, *counted, None))
        rows += [_round_row(query) for query in asked if query.title == case.title and query.length == asked[0].length]
    rows += [_round_row(query) for query in asked if query.length != asked[0].length]
    columns = (
        "query",
        "way",
        "ms per 1,000 units",
        "nodes looked at",
        "negative tuples",
        "rows that came (Windloom: and went)",
        "bytes written",
    )
    return Table(columns, rows)


def _round_row(query: Asked) -> tuple[Cell, ...]:
    slide = query.length // _SLIDES
    label = "Windloom" + (", groups" if query.text == "grouped" else "")
    label += "" if query.length == EVEN or query.length < EVEN else f", windows of {query.length:,}"
    rounds = query.rounds
    negative = 0 if query.text in ("join", "grouped") else None  # elsewhere they are among the rows
    took = 1e6 * rounds.processor / slide
    return (query.title, label, took, None, negative, rounds.rows / slide, rounds.written / slide)


def _space(found: Found) -> Table:
    rows: list[Sequence[Cell]] = [
        (title, length, *(by_length[length].per_unit(KEPT) for by_length in found[title].values()))
        for title in ("Query 2, sources", "Query 2, pairs of addresses")
        for length in next(iter(found[title].values()))
    ]
    return Table(("query", "window", "NT", "DIRECT", "UPA"), rows)


def _recorded(on_record: Mapping[str, Mapping[str, Measured]]) -> Table:
    rows: list[Sequence[Cell]] = [
        (title, name, own.milliseconds, *(own.per_unit(which) for which in (TOUCHED, NEGATIVE, CAME)))
        for title, ways in on_record.items()
        for name, own in ways.items()
    ]
    return Table(("query", "way", "ms per 1,000 units", "nodes looked at", "negative tuples", "rows that came"), rows)


def _data(found: Found) -> Table:
    columns = ("query", "way", "length", "ms_per_1000", "touched", "negative", "came", "early", "kept")
    return Table(
        columns,
        [
            (title, name, length, own.milliseconds, *map(own.per_unit, (TOUCHED, NEGATIVE, CAME, EARLY, KEPT)))
            for title, ways in found.items()
            for name, by_length in ways.items()
            for length, own in by_length.items()
        ],
    )


def _round_data(asked: Sequence[Asked]) -> Table:
    stages = sorted({stage for query in asked for stage in query.rounds.stages})
    return Table(
        ("query", "asked", "length", "tuples", "processor", "seconds", "rows", "written_bytes", *stages),
        [
            (
                *(
                    query.title,
                    query.text,
                    query.length,
                    query.rounds.tuples,
                    query.rounds.processor,
                    query.rounds.seconds,
                ),
                *(query.rounds.rows, query.rounds.written, *(query.rounds.stages.get(stage, 0.0) for stage in stages)),
            )
            for query in asked
        ],
    )


def _findings(found: Found, asked: Sequence[Asked]) -> str:
    bags, exists = found["Query 3, bags"]["NT"], found["Query 3, NOT EXISTS"]["NT"]
    length = max(bags)

    def early(own: Measured) -> str:
        return f"{own.per_unit(EARLY) / own.per_unit(CAME):.0%}"

    plans = found["Query 4"]
    least = min(plans, key=lambda name: plans[name][length].milliseconds)
    told = [
        f"At windows of {length:,} units {early(bags[length])} of the results of query 3 go before their time with "
        f"bags, {early(exists[length])} with NOT EXISTS. Query 4 is fastest with {least} there.",
    ]
    longer = [query for query in asked if query.length != asked[0].length]
    for query in longer:
        same = next(own for own in asked if own.text == query.text and own.length != query.length)
        told.append(
            f"A round of `{query.text}` takes {same.rounds.processor:.2f} s of the processors with "
            f"{same.rounds.tuples:,} tuples and {query.rounds.processor:.2f} s with {query.rounds.tuples:,}."
        )
    return " ".join(told)


def _figures(all_cases: Sequence[Case], found: Found) -> list[Figure]:
    figures = []
    for case in all_cases:
        ways = found[case.title]
        slug = case.title.lower().replace(",", "").replace(" ", "_")
        series = [
            Series(name, [(length, own.milliseconds) for length, own in by_length.items()])
            for name, by_length in ways.items()
        ]
        chart = line_chart(series, y_label="ms per 1,000 units", x_label="window, in units", log_x=True, log_y=True)
        figures.append(Figure(f"update_patterns_{slug}.svg", f"Figure {case.figure}: {case.title}", chart))
    for number, title in (("3.12", "Query 2, sources"), ("3.13", "Query 2, pairs of addresses")):
        slug = title.lower().replace(",", "").replace(" ", "_")
        series = [
            Series(name, [(length, own.per_unit(KEPT)) for length, own in by_length.items()])
            for name, by_length in found[title].items()
        ]
        chart = line_chart(series, y_label="tuples kept", x_label="window, in units", log_x=True, log_y=True)
        figures.append(Figure(f"update_patterns_{slug}_space.svg", f"Figure {number}: space, {title.lower()}", chart))
    return figures


FILE, ROUNDS_FILE = "update_patterns.csv", "update_patterns_rounds.csv"
FTP, TELNET, DISTINCT, PAIRED = (
    *("Query 1, ftp", "Query 1, telnet"),
    *("Query 2, sources", "Query 2, pairs of addresses"),
)


def _longest(data: Data, query: str) -> float:
    return max(data.values(FILE, "length", query=query))


def _times(data: Data, query: str, length: float) -> dict[str, float]:
    return {row["way"]: float(row["ms_per_1000"]) for row in data.rows(FILE, query=query, length=length)}


def headline(data: Data) -> str:
    ends = {query: _longest(data, query) for query in (FTP, TELNET, DISTINCT, "Query 4")}
    ftp, telnet, distinct, four = (_times(data, query, length) for query, length in ends.items())
    upa = max(four, key=four.__getitem__)
    return (
        f"UPA takes {ftp['UPA(10)'] / ftp['NT']:.2f} of NT's time for a join, "
        f"{telnet['UPA(50)'] / telnet['NT']:.2f} if it has ten times the results, and "
        f"{distinct['UPA'] / distinct['NT']:.2f} for distinct sources (windows of {ends[FTP]:,.0f}, "
        f"{ends[TELNET]:,.0f} and {ends[DISTINCT]:,.0f}), with expiration every 5 % of a window. If results go at "
        f"once, {max(telnet, key=telnet.__getitem__)} is the slowest for the larger join, and {upa} is the slowest "
        "plan of query 4, where the thesis has it fastest."
    )


def verdicts(data: Data) -> list[Verdict]:
    def told(found: dict[str, float]) -> str:
        return ", ".join(f"{way} {ms:.3g}" for way, ms in sorted(found.items(), key=lambda item: -item[1]))

    def early(query: str) -> float:
        where: dict[str, str | float] = {"query": query, "way": "NT", "length": _longest(data, query)}
        return data.value(FILE, "early", **where) / data.value(FILE, "came", **where)

    def kept(query: str) -> dict[str, float]:
        return {row["way"]: float(row["kept"]) for row in data.rows(FILE, query=query, length=_longest(data, query))}

    ftp, telnet, sources, pairs, bags, four = (
        _times(data, query, _longest(data, query))
        for query in (FTP, TELNET, DISTINCT, PAIRED, "Query 3, bags", "Query 4")
    )
    short = _times(data, "Query 3, bags", min(data.values(FILE, "length", query="Query 3, bags")))
    small = _times(data, "Query 4", min(data.values(FILE, "length", query="Query 4")))
    at = f"ms per 1,000 units at windows of {_longest(data, FTP):,.0f}: "
    eager = {way: ms for way, ms in telnet.items() if way.endswith("eager")}
    ten = sources["UPA"] <= 0.15 * min(sources["NT"], sources["DIRECT"])
    return [
        Verdict(
            "E fig. 3.8",
            "few results: UPA nearly twice as fast as the others, DIRECT faster than NT",
            at + told(ftp),
            TREND if ftp["UPA(10)"] < ftp["NT"] and ftp["DIRECT"] < ftp["NT"] else DIFFERS,
            "with lazy expiration DIRECT and UPA are alike, and NT falls far behind",
        ),
        Verdict(
            "E fig. 3.9",
            "ten times the results: DIRECT slowest by far, UPA(10) slow, UPA(50) up to ten times faster than NT",
            told(telnet),
            REPRODUCED if max(telnet, key=telnet.__getitem__).startswith("DIRECT") else DIFFERS,
            f"lazily NT is the slowest; eagerly {max(eager, key=eager.__getitem__)} is, and UPA(50) is as slow as NT",
        ),
        Verdict(
            "E fig. 3.10",
            "2,000 sources: UPA ten times as fast as the others",
            told(sources),
            REPRODUCED if ten else TREND if sources["UPA"] == min(sources.values()) else DIFFERS,
            f"{sources['NT'] / sources['UPA']:.1f} times as fast as NT, {sources['DIRECT'] / sources['UPA']:.0f} "
            "times as DIRECT",
        ),
        Verdict(
            "E fig. 3.11",
            "pairs: UPA twice as fast as NT, DIRECT slow",
            told(pairs),
            REPRODUCED if 1.5 <= pairs["NT"] / pairs["UPA"] <= 4 and pairs["DIRECT"] == max(pairs.values()) else TREND,
        ),
        *(
            Verdict(
                f"E fig. 3.{number}",
                "space of query 2: UPA keeps up to a hundred times less",
                ", ".join(f"{way} {count:,.0f}" for way, count in kept(query).items()),
                REPRODUCED if kept(query)["NT"] >= 80 * kept(query)["UPA"] else TREND,
                f"{kept(query)['NT'] / kept(query)['UPA']:.0f} times less than NT: it depends on how many sources a "
                "window has",
            )
            for number, query in ((12, DISTINCT), (13, PAIRED))
        ),
        Verdict(
            "E fig. 3.14",
            "UPA faster only with short windows; 40 % of results go early",
            f"shortest: {told(short)}; longest: {told(bags)}; {early('Query 3, bags'):.0%} go early (bags)",
            REPRODUCED if short["UPA"] < short["NT"] and bags["UPA"] > bags["NT"] else DIFFERS,
            "" if short["UPA"] < short["NT"] else "UPA is slower at every length, unless the calendar's day is known",
        ),
        Verdict(
            "E fig. 3.15",
            "UPA with negation pulled up fastest with large windows, NT (join up) with small ones",
            f"shortest: {told(small)}; longest: {told(four)}",
            REPRODUCED if four["UPA"] == min(four.values()) else DIFFERS,
            "the inverse at the longest windows, and not noise: nodes looked at say the same",
        ),
    ]
