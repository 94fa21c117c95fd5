"""Between two rounds: estimates, looks up, and returns the choices with which the next round is to run.

For a round that is about to begin, a source may announce what it brings. Then the candidates of its region are weighed
for exactly that, if another one is nearly as good as the best, and if weighing takes no longer than a round may wait.

All calls except tasks of the worker come from the thread of the rounds. What a task finds is put in place by one
assignment, so that a round sees all of it or nothing. Looking up takes no planning: where a chart has no plan yet for
the region that the stream is in, the worker is asked for it, and the plan in force stays until it is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from time import perf_counter

from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.candidates import Candidate, candidates_at, ranked
from windloom.optimizer.adapt.chart import Chart, ChartOptions, Region
from windloom.optimizer.adapt.correction import Correction, MeasuredRound, intake_of
from windloom.optimizer.adapt.figures import Figure, remembered, shown, stream_figures, value_of, with_figures
from windloom.optimizer.adapt.followed import Adapted, Followed, Preview, likeness
from windloom.optimizer.adapt.forecast import Forecast
from windloom.optimizer.adapt.objective import Least, Objective
from windloom.optimizer.adapt.rivals import has_rival, saved_by
from windloom.optimizer.adapt.round_cost import RoundCost, round_cost
from windloom.optimizer.adapt.sensitivity import draw_chart
from windloom.optimizer.adapt.switches import choices_of, compiled_for, recompiling
from windloom.optimizer.adapt.switching import CLEARLY, TIE, Prices, Stays, pays
from windloom.optimizer.adapt.work import Urgency, Worker
from windloom.optimizer.known import with_statistics
from windloom.plan.choices import Choices
from windloom.plan.estimates import Estimates
from windloom.plan.memory import Memory, estimates_of
from windloom.plan.observed import RoundObserved
from windloom.plan.physical import Plan

#: Rounds that are not learned from: Spark and the kernels are still warming up.
COLD_ROUNDS = 2
#: The number of rounds whose way through a chart is remembered.
PATH = 100
#: Between two rounds, the adapter may wait for what the next one needs: for this share of the time of rounds, saved up
#: to at most this many seconds.
PATIENCE, MOST_PATIENCE = 0.01, 0.25
#: A closer look at what a round brings may take this share of what the last round took.
LOOK = 0.03


class Adapter:
    def __init__(
        self,
        memory: Memory,
        learned: Estimates,
        options: ChartOptions,
        objective: Objective,
        worker: Worker,
        adapted: Adapted | None = None,
        measured: Sequence[MeasuredRound] = (),
    ) -> None:
        """`adapted` and `measured` (newest first) come from the rounds before this start."""
        self.memory, self.objective, self.options = memory, objective, options
        self._learned, self._worker = learned, worker
        adapted = adapted or Adapted()
        self.moves, self.switches, self.verdicts = adapted.moves, adapted.switches, adapted.verdicts
        self.undecided, self.previews = adapted.undecided, adapted.previews
        self.correction, self.prices, self.stays = Correction(measured), Prices(), Stays()
        self._chosen_by = self.correction  # as it was when the plan in force was last chosen
        self.measured: MeasuredRound | None = None  # the last round that was learned from
        self.predicted: float | None = None  # the seconds that the next round, or the present one, is expected to take
        self.followed: list[Followed] = []
        self.forecast: Forecast | None = None
        self._version, self._choices = -1, Choices()
        self._plan: Plan | None = None
        self._rounds = 0  # of this process
        self._patience = 0.0  # seconds that may be waited for a plan
        self._usual = 0.0  # seconds that the last round took
        self.seen: deque[RoundObserved] = deque(maxlen=PATH)  # what rounds showed, oldest first
        self._compiles = False  # the present round is the first one after a switch for which Spark compiles
        self._changed = False  # another plan has become best after the present round
        self._again = False  # Spark has compiled for that switch before
        self._compiled: set[tuple[str, str, str]] = set()  # options of plans that have run since queries changed
        self._coming: RoundObserved | None = None  # what is known of the round that is about to begin, or runs
        self._previewed: tuple[RoundObserved, RoundObserved | None] | None = None  # what a closer look has shown
        self._bests: dict[object, tuple[Candidate, ...]] = {}
        self._remembered: dict[tuple[str, Figure], float | None] = {}  # figures, since the last round

    # ---- rounds -----------------------------------------------------------------------------------------------------

    def begin(self, version: int, plan: Plan, basins: Callable[[], list[Basin]]) -> None:
        """A round begins with a plan; `basins` is called if the queries are not the same as before."""
        if version == self._version:
            return
        before, known = self._choices, self._plan
        self._version, self._plan, self._choices = version, plan, choices_of(plan)
        if known is None or _asked(known) != _asked(plan):
            self.followed = self._taken_over(basins())
            self.forecast, self._compiles = None, False
            self._bests.clear()
            self._compiled.clear()
        elif before != self._choices:
            self.switches += 1
            self._compiles = recompiling(before, self._choices)
            self._again = compiled_for(self._choices) <= self._compiled
        self._compiled |= compiled_for(self._choices)

    def done(
        self, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int, *, is_whole: bool = True
    ) -> Choices | None:
        """A round is over, and in the memory; returns the choices of the next one, if they are not the same.

        A round that leaves answers to later ones, or gives those of earlier ones, is not learned from.
        """
        assert self._plan is not None
        self._remembered = {}
        self.seen.append(seen)
        if is_whole:
            self._learn(self._plan, seen, seconds, state_bytes)
        self._usual = sum(seconds.values())
        self._worker.passed(self._usual)
        self._patience = min(MOST_PATIENCE, self._patience + PATIENCE * self._usual)
        self._judge(seen)
        self._rounds += 1
        foreseen, self._coming = self._coming is not None, None
        # What will be foreseen of the next round is worth more than what is expected of it now.
        wanted = None if foreseen and all(followed.chart for followed in self.followed) else self._chosen()
        self.predicted = self._expect()
        return wanted

    def foresee(self, coming: RoundObserved, preview: Preview | None = None) -> Choices | None:
        """The next round is about to begin, and `coming` is known of it; returns its choices, if they are not the same.

        Whatever is not known is taken from the memory. A source that announces one round also announces the next one:
        after a round that was foreseen, nothing is chosen until the next one is foreseen. `preview` is called for more
        about the round if that may make a difference.
        """
        if not self.followed:
            return None
        self._coming = coming
        for followed in self.followed:
            followed.guess = None
        if preview is not None and any(map(self._is_undecided, self.followed)):
            self.undecided += 1
            self._look_closer(coming, preview)
        wanted = self._chosen()
        if wanted is None and self.forecast is not None and self.forecast.plan is self._plan:
            self.predicted = self.correction(self.forecast.at(self._point(self._expected)), self._choices).seconds
        return wanted

    def _chosen(self) -> Choices | None:
        """The choices of the next round, if they are not those in force."""
        wanted, moved, self._changed, self._chosen_by = Choices(), False, False, self.correction
        for followed in self.followed:
            choices, has_moved = self._look_up(followed)
            wanted, moved = wanted | choices, moved or has_moved
        self.stays = self.stays.after(moved=self._changed)
        self.moves += moved
        return None if wanted == self._choices else wanted

    @property
    def choices(self) -> Choices:
        """The choices of the plan in force."""
        return self._choices

    @property
    def failure(self) -> BaseException | None:
        """The error because of which charts are no longer filled; the plan in force then stays."""
        return self._worker.failure

    @property
    def adapted(self) -> Adapted:
        return Adapted(self.moves, self.switches, self.verdicts, self.undecided, self.previews)

    def switched(self, seconds: float) -> None:
        """Notes that a switch was recorded; `seconds` is how long its plan took to make."""
        self.prices = self.prices.after(seconds, recompiles=False)

    def close(self) -> None:
        self._worker.close()

    # ---- looking closer ---------------------------------------------------------------------------------------------

    def _is_undecided(self, followed: Followed) -> bool:
        """Whether a plan other than the one that is expected to be best may be best."""
        if (chart := followed.chart) is None:
            return False
        values = self.values(followed, chart)
        region = chart.region(values)
        if region not in chart.regions:
            return True
        best = chart.best(region, self.correction, values)
        followed.guess = best[0].choices
        return has_rival(best, self.objective, self.correction)

    def _look_closer(self, coming: RoundObserved, preview: Preview) -> None:
        self._if_affordable(("preview",), partial(self._look, coming, preview))
        if (shown := self._previewed) is not None and shown[0] is coming and shown[1] is not None:
            self._coming = shown[1]
            self.previews += 1

    def _look(self, coming: RoundObserved, preview: Preview) -> None:
        self._previewed = coming, preview()

    def _weighed(self, followed: Followed, chart: Chart, region: Region) -> list[Candidate] | None:
        """The candidates, best first, for all that is known of the next round; None if there is no time for it."""
        coming = self._coming
        assert coming is not None
        task = partial(self._weigh, followed, chart, region, coming)
        self._if_affordable(("weigh", followed.basin.name), task, chart.weighing_seconds(region))
        found = followed.weighed
        if found is None or found[0] is not coming:
            return None
        return ranked(found[1], self.objective, self.correction)

    def _earn(self, guess: Choices, best: Sequence[Candidate]) -> None:
        """Time that closer looks save may be spent on more of them, so they continue where they are worth it.

        Without them, the plan that was guessed to be best would have been chosen.
        """
        saved = saved_by(guess, best, self.objective, self.correction)
        self._patience = min(MOST_PATIENCE, self._patience + saved)
        self._worker.earned(saved)

    def _weigh(self, followed: Followed, chart: Chart, region: Region, coming: RoundObserved) -> None:
        estimates = with_figures(self._estimates(), followed.basin, self._foreseen(followed.basin))
        estimates = estimates_of(coming).before(estimates)
        followed.weighed = coming, chart.weigh(region, estimates, self._worker.pause)

    def _if_affordable(self, key: Hashable, task: Callable[[], None], seconds: float = 0.0) -> None:
        """Has a task done before the next round, or not at all if that takes longer than the round may wait.

        It is taken to last as long as the last one of its kind, or else these `seconds`. A task that is about one round
        only must be short compared with that round: saving up for it would mean to do it only now and then, which helps
        nobody.
        """
        if self._worker.affords(key, min(self._patience, LOOK * self._usual), seconds):
            self._need(key, task)

    # ---- looking up -------------------------------------------------------------------------------------------------

    def _look_up(self, followed: Followed) -> tuple[Choices, bool]:
        """The choices for a basin, and whether it has moved."""
        present = followed.basin.own(self._choices)
        chart = self._chart(followed)
        if chart is None:
            return present, False
        values = self.values(followed, chart)
        region = chart.region(values)
        moved = followed.region is not None and region != followed.region
        before, followed.region, followed.values = followed.values, region, values
        if not self._has(chart, region, present):
            self._need(("fill", followed.basin.name, region), partial(self._fill, chart, region, present))
            if not self._has(chart, region, present):
                return present, moved
        self._look_ahead(followed, chart, before, values)
        return self._preferred(followed, chart, values, present), moved

    def _chart(self, followed: Followed) -> Chart | None:
        """The chart of a basin, if it has one that holds: while the figures that are not its dimensions stay."""
        if followed.chart is not None and followed.chart.is_stale(partial(self._expected, basin=followed.basin)):
            # The basin is nowhere in a chart: to be somewhere again is a move.
            followed.chart, followed.region, followed.values = None, (), None
        if followed.chart is None:
            self._need(("draw", followed.basin.name), partial(self._draw, followed))
        return followed.chart

    def _need(self, key: Hashable, task: Callable[[], None]) -> None:
        """Has a task done before the next round, if it does not take long, or else beside it.

        A round with a plan for other data may take several times as long as with the plan that is looked for.
        """
        self._worker.submit(key, task, Urgency.NEEDED)
        begun = perf_counter()
        self._worker.wait(key, self._patience)
        self._patience = max(0.0, self._patience - (perf_counter() - begun))

    def _look_ahead(self, followed: Followed, chart: Chart, before: Sequence[float] | None, now: list[float]) -> None:
        """Has the worker fill the regions that the stream may come to next."""
        if before is None or len(before) != len(now):
            return
        for near in chart.ahead(before, now):
            if near not in chart.regions:
                task = partial(self._fill_ahead, chart, near)
                self._worker.submit(("fill", followed.basin.name, near), task, Urgency.AHEAD)

    def values(self, followed: Followed, chart: Chart) -> list[float]:
        """The point at which the next round is expected: along the dimensions of a chart, and beside them."""
        found = []
        for figure in [*chart.figures, *(dimension.figure for dimension in chart.beside)]:
            value = self._expected(figure, followed.basin)
            found.append(value_of(figure, followed.basin, chart.base) if value is None else value)
        return found

    @staticmethod
    def _has(chart: Chart, region: Region, present: Choices) -> bool:
        return any(candidate.choices == present for candidate in chart.regions.get(region, ()))

    def _preferred(self, followed: Followed, chart: Chart, values: Sequence[float], present: Choices) -> Choices:
        """The plan that is best at a point, or the present one while a switch does not pay."""
        region = chart.region(values)
        best, is_weighed = chart.best(region, self.correction, values), False
        if self._coming is not None and has_rival(best, self.objective, self.correction):
            weighed = self._weighed(followed, chart, region)
            if weighed is not None:
                self._earn(followed.guess or best[0].choices, weighed)
                best, is_weighed = weighed, True
        self._changed = self._changed or followed.best not in (None, best[0].choices)
        followed.best = best[0].choices
        if best[0].choices == present:
            return present
        costs = {candidate.choices: self.correction(candidate.cost, candidate.choices) for candidate in best}
        is_worth = pays(
            costs[present],
            costs[best[0].choices],
            self.objective,
            self.stays.expected,
            self.prices,
            recompiles=recompiling(present, best[0].choices),
            again=compiled_for(best[0].choices) <= self._compiled,
            least=Least.of([*costs.values()]),
            weighed=is_weighed,
        )
        return best[0].choices if is_worth else present

    # ---- tasks of the worker ----------------------------------------------------------------------------------------

    def _draw(self, followed: Followed) -> None:
        """Draws a chart and fills the region where the stream is: asking for that later would cost another round."""
        estimates = with_figures(self._estimates(), followed.basin, self._foreseen(followed.basin))
        chart = draw_chart(followed.basin, estimates, self.objective, self.options, self._worker.pause)
        self._worker.pause()
        self._fill(chart, chart.region(self.values(followed, chart)), followed.basin.own(self._choices))
        followed.chart = chart

    def _fill(self, chart: Chart, region: Region, present: Choices) -> None:
        chart.fill(region, self.correction, self._worker.pause)
        self._worker.pause()
        chart.add(region, present, self._worker.pause)

    def _fill_ahead(self, chart: Chart, region: Region) -> None:
        chart.fill(region, self.correction, self._worker.pause)

    def _estimates(self) -> Estimates:
        return self.memory.estimates().before(self._learned)

    # ---- what rounds take -------------------------------------------------------------------------------------------

    def _point(self, value: Callable[[Figure, Basin], float | None]) -> dict[Figure, float]:
        """The figures that forecasts depend on: those of charts, and those of every stream as a whole."""
        found: dict[Figure, float] = {}
        for followed in self.followed:
            figures = [] if followed.chart is None else followed.chart.figures
            for figure in dict.fromkeys([*figures, *stream_figures(followed.basin)]):
                number = value(figure, followed.basin)
                if number is not None:
                    found[figure] = number
        return found

    def _foreseen(self, basin: Basin) -> dict[Figure, float]:
        """The figures of streams that are known of the next round: a chart without them would not hold in it."""
        coming = self._coming
        told = () if coming is None else ((figure, shown(figure, basin, coming)) for figure in stream_figures(basin))
        return {figure: value for figure, value in told if value is not None}

    def _expected(self, figure: Figure, basin: Basin) -> float | None:
        """The value of a figure as it is known of the next round, or else as it is remembered of earlier ones."""
        foreseen = None if self._coming is None else shown(figure, basin, self._coming)
        if foreseen is not None:
            return foreseen
        # Values are asked for several times between two rounds. A task that began before the last round ended writes
        # into the values of that time.
        known, key = self._remembered, (basin.name, figure)
        if key not in known:
            known[key] = remembered(figure, basin, self.memory)
        return known[key]

    def _expect(self) -> float | None:
        """The seconds that the next round is expected to take, with the plan in force."""
        assert self._plan is not None
        point = self._point(self._expected)
        if self.forecast is None or not self.forecast.holds(self._plan, point, self._rounds):
            task = partial(self._make_forecast, self._plan, self._rounds)
            self._worker.submit("forecast", task, Urgency.NEEDED)
        if self.forecast is None or self.forecast.plan is not self._plan:
            return None
        return self.correction(self.forecast.at(point), self._choices).seconds

    def _make_forecast(self, plan: Plan, rounds: int) -> None:
        estimates = self._estimates()
        exponents: dict[str, dict[Figure, float]] = {}
        for followed in self.followed:
            for stage, powers in () if followed.chart is None else followed.chart.exponents.items():
                exponents.setdefault(stage, {}).update(powers)
            self._renew(followed, estimates)
        point = self._point(self._expected)
        self.forecast = Forecast(plan, self._cost(plan, estimates), point, exponents, rounds)

    def _renew(self, followed: Followed, estimates: Estimates) -> None:
        if followed.chart is not None:
            task = partial(self._rebase, followed, followed.chart, estimates)
            self._worker.submit(("drift", followed.basin.name), task, Urgency.AFTERWARDS)

    def _rebase(self, followed: Followed, chart: Chart, estimates: Estimates) -> None:
        region = followed.region
        if followed.chart is chart and region and chart.has_drifted(region, estimates, self._worker.pause):
            rebased = chart.rebased(estimates)
            self._fill(rebased, region, followed.basin.own(self._choices))
            if followed.chart is chart:  # a round may have leapt meanwhile
                followed.chart = rebased

    def _learn(self, plan: Plan, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int) -> None:
        """Compares a round with what the model predicts for it, now that it is known what came.

        Only rounds like others are learned from. The first one for which Spark compiles shows what that costs.
        """
        compiles, self._compiles = self._compiles, False
        again, self._again = self._again, False
        is_like_others = self._rounds >= COLD_ROUNDS and any(stream.tuples for stream in seen.streams.values())
        if self.forecast is None or not (is_like_others or compiles):
            return
        task = partial(self._learned_from, plan, self._choices, seen, dict(seconds), state_bytes, compiles, again)
        self._worker.submit(("learn", self._rounds), task, Urgency.LEARNING)

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
        predicted = self._model_of(plan, seen)
        measured = MeasuredRound(predicted, seconds, intake_of(choices), state_bytes)
        if compiles:  # only intake runs other code: what answers take is not part of the price
            excess = measured.stage("intake") - self.correction(predicted, choices).intake
            self.prices = self.prices.after(excess, recompiles=True, again=again)
            if not again:
                return
        self.correction, self.measured = self.correction.after(measured), measured

    def _model_of(self, plan: Plan, seen: RoundObserved) -> RoundCost:
        """What the model predicts for a round: taken from the forecast if that is near, otherwise predicted anew."""
        forecast, point = self.forecast, self._point(lambda figure, basin: shown(figure, basin, seen))
        if forecast is not None and forecast.plan is plan and forecast.is_near(point):
            return forecast.at(point)
        return self._cost(plan, estimates_of(seen).before(self._estimates()))

    def _cost(self, plan: Plan, estimates: Estimates) -> RoundCost:
        known = self.followed[0].basin.known
        return round_cost(with_statistics(plan, known.with_estimates(estimates)), known.in_force())

    # ---- afterwards -------------------------------------------------------------------------------------------------

    def _judge(self, seen: RoundObserved) -> None:
        """Has the worker judge whether the plan of the round was the best one for what the round really was."""
        streams = [name for followed in self.followed for name in followed.basin.streams]
        if not all(seen.streams[name].tuples for name in streams) or any(
            followed.chart is None for followed in self.followed
        ):
            return
        task = partial(self._judged, self._choices, seen, self._chosen_by)
        self._worker.submit(("judge", self._rounds), task, Urgency.AFTERWARDS)

    def _judged(self, choices: Choices, seen: RoundObserved, corrected: Correction) -> None:
        """Uses what was known of this machine when the plan was chosen: only the prediction of data is judged."""
        is_hit, is_same, regret = True, True, 0.0
        for followed in self.followed:
            if followed.chart is None:
                return
            own = followed.basin.own(choices)
            best = self._best_for(followed.chart, own, seen, corrected)
            costs = {each.choices: corrected(each.cost, each.choices) for each in best}
            mine, least, bounds = costs[own], costs[best[0].choices], Least.of([*costs.values()])
            share = self.objective.utility(least, bounds) / self.objective.utility(mine, bounds)
            is_same = is_same and share >= 1 - TIE
            is_hit = is_hit and share >= 1 - CLEARLY
            regret += max(0.0, mine.seconds - least.seconds)
        self.verdicts = self.verdicts.after(is_hit=is_hit, is_same=is_same, regret=regret)

    def _best_for(self, chart: Chart, own: Choices, seen: RoundObserved, corrected: Correction) -> list[Candidate]:
        """The candidates for what a round was, its own plan among them, best first; found once for all rounds alike."""
        basin, key = chart.basin, (id(chart), own, likeness(chart, seen))
        if key not in self._bests:
            estimates = estimates_of(seen).before(self._estimates())
            found = candidates_at(basin, estimates, self.objective, corrected, self._worker.pause)
            if all(candidate.choices != own for candidate in found):
                found = (*found, Candidate(own, basin.cost(basin.plan(estimates, own))))
            self._bests[key] = found
        return ranked(self._bests[key], self.objective, corrected)

    def _taken_over(self, basins: list[Basin]) -> list[Followed]:
        """Charts of basins whose queries are the same as before are kept."""
        known = {(tuple(followed.basin.streams), followed.basin.queries): followed for followed in self.followed}
        return [known.get((tuple(basin.streams), basin.queries)) or Followed(basin) for basin in basins]


def _asked(plan: Plan) -> dict[str, object]:
    return {planned.name: planned.query for planned in plan.queries}
