"""What the experiments of source B (OM, Kulkarni and Ravishankar) share: traces, costs of plans, charts, rivals.

Estimates, charts and utility are Windloom's own (`statistics/estimates.py`; `charts.py` and `objective.py` in
`optimizer/adapt`); what is here is the paper's query processor, which Windloom does not have: σ and π per tuple, and
nested-loop joins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from experiments.pages import Skipped
from windloom.answers.joins.key_counts import linked
from windloom.kernels.hashing import spark_hash
from windloom.optimizer.adapt.charts import Axis
from windloom.optimizer.adapt.objective import utility
from windloom.statistics.estimates import Memory
from windloom.statistics.observations import LinkEstimate, RoundObserved, StreamRound

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Tuples per second that an operator processes, as the paper measured them (section 5.1).
SELECTION, PROJECTION, JOIN = 400e3, 500e3, 3e3
#: How fast older rounds count less, as figures were made with; streams forget faster.
DECAY = 0.25
#: Weights of the output rate and of memory, and the length of a round in seconds.
RATE_WEIGHT, MEMORY_WEIGHT, WINDOW = 0.4, 0.6, 1.0
ROUNDS, PARTS = 600, 10
#: Attributes of a packet (time, hosts, ports, bytes), and those that are projected (two hosts).
WIDE, NARROW = 6, 2
#: Coefficients of variation of arrival rates in the paper's REAL data.
VARIATIONS = (0.26, 0.23, 0.20, 0.17, 0.14, 0.11, 0.09)
#: Packets of DEC-PKT-1 get hosts of packets that came so many seconds earlier or later in LBL-PKT-4.
NEAR = 15.0
#: The host that queries ask for: the one that most UDP packets go to.
HOST = 5

#: The cost of every candidate at a point.
Costs = Callable[[Sequence[float]], list[float]]


# ---- data -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trace:
    """Packets in order of time: seconds since the first one, the host that each goes to, and the one it comes from."""

    seconds: Floats
    hosts: Ints
    sources: Ints

    def rounds(self, rounds: int = ROUNDS) -> list[Trace]:
        edges = np.searchsorted(self.seconds, np.arange(rounds + 1) * WINDOW)
        return [self.part(slice(int(a), int(b))) for a, b in pairwise(edges)]

    def part(self, which: slice | NDArray[np.bool_]) -> Trace:
        return Trace(self.seconds[which], self.hosts[which], self.sources[which])

    def __len__(self) -> int:
        return len(self.seconds)


def _read(name: str, *columns: str) -> tuple[NDArray[np.float64], ...]:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("WINDLOOM_DATA") or beside) / name
    if not path.is_file():
        raise Skipped(f"needs {name} (set WINDLOOM_DATA to the folder of data sets)")
    table = pq.read_table(path, columns=list(columns)).sort_by(columns[0])
    return tuple(np.asarray(table[column].to_numpy()) for column in columns)


def lbl() -> Trace:
    """The UDP packets of LBL-PKT-4, an hour at about nine per second."""
    seconds, hosts, sources = _read("lbl_pkt4/lbl_pkt4_udp.parquet", "ts", "dst", "src")
    return Trace(seconds - seconds[0], hosts.astype(np.int64), sources.astype(np.int64))


def dec() -> Trace:
    """The UDP packets of DEC-PKT-1, at about 230 per second.

    Only their times are available. Each packet gets the hosts of some packet of LBL-PKT-4 that came within 15 seconds
    of the same time of its hour, so that shares of hosts change as they do there.
    """
    (seconds,) = _read("dec_pkt/dec_pkt1_udp_interarrivals.parquet", "ts")
    seconds, other = seconds - seconds[0], lbl()
    near = seconds + np.random.default_rng(1).uniform(-NEAR, NEAR, len(seconds))
    places = np.clip(np.searchsorted(other.seconds, near), 0, len(other) - 1)
    return Trace(seconds, other.hosts[places], other.sources[places])


def random_trace(rounds: int = ROUNDS, rate: float = 500.0, seed: int = 1) -> Trace:
    """URND: rates of rounds and shares of hosts are drawn anew for every round, uncorrelated."""
    rng = np.random.default_rng(seed)
    seconds, hosts, sources = [], [], []
    for number in range(rounds):
        count = int(rng.uniform(0.5, 1.5) * rate * WINDOW)
        seconds.append(np.sort(rng.uniform(number, number + 1, count)) * WINDOW)
        hosts.append(np.where(rng.random(count) < rng.uniform(0.0, 0.6), HOST, rng.integers(10, 60, count)))
        shares = rng.dirichlet([8.0, 8.0, 8.0])
        sources.append(rng.choice(3, count, p=shares))  # which of three streams it is of
    return Trace(np.concatenate(seconds), np.concatenate(hosts), np.concatenate(sources))


def varied(counts: Floats, variation: float | None) -> Floats:
    """Rates with another coefficient of variation: the paper filters its trace, here deviations are scaled."""
    mean = counts.mean()
    now = counts.std() / mean
    return counts if variation is None else np.maximum(1.0, mean + (counts - mean) * (variation / now))


# ---- the paper's costs (section 4.1) --------------------------------------------------------------------------------


def single_costs(point: Sequence[float]) -> list[float]:
    """σ then π, and π then σ, at a selectivity and a rate.

    Counted in tuples, as the formulas are printed, σ first is never worse, and no plan would ever be switched. So
    memory counts attributes: a projected tuple takes less.
    """
    share, rate = point
    out = max(share * rate, 1e-9)

    def buffered(arriving: float, speed: float, width: int) -> float:
        return arriving * (arriving * WINDOW / speed) * width

    first = buffered(rate, SELECTION, WIDE) + out * WINDOW * WIDE
    first += buffered(out, PROJECTION, WIDE) + out * WINDOW * NARROW
    second = buffered(rate, PROJECTION, WIDE) + rate * WINDOW * NARROW
    second += buffered(rate, SELECTION, NARROW) + out * WINDOW * NARROW
    return [utility(out, memory, RATE_WEIGHT, MEMORY_WEIGHT) for memory in (first, second)]


#: The left-deep orders of three streams, up to the order of the first two.
ORDERS = ((0, 1, 2), (1, 2, 0), (0, 2, 1))


def join_costs(rates: Sequence[float], shares: Callable[[int, int], float]) -> list[float]:
    """Left-deep joins of three streams; `shares` are join selectivities."""
    found = []
    for first, second, third in ORDERS:
        rate, memory = _joined(rates[first], rates[second], shares(first, second))
        last, more = _joined(rate, rates[third], (shares(first, third) + shares(second, third)) / 2)
        found.append(utility(max(last, 1e-9), memory + more, RATE_WEIGHT, MEMORY_WEIGHT))
    return found


def _joined(left: float, right: float, share: float) -> tuple[float, float]:
    """Output rate and memory of one join, in which joining a tuple with the other window takes a constant time."""
    busy = left / JOIN + right / JOIN
    rate = share * left * right * WINDOW / max(busy, 1e-9)
    return rate, left * (left * WINDOW / JOIN) + right * (right * WINDOW / JOIN) + rate * WINDOW


# ---- choosing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plans of all rounds: those that a chart chose, those that were best, how often the region changed."""

    plans: Ints
    best: Ints
    moves: int

    @property
    def hits(self) -> NDArray[np.bool_]:
        return np.asarray(self.plans == self.best)

    @property
    def fidelity(self) -> float:
        return float(self.hits.mean())

    @property
    def switches(self) -> int:
        return int((np.diff(self.plans) != 0).sum())


