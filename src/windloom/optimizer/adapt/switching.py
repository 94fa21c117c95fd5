"""When a switch pays: what it saves until the stream moves on must exceed what it costs.

Source B treats a switch as free. Here another plan has to be made, and where Spark must compile other code, the first
round with it takes longer; Spark keeps what it has compiled, so going back to a plan that has run takes less. All three
are measured, switch by switch. How long another plan will stay the best one is estimated from how long others have. And
a plan that is only a little better is not worth having: where two plans cost about the same, figures that go up and
down would make plans go back and forth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windloom.optimizer.adapt.objective import Least, Objective
from windloom.optimizer.adapt.round_cost import RoundCost

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


@dataclass(frozen=True, slots=True)
class Stays:
    """How long a plan stays the best one, whether it was switched to or not; a move makes another one best."""

    rounds: int = 0
    moves: int = 0

    def after(self, *, moved: bool) -> Stays:
        return Stays(self.rounds + 1, self.moves + moved)

    @property
    def expected(self) -> float:
        """The expected length of a stay in rounds.

        >>> Stays().expected, Stays(100, 49).expected
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

    def of(self, *, recompiles: bool, again: bool = False) -> float:
        if not recompiles:
            return self.plain
        return self.again if again else self.recompiling

    def after(self, seconds: float, *, recompiles: bool, again: bool = False) -> Prices:
        """The prices after one more switch, which counts as much as all before it together."""
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
    least: Least | None = None,
    weighed: bool = False,
) -> bool:
    """Whether another plan is worth what a switch costs, if it runs for `stay` rounds.

    `again` says that Spark has compiled for it before; `least` is that of all candidates, relative to which the other
    is best. If both were `weighed` for what the round will bring, no margin is needed against figures that go up and
    down.
    """
    least = least or Least.of([present, other])
    now, then = objective.utility(present, least), objective.utility(other, least)
    saved = now - then
    price = prices.of(recompiles=recompiles, again=again)
    margin = CLEARLY if recompiles and not again else TIE if weighed else SLIGHTLY
    return saved > margin * now and saved * stay >= objective.latency * price / least.seconds
