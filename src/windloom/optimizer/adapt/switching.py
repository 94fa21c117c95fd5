"""When a switch pays: what it saves until the stream moves on must exceed what it costs.

Source B takes a switch as free. Here the first round with another plan takes longer: Spark compiles other code, the
plan is made, the state is carried over. That is measured, switch by switch. How long the stream will stay where it is
follows from how long it has stayed elsewhere. And a plan that is only a little better is not worth having: where two
plans cost about the same, figures that go up and down would make plans go back and forth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windloom.optimizer.adapt.objective import Least, Objective
from windloom.optimizer.adapt.round_cost import RoundCost

#: A plan must be better by this share to replace another.
CLEARLY = 0.03
#: Rounds that a stay is expected to last before any has ended, and as how many stays that counts.
USUAL_STAY, STAYS = 8.0, 2.0
#: No stay is expected to last longer.
LONGEST_STAY = 64.0
#: Seconds that a switch is expected to cost before any was made: if Spark compiles new code, and if not.
RECOMPILING, PLAIN = 1.0, 0.1


@dataclass(frozen=True, slots=True)
class Stays:
    """How long streams stay in a region of their chart."""

    rounds: int = 0
    moves: int = 0

    def after(self, *, moved: bool) -> Stays:
        return Stays(self.rounds + 1, self.moves + moved)

    @property
    def expected(self) -> float:
        """In rounds.

        >>> Stays().expected, Stays(100, 49).expected
        (8.0, 2.2745098039215685)
        """
        return min(LONGEST_STAY, (self.rounds + STAYS * USUAL_STAY) / (self.moves + STAYS))


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds that switches have cost, on average: the excess of the first round over what was expected of it."""

    recompiling: float = RECOMPILING
    plain: float = PLAIN

    def of(self, *, recompiles: bool) -> float:
        return self.recompiling if recompiles else self.plain

    def after(self, seconds: float, *, recompiles: bool) -> Prices:
        """With one more switch, which counts as much as all before."""
        seconds = max(0.0, seconds)
        if recompiles:
            return replace(self, recompiling=(self.recompiling + seconds) / 2)
        return replace(self, plain=(self.plain + seconds) / 2)


def pays(present: RoundCost, other: RoundCost, least: Least, objective: Objective, stay: float, price: float) -> bool:
    """Is another plan worth the `price` (in seconds) of a switch, if it runs for `stay` rounds?"""
    now, then = objective.utility(present, least), objective.utility(other, least)
    saved = now - then
    return saved > CLEARLY * now and saved * stay >= objective.latency * price / least.seconds