def axis_to(high: float, parts: int, geometric: bool) -> Axis:
    """A dimension from nothing to `high`, or from a thousandth of it if parts are geometric."""
    return Axis(high / 1e3 if geometric else 0.0, high, parts, geometric)


def centroid(axes: Sequence[Axis], point: Sequence[float]) -> tuple[tuple[int, ...], list[float]]:
    """The region of a point, and its middle."""
    region = tuple(min(axis.parts - 1, max(0, axis.part(value))) for axis, value in zip(axes, point, strict=True))
    return region, [axis.centre(part) for axis, part in zip(axes, region, strict=True)]


def follow(
    expected: Sequence[Sequence[float]],
    axes: Sequence[Axis],
    costs: Sequence[Costs],
    best: Sequence[int],
) -> Chosen:
    """Looks every round up; `costs` are those of the round, as far as they are known before it."""
    plans, moves, before = [], 0, None
    for point, cost in zip(expected, costs, strict=True):
        region, middle = centroid(axes, point)
        moves += before is not None and region != before
        before = region
        plans.append(int(np.argmin(cost(middle))))
    return Chosen(np.array(plans), np.array(best), moves)


# ---- queries --------------------------------------------------------------------------------------------------------


def single_query(
    trace: Trace, host: int = HOST, *, parts: int = PARTS, geometric: bool = False, variation: float | None = None
) -> Chosen:
    """Q1: two hosts of the packets to one host. Selectivity and rate are observed and estimated as in every loom."""
    rounds = trace.rounds()
    rates = varied(np.array([len(round_packets) for round_packets in rounds], np.float64) / WINDOW, variation)
    shares = np.array(
        [float((round_packets.hosts == host).mean()) if len(round_packets) else 0.0 for round_packets in rounds]
    )
    memory, expected = Memory(decay=DECAY, leap=None), []
    for rate, share in zip(rates, shares, strict=True):
        expected.append(_expected(memory, rate, share))
        count = max(1, round(rate * WINDOW))
        seen = StreamRound(count, WINDOW, WINDOW, {"host": round(share * count)})
        memory.add(RoundObserved({"s": seen}, {}))
    truth = np.stack([np.maximum(shares, 1e-3), rates], axis=1)
    best = [int(np.argmin(single_costs(point))) for point in truth]
    axes = [axis_to(1.0, parts, geometric), axis_to(float(rates.max()), parts, geometric)]
    return follow(expected, axes, [single_costs] * len(truth), best)


