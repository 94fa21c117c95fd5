"""Between two rounds: says with which choices the next round is to run.

After a round, or when a micro-batch is announced, a worker plans at the estimates of that moment (or looks them up in a
chart), and a plan that saves more than a switch costs replaces the one in force.

All calls except tasks of the worker come from the thread of the rounds. What a task finds is put in place by one
assignment, so that a round sees all of it or nothing. Until the worker has an answer, the plan in force stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from time import perf_counter

from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.candidates import (
    Candidate,
    Corrected,
    Pause,
    candidates_at,
    choices_of,
    compiled_for,
    has_candidate,
    no_pause,
    ranked,
    recompiling,
    with_candidate,
)
from windloom.optimizer.adapt.chart_figures import ExpectedRound, LikeRounds, Point, figures_of, point_of, point_shown
from windloom.optimizer.adapt.charts import ChartLookup, ChartOptions
from windloom.optimizer.adapt.objective import CLEARLY, TIE, BestCosts, Objective, PlanTenure, Prices, pays
from windloom.optimizer.adapt.round_cost import Correction, MeasuredRound, RoundCost, intake_of, round_cost
from windloom.optimizer.adapt.worker import ImmediateWorker, Need, Task, TaskPriority
from windloom.optimizer.facts import with_statistics
from windloom.plan.costs import Choices
from windloom.plan.plan import Plan
from windloom.statistics.estimates import Estimates, Memory, estimates_of
from windloom.statistics.observations import RoundObserved

#: Rounds that are not learned from: Spark and the kernels are still warming up.
COLD_ROUNDS = 2
#: The number of rounds whose way through a chart is remembered.
PATH = 100
#: Between two rounds, the adapter may wait for what the next one needs: for this share of the time of rounds, saved up
#: to at most this many seconds.
PATIENCE, MOST_PATIENCE = 0.01, 0.25
#: Candidates are used again for rounds that are alike: for at most this many rounds, and those that were found early,
#: and rest on few rounds, for three times as many rounds as had passed, but at least for the second number.
OLD, EARLY = 128, 2


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """How plans are found: in `charts` with these options, or else by planning again at the present estimates."""

    charts: ChartOptions | None = None


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

    @property
    def fidelity(self) -> float | None:
        return self.hits / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class AdaptCounts:
    """How often streams moved to another region of their chart, how often plans were switched, and how well."""

    moves: int = 0
    switches: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """The candidates at some estimates, where the figures of these lie, and after how many rounds they were made."""

    candidates: tuple[Candidate, ...]
    estimates: Estimates
    point: Point
    round: int


class Replanner:
    """Plans a basin at the estimates of the moment, and remembers the candidates for rounds that are alike."""

    has_moved = False

    def __init__(self, basin: Basin, objective: Objective, pause: Pause = no_pause) -> None:
        self.basin, self.objective, self._pause = basin, objective, pause
        self._figures = figures_of(basin)
        self._known = LikeRounds[PlannedRound]()
        self._newest: PlannedRound | None = None  # unless it was looked at
        self._rounds = 0  # lookups so far

    def candidates(
        self, expected: ExpectedRound, corrected: Corrected, present: Choices, need: Need
    ) -> Sequence[Candidate] | None:
        """Return the candidates of a round, best first, the present plan among them; None until the worker has them.

        Candidates that come too late for their round still count once: the next one may be much alike.
        """
        self._rounds += 1
        point = self._point(expected)
        planned = self._known.get(point)
        if planned is None or self._is_old(planned) or not has_candidate(planned.candidates, present):
            need(("plan", self.basin.name), partial(self._plan, expected, corrected, present))
            planned = self._known.get(point) or self._newest
        self._newest = None
        if planned is None or not has_candidate(planned.candidates, present):
            return None
        return ranked(planned.candidates, self.objective, corrected)

    def _point(self, expected: ExpectedRound) -> Point:
        return point_of(expected.value(figure, self.basin) for figure in self._figures)

    def _is_old(self, planned: PlannedRound) -> bool:
        return self._rounds - planned.round >= min(OLD, max(EARLY, 3 * planned.round))

    def _plan(self, expected: ExpectedRound, corrected: Corrected, present: Choices) -> None:
        now = expected.again()  # rounds may have passed since this was asked for
        point, rounds = self._point(now), self._rounds
        planned = self._known.get(point)
        if planned is None or self._is_old(planned):
            estimates = now.estimates(self.basin)
            candidates = candidates_at(self.basin, estimates, self.objective, corrected, self._pause)
            planned = PlannedRound(candidates, estimates, point, rounds)
            self._pause()
        candidates = with_candidate(planned.candidates, present, self.basin, planned.estimates)
        planned = replace(planned, candidates=candidates)
        self._known.put(planned, planned.point)
        self._newest = planned


@dataclass(eq=False)
class FollowedBasin:
    """A basin, and what finds its plans."""

    basin: Basin
    finder: Replanner | ChartLookup
    candidates: Sequence[Candidate] = ()  # for the next round, best first

    def __post_init__(self) -> None:
        self.figures, self.judged = figures_of(self.basin), LikeRounds[tuple[Candidate, ...]]()


class Adapter:
    """Follows the rounds of a stream, and says with which choices the next one is to run."""

    def __init__(
        self,
        memory: Memory,
        learned: Estimates,
        options: AdaptOptions,
        objective: Objective,
        worker: ImmediateWorker,
        counts: AdaptCounts | None = None,
        measured: Sequence[MeasuredRound] = (),
    ) -> None:
        """`counts` and `measured` (newest first) come from the rounds before this start."""
        self.memory, self.objective, self.options = memory, objective, options
        self._learned, self._worker = learned, worker
        counts = counts or AdaptCounts()
        self.moves, self.switches, self.verdicts = counts.moves, counts.switches, counts.verdicts
        self.correction, self.prices, self.tenure = Correction(measured), Prices(), PlanTenure()
        self._chosen_by = self.correction  # as it was when the plan in force was last chosen
        self.measured: MeasuredRound | None = None  # the last round that was learned from
        self.predicted: float | None = None  # the seconds that the next round, or the present one, is expected to take
        self.followed: list[FollowedBasin] = []
        self._version = -1
        self.choices = Choices()  # of the plan in force
        self._plan: Plan | None = None
        self._rounds = 0  # of this process
        self._patience = 0.0  # seconds that may be waited for a plan
        self.seen: deque[RoundObserved] = deque(maxlen=PATH)  # what rounds showed, oldest first
        self._compiles = False  # the present round is the first one after a switch for which Spark compiles
        self._again = False  # Spark has compiled for that switch before
        self._compiled: set[tuple[str, str, str]] = set()  # options of plans that have run since queries changed
        self._is_announced = False  # something is known of the round that is about to begin, or runs
        self._costs = LikeRounds[RoundCost]()  # that the model predicts for what rounds were

    # ---- rounds -----------------------------------------------------------------------------------------------------

    def begin(self, version: int, plan: Plan, basins: Callable[[], list[Basin]]) -> None:
        """Note that a round begins with a plan; `basins` is called if the queries are not those of before."""
        if version == self._version:
            return
        before, known = self.choices, self._plan
        self._version, self._plan, self.choices = version, plan, choices_of(plan)
        if known is None or _queries(known) != _queries(plan):
            self._follow(basins())
            self._compiles = False
            self._costs = LikeRounds()
            self._compiled.clear()
        elif before != self.choices:
            self.switches += 1
            self._compiles = recompiling(before, self.choices)
            self._again = compiled_for(self.choices) <= self._compiled
        self._compiled |= compiled_for(self.choices)

    def done(
        self, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int, *, is_whole: bool = True
    ) -> Choices | None:
        """Learn from a round that is over, and in the memory; return the choices of the next one if they are others.

        A round that leaves answers to later ones, or gives those of earlier ones, is not learned from. A source that
        announces one round also announces the next one: then nothing is chosen until that is announced.
        """
        assert self._plan is not None
        self.seen.append(seen)
        if is_whole:
            self._learn(self._plan, seen, seconds, state_bytes)
        took = sum(seconds.values())
        self._worker.passed(took)
        self._patience = min(MOST_PATIENCE, self._patience + PATIENCE * took)
        self._judge(seen)
        self._rounds += 1
        was_announced, self._is_announced = self._is_announced, False
        return None if was_announced else self._choose(ExpectedRound(self.memory, self._learned))

    def foresee(self, coming: RoundObserved) -> Choices | None:
        """Return the choices of the next round, of which `coming` is known, if they are not those in force.

        Whatever is not known is taken from the memory.
        """
        if not self.followed:
            return None
        self._is_announced = True
        return self._choose(ExpectedRound(self.memory, self._learned, coming))

    @property
    def counts(self) -> AdaptCounts:
        return AdaptCounts(self.moves, self.switches, self.verdicts)

    def switched(self, seconds: float) -> None:
        """Note that a switch was recorded; `seconds` is how long its plan took to make."""
        self.prices = self.prices.after(seconds, recompiles=False)

    def close(self) -> None:
        self._worker.close()

    @property
    def failure(self) -> BaseException | None:
        """The error because of which no more plans are made; the plan in force then stays."""
        return self._worker.failure

    def estimates(self) -> Estimates:
        """Return what is known of the streams now."""
        return self.memory.estimates().before(self._learned)

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def _choose(self, expected: ExpectedRound) -> Choices | None:
        """Return the choices of the next round, if they are not those in force."""
        wanted, costs, has_changed, has_moved = Choices(), list[RoundCost](), False, False
        self._chosen_by = self.correction
        for followed in self.followed:
            present = followed.basin.own(self.choices)
            candidates = followed.finder.candidates(expected, self.correction, present, self._need)
            has_moved = has_moved or followed.finder.has_moved
            if candidates is None:
                wanted |= present
                continue
            before, followed.candidates = followed.candidates, candidates
            has_changed = has_changed or bool(before and before[0].choices != candidates[0].choices)
            chosen = candidates[0].choices if self._pays(candidates, present) else present
            wanted |= chosen
            costs += [candidate.cost for candidate in candidates if candidate.choices == chosen]
        self.tenure = self.tenure.after(moved=has_changed)
        self.moves += has_moved
        self.predicted = None
        if costs and len(costs) == len(self.followed):
            together = replace(sum(costs[1:], costs[0]), rest=max(cost.rest for cost in costs))  # one job for all
            self.predicted = self.correction(together, wanted).seconds
        return None if wanted == self.choices else wanted

    def _need(self, key: Hashable, task: Task) -> None:
        """Has a task done before the next round, if that does not take long, or else beside it.

        A round with a plan for other data may take several times as long as with the plan that is looked for.
        """
        self._worker.submit(key, task, TaskPriority.NEEDED)
        begun = perf_counter()
        self._worker.wait(key, self._patience)
        self._patience = max(0.0, self._patience - (perf_counter() - begun))

    def _pays(self, candidates: Sequence[Candidate], present: Choices) -> bool:
        """Return whether the first candidate is worth a switch from the present plan."""
        best = candidates[0].choices
        if best == present:
            return False
        costs = {candidate.choices: self.correction(candidate.cost, candidate.choices) for candidate in candidates}
        return pays(
            costs[present],
            costs[best],
            self.objective,
            self.tenure.expected,
            self.prices,
            recompiles=recompiling(present, best),
            again=compiled_for(best) <= self._compiled,
            least=BestCosts.of([*costs.values()]),
        )

    def _follow(self, basins: list[Basin]) -> None:
        """Basins whose queries are those of before keep what was found for them."""
        known = {(tuple(followed.basin.streams), followed.basin.queries): followed for followed in self.followed}
        charts, objective, pause = self.options.charts, self.objective, self._worker.pause
        self.followed = [
            known.get((tuple(basin.streams), basin.queries))
            or FollowedBasin(
                basin,
                Replanner(basin, objective, pause) if charts is None else ChartLookup(basin, charts, objective, pause),
            )
            for basin in basins
        ]

    # ---- what rounds take -------------------------------------------------------------------------------------------

    def _learn(self, plan: Plan, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int) -> None:
        """Compares a round with what the model predicts for it, now that it is known what came.

        Only rounds like others are learned from. The first one for which Spark compiles shows what that costs.
        """
        compiles, self._compiles = self._compiles, False
        again, self._again = self._again, False
        is_like_others = self._rounds >= COLD_ROUNDS and any(stream.tuples for stream in seen.streams.values())
        if self.followed and (is_like_others or compiles):
            task = partial(self._learned_from, plan, self.choices, seen, dict(seconds), state_bytes, compiles, again)
            self._worker.submit(("learn", self._rounds), task, TaskPriority.LEARNING)

    def _learned_from(
        self,
        plan: Plan,
        choices: Choices,
        seen: RoundObserved,
        seconds: Mapping[str, float],
        state_bytes: int,
        compiles: bool,
        again: bool,
    ) -> None:
        points = (point_shown(followed.figures, followed.basin, seen) for followed in self.followed)
        point, costs = tuple(chain.from_iterable(points)), self._costs
        predicted = costs.get(point, choices)
        if predicted is None:
            known = self.followed[0].basin.known.with_estimates(estimates_of(seen).before(self.estimates()))
            predicted = round_cost(with_statistics(plan, known), known.in_force())
            costs.put(predicted, point, choices)
        measured = MeasuredRound(predicted, seconds, intake_of(choices), state_bytes)
        if compiles:  # only intake runs other code: what answers take is not part of the price
            excess = measured.stage("intake") - self.correction(predicted, choices).intake
            self.prices = self.prices.after(excess, recompiles=True, again=again)
            if not again:
                return
        self.correction, self.measured = self.correction.after(measured), measured

    # ---- afterwards -------------------------------------------------------------------------------------------------

    def _judge(self, seen: RoundObserved) -> None:
        """Has the worker judge whether the plan of the round was the best one for what the round really was."""
        streams = [name for followed in self.followed for name in followed.basin.streams]
        if all(seen.streams[name].tuples for name in streams) and all(
            followed.candidates for followed in self.followed
        ):
            task = partial(self._judged, self.choices, seen, self._chosen_by)
            self._worker.submit(("judge", self._rounds), task, TaskPriority.AFTERWARDS)

    def _judged(self, choices: Choices, seen: RoundObserved, corrected: Correction) -> None:
        """Judge a round by what was known of this machine when its plan was chosen: only the data are judged."""
        is_hit, is_same, regret = True, True, 0.0
        for followed in self.followed:
            own = followed.basin.own(choices)
            best = self._best_for(followed, own, seen, corrected)
            costs = {each.choices: corrected(each.cost, each.choices) for each in best}
            mine, least, bounds = costs[own], costs[best[0].choices], BestCosts.of([*costs.values()])
            share = self.objective.utility(least, bounds) / self.objective.utility(mine, bounds)
            is_same = is_same and share >= 1 - TIE
            is_hit = is_hit and share >= 1 - CLEARLY
            regret += max(0.0, mine.seconds - least.seconds)
        past = self.verdicts
        self.verdicts = Verdicts(past.judged + 1, past.hits + is_hit, past.same + is_same, past.regret + regret)

    def _best_for(
        self, followed: FollowedBasin, own: Choices, seen: RoundObserved, corrected: Correction
    ) -> list[Candidate]:
        """Return the candidates for what a round was, its own plan among them, best first; once for like rounds."""
        basin, point = followed.basin, point_shown(followed.figures, followed.basin, seen)
        best = followed.judged.get(point, own)
        if best is None:
            estimates = estimates_of(seen).before(self.estimates())
            candidates = candidates_at(basin, estimates, self.objective, corrected, self._worker.pause)
            best = with_candidate(candidates, own, basin, estimates)
            followed.judged.put(best, point, own)
        return ranked(best, self.objective, corrected)


def _queries(plan: Plan) -> dict[str, object]:
    return {planned.name: planned.query for planned in plan.queries}
