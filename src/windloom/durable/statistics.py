"""Statistics as JSON: what a round observed (in its commit), the estimates a plan was made with (in its record)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

from windloom.plan.estimates import Estimates, Mean, SetEstimate, StreamEstimate
from windloom.plan.identity import SetIdentity
from windloom.plan.links import KeyHistogram, LinkEstimate, LinkRound
from windloom.plan.observed import RoundObserved, SetRound, StreamRound
from windloom.plan.statistics import Ongoing, Origin

Json = dict[str, Any]


def write_observed(seen: RoundObserved) -> Json:
    return {
        "streams": {name: asdict(one) for name, one in seen.streams.items()},
        "sets": [[_named(identity), list(astuple(one))] for identity, one in seen.sets.items()],
        "joins": {name: [write_link(one) for one in links] for name, links in seen.joins.items()},
    }


def read_observed(about: Mapping[str, Any]) -> RoundObserved:
    return RoundObserved(
        {name: StreamRound(**one) for name, one in about["streams"].items()},
        {_identity(named): SetRound(*figures) for named, figures in about["sets"]},
        {name: tuple(read_link(one) for one in links) for name, links in about["joins"].items()},
    )


def write_link(one: LinkRound) -> list[Any]:
    return [[list(side.counted), side.other_groups, side.other_keys] for side in (one.parent, one.child)] + [
        one.pairs,
        one.matched,
    ]


def read_link(about: list[Any]) -> LinkRound:
    parent, child, pairs, matched = about
    return LinkRound(_histogram(*parent), _histogram(*child), pairs, matched)


def _histogram(counted: list[list[int]], groups: int, keys: int) -> KeyHistogram:
    return KeyHistogram(tuple((key, count) for key, count in counted), groups, keys)


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
    joins = {name: [list(astuple(one)) for one in links] for name, links in estimates.joins.items()}
    return {"streams": streams, "sets": sets, "joins": joins}


def read_estimates(about: Mapping[str, Any]) -> Estimates:
    streams = {
        name: StreamEstimate(
            Mean(*one["rate"]),
            None if one["round"] is None else Mean(*one["round"]),
            one["conditions"],
            one["signatures"],
        )
        for name, one in about["streams"].items()
    }
    sets = {
        _identity(named): SetEstimate(
            Mean(*one["selectivity"]),
            Mean(*one["groups"]),
            Mean(*one["cells"]),
            one["regularity"],
            one["spread"],
        )
        for named, one in about["sets"]
    }
    joins = {name: tuple(LinkEstimate(*one) for one in links) for name, links in about["joins"].items()}
    return Estimates(streams, sets, joins)


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