def _expected(memory: Memory, rate: float, share: float) -> tuple[float, float]:
    """What is estimated; of the first round, what it is."""
    found, rates = memory.share_of("s", "host"), memory.rate_of("s")
    return (share, rate) if found is None or rates is None else (max(found, 1e-3), rates)


@dataclass(frozen=True, slots=True)
class JoinRounds:
    """Three streams round by round: true rates, what is estimated of them before each round, join selectivities."""

    rates: Floats
    expected: Floats
    shares: Callable[[int, int], float]


def join_rounds(trace: Trace, stream_of: Ints, variation: float | None = None, rounds: int = ROUNDS) -> JoinRounds:
    """The packets of a trace as three streams, which are joined on the hosts that packets go to.

    As in the paper's λ–λ chart, join selectivities stay: they are those of histograms of the whole trace.
    """
    parts = [trace.part(stream_of == number) for number in range(3)]
    counts = (
        np.array([[len(round_packets) for round_packets in part.rounds(rounds)] for part in parts], np.float64).T
        / WINDOW
    )
    rates = np.stack([varied(column, variation) for column in counts.T], axis=1)
    memory, expected = Memory(decay=DECAY, leap=None), []
    for point in rates:
        found = [memory.rate_of(str(stream)) for stream in range(3)]
        expected.append([point[i] if rate is None else rate for i, rate in enumerate(found)])
        seen = {str(i): StreamRound(max(1, round(rate * WINDOW)), WINDOW, WINDOW) for i, rate in enumerate(point)}
        memory.add(RoundObserved(seen, {}))
    pairs = {
        (a, b): LinkEstimate.of(linked(_hashed(parts[a]), _hashed(parts[b]))).selectivity
        for a, b in ((0, 1), (0, 2), (1, 2))
    }
    return JoinRounds(rates, np.array(expected), lambda left, right: pairs[min(left, right), max(left, right)])


def _hashed(trace: Trace) -> Ints:
    return spark_hash([pa.array(trace.hosts)], len(trace))


def join_query(rounds: JoinRounds, *, parts: int = PARTS, geometric: bool = False) -> Chosen:
    """Q2: the join of three streams on hosts, one of three left-deep orders."""

    def costs(point: Sequence[float]) -> list[float]:
        return join_costs(point, rounds.shares)

    best = [int(np.argmin(costs(point))) for point in rounds.rates.tolist()]
    axes = [axis_to(float(column.max()), parts, geometric) for column in rounds.rates.T]
    return follow(rounds.expected.tolist(), axes, [costs] * len(best), best)


# ---- rivals ---------------------------------------------------------------------------------------------------------


def by_chance(chosen: Chosen, plans: int, seeds: int = 5) -> float:
    """RAND: any plan in every round; the mean of several draws."""
    drawn = [np.random.default_rng(seed).integers(0, plans, len(chosen.best)) for seed in range(seeds)]
    return float(np.mean([(each == chosen.best).mean() for each in drawn]))


def by_first(chosen: Chosen) -> float:
    """RATE: the plan that was best for the first round, for ever."""
    return float((chosen.best == chosen.best[0]).mean())
