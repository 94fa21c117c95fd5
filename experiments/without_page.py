"""Figures, tables and examples of the sources that no experiment draws: what shows them, or why nothing does."""

from __future__ import annotations

from experiments.pages import NOT_RUN, REPRODUCED, Verdict

#: With the command or test that shows it.
Shown = tuple[Verdict, str]

_SHARING = "tests/unit/optimizer/test_sharing.py"
_ORDERS = "tests/unit/optimizer/test_join_order.py"
_KERNELS = "python -m bench.kernels"


def _tested(figure: str, paper: str, ours: str, test: str) -> Shown:
    """A test fails if it does not come out."""
    return Verdict(figure, paper, ours, REPRODUCED), f"`{test}`"


def _not_run(figure: str, paper: str, why: str, command: str = "") -> Shown:
    return Verdict(figure, paper, "–", NOT_RUN, why), f"`{command}`" if command else "–"


WITHOUT_PAGE: tuple[Shown, ...] = (
    _not_run("A table 1", "parameters of the workload", "they are the settings of figures 4 to 10"),
    _tested(
        "A example 3", "No Share 11.6, {a,c},{b} 4.3, one tree 4.4", "5.5 (11.6 is a misprint), 4.3, 4.4", _SHARING
    ),
    _not_run("A fig. 1–3", "paired windows, the algorithm, its rounds on example 3", "drawings"),
    _not_run("A fig. 12–13", "captions and text are not in our copy", "nothing to compare with"),
    _not_run(
        "B table 1–2", "other techniques; queries Q1 and Q2", "no measurement; Q1 and Q2 are those of figures 3, 4"
    ),
    _not_run("B fig. 1–2", "a model of a system; parameters of costs", "drawings"),
    _tested(
        "B example 4.1",
        "weights 0.1, 0.9: p1 697.52, p2 517.54",
        "the same",
        "tests/unit/optimizer/adapt/test_objective.py",
    ),
    _not_run("C table 2", "operations and space of each technique", "no page yet", f"{_KERNELS} operations"),
    _tested("C table 3", "Ω of each technique", "the same", "tests/unit/optimizer/test_papers.py"),
    _not_run("C table 4", "parameters of the workload", "they are the settings of figures 17 to 21"),
    _not_run("C fig. 1–10, 15", "taxonomy, slicings, structures, sharing", "drawings"),
    _not_run(
        "C fig. 11",
        "one query, max: SlickDeque up to 19 % faster than the next",
        "no page yet: times need an idle machine",
        f"{_KERNELS} speed",
    ),
    _not_run(
        "C fig. 12",
        "many queries, max: SlickDeque up to 345 % faster",
        "no page yet: times need an idle machine",
        f"{_KERNELS} speed",
    ),
    _not_run(
        "C fig. 13",
        "memory: SlickDeque up to five times less",
        "no page: our deque is allocated at the length of the window",
        f"{_KERNELS} speed",
    ),
    _not_run("C fig. 14", "latency: SlickDeque's spikes 283 % lower", "no page yet", f"{_KERNELS} speed"),
    _not_run("C fig. 16", "F1 up to 60,000 times faster than the bit set", "no page yet", "python -m bench plan_naive"),
    _not_run(
        "D example 1", "bids of auctions by sellers from Vermont", "three-way join with a relation: no test of its own"
    ),
    _not_run("D fig. 1–4", "windows, an AS join, transformations, the algorithm", "drawings"),
    _not_run(
        "E table 2.1, 4.1, 5.1, 5.2, 8.1", "languages, earlier work, symbols, probing orders, names", "no measurement"
    ),
    _tested("E table 5.3", "order 1234 costs 16,000, the worst 86,850", "the same", _ORDERS),
    _tested("E table 5.4", "sizes of intermediate results", "the same", _ORDERS),
    _tested(
        "E table 5.5",
        "2134 16,200, 2341 42,600, 1234 21,000, worst 135,150",
        "the same with λ1 = 10 (100 is a misprint)",
        _ORDERS,
    ),
    _tested("E table 5.6", "3142 47,977, mean of all orders 63,362", "the same", _ORDERS),
    _tested(
        "E example 8.4",
        "conservative 11.63, G2 → 2 min 11.4 per minute",
        "11.93 (11.63 is a misprint), 11.4",
        "tests/unit/rounds/test_schedules.py",
    ),
    _not_run("E fig. 1.1–3.7", "architecture, operators, synopses, update patterns, plans", "drawings"),
    _not_run("E fig. 4.1–4.3", "doubly partitioned indices", "drawings"),
    _not_run("E fig. 5.1, 6.1, 6.2", "join trees, synopses, a run of Algorithm 6", "drawings"),
    _not_run("E fig. 7.1–7.7, 7.15", "histories, graphs, architecture, classes of schedules", "drawings"),
    _not_run("E fig. 8.1–8.6", "schedules, synopses, re-execution", "drawings"),
)
