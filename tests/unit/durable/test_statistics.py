"""Statistics and choices survive: as JSON in commits and plan records."""

from __future__ import annotations

import json

from windloom.durable.records import PlanRecord
from windloom.durable.statistics import read_observed, write_observed
from windloom.plan.choices import Choices, TreeChoice
from windloom.plan.estimates import Estimates, Mean, SetEstimate, StreamEstimate
from windloom.plan.identity import SetIdentity
from windloom.plan.observed import RoundObserved, SetRound, StreamRound
from windloom.plan.statistics import GIVEN, Ongoing

IDENTITY = SetIdentity("s", "a > 1", ("k", "upper(n)"), ("rows", "k"))
CHOICES = Choices.of(
    [TreeChoice(("q",), (("sum(x)", "two_stacks"),)), TreeChoice(("a", "b"))], {"intake": {"s": "native"}}
)


def test_what_a_round_observed_is_read_as_it_was_written() -> None:
    seen = RoundObserved({"s": StreamRound(5, 1.5, 2.5, {"a > 1": 2}, 3)}, {IDENTITY: SetRound(2, 1, 1, 4, 0.5)})
    assert read_observed(json.loads(json.dumps(write_observed(seen)))) == seen


def test_a_plan_record_holds_the_choices_and_the_estimates_it_was_made_with() -> None:
    estimates = Estimates(
        {"s": StreamEstimate(Mean(2.5, 3, 0.1), None, {"a > 1": 0.4}, 2.0)},
        {IDENTITY: SetEstimate(Mean(0.4, 3), Mean(7.0, 2), Mean(3.0, 3), 0.0, 0.25)},
    )
    record = PlanRecord(3, 7, {"q": "…"}, {"a": "b"}, CHOICES, estimates=estimates, ongoing=Ongoing(5.0, GIVEN, 60.0))
    assert PlanRecord.from_bytes("plan", record.to_bytes()) == record
