"""What an adapter follows: a basin and where it is in its chart; and what it has counted along the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log

from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.candidates import Candidate
from windloom.optimizer.adapt.chart import Chart, Region
from windloom.optimizer.adapt.figures import shown
from windloom.plan.choices import Choices
from windloom.plan.observed import RoundObserved

#: Returns more about a round that is about to begin; None if nothing more is known.
Preview = Callable[[], RoundObserved | None]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How well plans were chosen: `hits` of the `judged` rounds ran with the best plan for what they really brought.

    A plan also counts as best if no switch away from it would be made. `same` counts rounds that ran with the very plan
    that is predicted to be best, or one that ties with it: the two differ by a thousandth or less. `regret` are the
    seconds that rounds are predicted to have lost.
    """

    judged: int = 0
    hits: int = 0
    same: int = 0
    regret: float = 0.0

    def after(self, *, is_hit: bool, is_same: bool, regret: float) -> Verdicts:
        return Verdicts(self.judged + 1, self.hits + is_hit, self.same + is_same, self.regret + regret)

    @property
    def fidelity(self) -> float | None:
        return self.hits / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class Adapted:
    """Counts so far: how often streams moved to another region, how often plans were switched, and how well.

    `undecided` counts the rounds before which another plan was nearly as good and a preview could have been made;
    `previews` those of them that had one in time.
    """

    moves: int = 0
    switches: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)
    undecided: int = 0
    previews: int = 0


@dataclass(eq=False)
class Followed:
    """A basin, its chart once that is drawn, and where it is in it."""

    basin: Basin
    chart: Chart | None = None
    region: Region | None = None
    values: Sequence[float] | None = None  # the point that was looked up last
    best: Choices | None = None  # the best choices where it is, worth a switch or not
    weighed: tuple[RoundObserved, tuple[Candidate, ...]] | None = None  # the candidates for a round that was foreseen
    guess: Choices | None = None  # the best choices in that round without a closer look


def likeness(chart: Chart, seen: RoundObserved) -> tuple[int | None, ...]:
    """Equal for rounds that are taken as alike.

    Their figures (those of the chart's dimensions, and how many cells they make per tuple) lie within about five
    percent of a common value.
    """
    values = [shown(figure, chart.basin, seen) for figure in chart.figures]
    own = [seen.sets[identity] for identity in chart.basin.identities if identity in seen.sets]
    tuples, cells = sum(each.tuples for each in own), sum(each.cells for each in own)
    values.append(cells / tuples if tuples and cells else None)
    return tuple(None if value is None else round(10 * log(value)) for value in values)
