"""What plans are chosen for: little time, little memory, or a mean of both (source B, section 3.2).

The utility of source B is `w_r / C_r + w_m · C_m`: C_r is an output rate, C_m memory, and less is better. The two have
no common unit, so its weights depend on units. Here C_r is the speed of a plan as a share of that of the fastest
candidate, and C_m its bytes as a multiple of those of the smallest candidate: both are 1 at best, and weights say what
a share of time is worth in shares of memory.

A switch to another plan pays if what it saves until the stream moves on exceeds what it costs. Source B treats a switch
as free. Here another plan has to be made, and where Spark must compile other code, the first round with it takes
longer; Spark keeps what it has compiled, so going back to a plan that has run takes less. All three prices are
measured, switch by switch. How long another plan will stay the best one is estimated from how long others have. And a
plan that is only a little better is not worth having: where two plans cost about as much, figures that go up and down
would make plans go back and forth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from windloom.errors import WindloomError, near_names
from windloom.optimizer.adapt.round_cost import RoundCost

_NAMES = ("latency", "memory")
#: A plan must be better by this share to replace another: if Spark compiles code that it has not compiled before, and
#: if not.
CLEARLY, SLIGHTLY = 0.03, 0.01
#: Plans whose utilities differ by no more than this share tie.
TIE = 0.001
#: Rounds that a stay is expected to last before any has ended, and how many stays this expectation counts as.
USUAL_STAY, STAYS = 8.0, 2.0
#: No stay is expected to last longer.
LONGEST_STAY = 64.0
#: Seconds that a switch is expected to cost before any was made: if Spark compiles new code, if it has compiled it
#: before, and if it has nothing to compile.
RECOMPILING, AGAIN, PLAIN = 1.0, 0.1, 0.05


def utility(rate: float, memory: float, weight_of_rate: float, weight_of_memory: float) -> float:
    """Source B, section 3.2: the less, the better.

    >>> [round(utility(*plan, 0.1, 0.9), 2) for plan in ((5.0, 775), (2.5, 575))]
    [697.52, 517.54]
    >>> [utility(*plan, 20_000, 2) for plan in ((5.0, 775), (2.5, 575))]
    [5550.0, 9150.0]
    """
    return weight_of_rate / rate + weight_of_memory * memory


@dataclass(frozen=True, slots=True)
class BestCosts:
    """The least seconds and the least bytes of some candidates, each by itself."""

    seconds: float
    nbytes: float

    @classmethod
    def of(cls, costs: Sequence[RoundCost]) -> BestCosts:
        return cls(max(min(each.seconds for each in costs), 1e-12), max(min(each.nbytes for each in costs), 1e-12))


@dataclass(frozen=True, slots=True)
class Objective:
    """Weights, which add up to 1."""

    latency: float = 1.0
    memory: float = 0.0

    @classmethod
    def of(cls, given: str | Mapping[str, float] | Objective) -> Objective:
        """Return the objective that a user gives: "latency", "memory", or weights of both by name."""
        if isinstance(given, Objective):
            return given
        if isinstance(given, str):
            if given not in _NAMES:
                raise WindloomError(
                    f"unknown objective '{given}'",
                    "it says what plans are chosen for",
                    near_names(given, [*_NAMES]) + ', or weights: {"latency": 0.4, "memory": 0.6}',
                )
            return cls(float(given == "latency"), float(given == "memory"))
        return cls(*_checked(given))

    @property
    def name(self) -> str:
        """The objective as users write it."""
        if not self.memory or not self.latency:
            return "latency" if self.latency else "memory"
        return f"latency {self.latency:g}, memory {self.memory:g}"

    def terms(self, cost: RoundCost, least: BestCosts) -> tuple[float, float]:
        """Return the terms that time and memory add to the utility of a candidate."""
        rate, memory = least.seconds / max(cost.seconds, 1e-12), cost.nbytes / least.nbytes
        return utility(rate, 0.0, self.latency, 0.0), utility(1.0, memory, 0.0, self.memory)

    def utility(self, cost: RoundCost, least: BestCosts) -> float:
        return utility(least.seconds / max(cost.seconds, 1e-12), cost.nbytes / least.nbytes, self.latency, self.memory)


def _checked(given: object) -> tuple[float, float]:
    if not isinstance(given, Mapping):
        raise WindloomError(
            f"an objective cannot be {given!r}",
            "it says what plans are chosen for",
            'use "latency", "memory", or weights: {"latency": 0.4, "memory": 0.6}',
        )
    for name, weight in given.items():
        if name not in _NAMES:
            raise WindloomError(
                f"unknown objective '{name}'", "weights are of latency and of memory", near_names(str(name), [*_NAMES])
            )
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool) and isfinite(weight)
        if not is_number or weight < 0:
            raise WindloomError(
                f"the weight of '{name}' cannot be {weight!r}",
                "a weight says how much an objective counts against the other",
                "give a number that is not negative",
            )
    total = float(sum(given.values()))
    if not total:
        raise WindloomError(
            "all weights of the objective are zero",
            "then any plan is as good as any other",
            'give one of them weight: {"latency": 0.4, "memory": 0.6}',
        )
    return given.get("latency", 0.0) / total, given.get("memory", 0.0) / total


@dataclass(frozen=True, slots=True)
class PlanTenure:
    """How long a plan stays the best one, whether it was switched to or not; a move makes another one best."""

    rounds: int = 0
    moves: int = 0

    def after(self, *, moved: bool) -> PlanTenure:
        return PlanTenure(self.rounds + 1, self.moves + moved)

    @property
    def expected(self) -> float:
        """The expected length of a stay in rounds.

        >>> PlanTenure().expected, PlanTenure(100, 49).expected
        (8.0, 2.2745098039215685)
        """
        return min(LONGEST_STAY, (self.rounds + STAYS * USUAL_STAY) / (self.moves + STAYS))


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds that switches have cost, on average.

    If Spark compiles for a switch, or has compiled for it before (`again`), its price is how much longer than expected
    the first round took; otherwise it is the time to make the plan.
    """

    recompiling: float = RECOMPILING
    plain: float = PLAIN
    again: float = AGAIN

    def after(self, seconds: float, *, recompiles: bool, again: bool = False) -> Prices:
        """Return the prices after one more switch, which counts as much as all before it together."""
        seconds = max(0.0, seconds)
        if not recompiles:
            return replace(self, plain=(self.plain + seconds) / 2)
        if again:
            return replace(self, again=(self.again + seconds) / 2)
        return replace(self, recompiling=(self.recompiling + seconds) / 2)


def pays(
    present: RoundCost,
    other: RoundCost,
    objective: Objective,
    stay: float,
    prices: Prices,
    *,
    recompiles: bool,
    again: bool = False,
    least: BestCosts | None = None,
) -> bool:
    """Return whether another plan is worth what a switch costs, if it runs for `stay` rounds.

    `again` says that Spark has compiled for it before; `least` is that of all candidates, relative to which the other
    is best.
    """
    least = least or BestCosts.of([present, other])
    now, then = objective.utility(present, least), objective.utility(other, least)
    saved = now - then
    margin, price = SLIGHTLY, prices.again if recompiles else prices.plain
    if recompiles and not again:
        margin, price = CLEARLY, prices.recompiling
    return saved > margin * now and saved * stay >= objective.latency * price / least.seconds
