"""The predicted cost of the Spark job of a row query, by the rows that its joins read and make."""

from __future__ import annotations

from windloom.model.rows import Reports
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.rows.order import expected_rows, order_cost
from windloom.plan.rows import PlannedRows


def row_seconds(planned: PlannedRows, constants: Constants) -> float:
    """Seconds per second of event time, with the rates that the plan carries.

    A row that a join reads, looks up or makes is assumed to cost what a partial does, which Spark hashes and sends.
    Where all rows of a window are reported, each counts once per window.
    """
    rows, touched, first = planned.rows, 0.0, 0
    for selection, order in zip(rows.selections, planned.orders, strict=True):
        rates = planned.rates[first : first + len(selection.strands)]
        first += len(selection.strands)
        touched += sum(rate.rate for rate in rates) + order_cost(selection, rates)(order)
        if rows.reports is Reports.STANDING and not rows.within:
            ends_per_second = TICKS_PER_SECOND / planned.query.window.slide_ticks
            touched += expected_rows(selection, rates, order)[0] * ends_per_second
    return touched * constants.seconds("partial")


def row_round_seconds(planned: PlannedRows, constants: Constants) -> float:
    """Seconds of one round, which is as long as those of its streams are."""
    return row_seconds(planned, constants) * max(rate.round_seconds for rate in planned.rates)
