"""What plans are chosen for: little time, little memory, or a mean of both (source B, section 3.2).

The utility of source B is `w_r / C_r + w_m · C_m`: C_r is an output rate, C_m memory, and less is better. The two have
no common unit, so its weights depend on units. Here C_r is the speed of a plan as a share of that of the fastest
candidate, and C_m its bytes as a multiple of those of the smallest candidate: both are 1 at best, and weights say what
a share of time is worth in shares of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from windloom.errors import WindloomError, near_names
from windloom.optimizer.adapt.round_cost import RoundCost

_NAMES = ("latency", "memory")


def utility(rate: float, memory: float, weight_of_rate: float, weight_of_memory: float) -> float:
    """Source B, section 3.2: the less, the better.

    >>> [round(utility(*plan, 0.1, 0.9), 2) for plan in ((5.0, 775), (2.5, 575))]
    [697.52, 517.54]
    >>> [utility(*plan, 20_000, 2) for plan in ((5.0, 775), (2.5, 575))]
    [5550.0, 9150.0]
    """
    return weight_of_rate / rate + weight_of_memory * memory


@dataclass(frozen=True, slots=True)
class Least:
    """The least seconds and the least bytes of some candidates, each by itself."""

    seconds: float
    nbytes: float

    @classmethod
    def of(cls, costs: Sequence[RoundCost]) -> Least:
        return cls(
            max(min(round_cost.seconds for round_cost in costs), 1e-12),
            max(min(round_cost.nbytes for round_cost in costs), 1e-12),
        )


@dataclass(frozen=True, slots=True)
class Objective:
    """Weights, which add up to 1."""

    latency: float = 1.0
    memory: float = 0.0

    @classmethod
    def of(cls, given: str | Mapping[str, float] | Objective) -> Objective:
        """The objective that a user gives: "latency", "memory", or weights of both by name."""
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

    def terms(self, cost: RoundCost, least: Least) -> tuple[float, float]:
        """The terms that time and memory add to the utility of a candidate."""
        rate, memory = least.seconds / max(cost.seconds, 1e-12), cost.nbytes / least.nbytes
        return utility(rate, 0.0, self.latency, 0.0), utility(1.0, memory, 0.0, self.memory)

    def utility(self, cost: RoundCost, least: Least) -> float:
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
