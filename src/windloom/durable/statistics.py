"""Statistics as JSON: what a round observed (in its commit), the estimates a plan was made with (in its record)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

from windloom.plan.estimates import Estimates, Mean, SetEstimate, StreamEstimate
from windloom.plan.identity import SetIdentity
from windloom.plan.observed import RoundObserved, SetRound, StreamRound
from windloom.plan.statistics import Ongoing, Origin

Json = dict[str, Any]


def write_observed(seen: RoundObserved) -> Json:
    return {
        "streams": {name: asdict(one) for name, one in seen.streams.items()},
        "sets": [[_named(identity), list(astuple(one))] for identity, one in seen.sets.items()],
    }


def read_observed(about: Mapping[str, Any]) -> RoundObserved:
    return RoundObserved(
        {name: StreamRound(**one) for name, one in about["streams"].items()},
        {_identity(named): SetRound(*figures) for named, figures in about["sets"]},
    )


def write_estimates(estimates: Estimates) -> Json:
    streams = {
        name: {
            "rate": _figure(one.rate),
            "round": None if one.round is None else _figure(one.round),
            "conditions": dict(one.conditions),
            "signatures": one.signatures,
        }
        for name, one in estimates.streams.items()
    }
    sets = [
        [
            _named(identity),
            {
                "selectivity": _figure(one.selectivity),
                "groups": _figure(one.groups),
                "cells": _figure(one.cells),
                "regularity": one.regularity,
                "spread": one.spread,
            },
        ]
        for identity, one in estimates.sets.items()
    ]
    return {"streams": streams, "sets": sets}


def read_estimates(about: Mapping[str, Any]) -> Estimates:
    streams = {
        name: StreamEstimate(
            Mean(*one["rate"]),
            None if one["round"] is None else Mean(*one["round"]),
            one["conditions"],
            one["signatures"],
        )
        for name, one in about.get("streams", {}).items()
    }
    sets = {
        _identity(named): SetEstimate(
            Mean(*one["selectivity"]),
            Mean(*one["groups"]),
            Mean(*one["cells"]),
            one["regularity"],
            one["spread"],
        )
        for named, one in about.get("sets", [])
    }
    return Estimates(streams, sets)


def write_ongoing(ongoing: Ongoing) -> list[Any]:
    return [ongoing.round_seconds, ongoing.origin.source, ongoing.history_seconds]


def read_ongoing(about: list[Any]) -> Ongoing:
    seconds, source, history = about
    return Ongoing(seconds, Origin(source), history)


def _figure(one: Mean) -> list[float]:
    return [one.value, one.rounds, one.trend]


def _named(identity: SetIdentity) -> list[Any]:
    return [identity.stream, identity.predicate, list(identity.grouping), list(identity.windows)]


def _identity(named: list[Any]) -> SetIdentity:
    stream, predicate, grouping, windows = named
    return SetIdentity(stream, predicate, tuple(grouping), tuple(windows))
