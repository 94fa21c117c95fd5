"""What EXPLAIN shows of plans that follow the data: charts, the plans of their regions, and how well it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AxisView:
    """A dimension of a chart: `edges` of its parts, the present value and its part, and why it is a dimension."""

    figure: str
    unit: str
    edges: tuple[float, ...]
    is_geometric: bool
    value: float
    part: int
    reason: str


@dataclass(frozen=True, slots=True)
class CandidateView:
    """A plan that competes: predicted seconds and bytes of a round, and what each of them adds to its utility."""

    plan: str
    seconds: float
    nbytes: float
    latency: float
    memory: float

    @property
    def utility(self) -> float:
        return self.latency + self.memory


@dataclass(frozen=True, slots=True)
class ChartView:
    """`plans` describe plans by letter. `regions` has the letter of the plan of each region of the first two axes.

    Without `axes`, it is no chart, but only the plans that compete for the next round.

    `path` are the points of the last rounds, oldest first, by their values on the axes. `candidates` are those of the
    region that the next round is in, best first; `present` is the plan in force.
    """

    basin: str
    axes: tuple[AxisView, ...]
    plans: Mapping[str, str]
    regions: Mapping[tuple[int, int], str] = field(default_factory=dict)
    path: tuple[tuple[float, ...], ...] = ()
    candidates: tuple[CandidateView, ...] = ()
    present: str = ""


@dataclass(frozen=True, slots=True)
class PredictedRound:
    """The predicted seconds of a round, if there was a prediction, and the seconds it took."""

    round: int
    predicted: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class AdaptView:
    """`learned` gives, by stage, how seconds follow from the model's: (constant, factor), from `rounds` rounds."""

    objective: str
    charts: tuple[ChartView, ...]
    moves: int
    switches: int
    judged: int
    hits: int
    same: int
    regret: float
    learned: Mapping[str, tuple[float, float]]
    rounds: int
    rest: float
    recent: tuple[PredictedRound, ...] = ()
    failure: str = ""
    damaged: tuple[str, ...] = ()  # files of the checkpoint that hold statistics and could not be read
