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
        "streams": {name: asdict(stream_round) for name, stream_round in seen.streams.items()},
        "sets": [[_named(identity), list(astuple(set_round))] for identity, set_round in seen.sets.items()],
        "joins": {name: [write_link(link_round) for link_round in links] for name, links in seen.joins.items()},
    }


def read_observed(about: Mapping[str, Any]) -> RoundObserved:
    return RoundObserved(
        {name: StreamRound(**stream) for name, stream in about["streams"].items()},
        {_identity(named): SetRound(*figures) for named, figures in about["sets"]},
        {name: tuple(read_link(link) for link in links) for name, links in about["joins"].items()},
    )


def write_link(link_round: LinkRound) -> list[Any]:
    return [
        [list(side.counted), side.other_groups, side.other_keys] for side in (link_round.parent, link_round.child)
    ] + [
        link_round.pairs,
        link_round.matched,
    ]


def read_link(about: list[Any]) -> LinkRound:
    parent, child, pairs, matched = about
    return LinkRound(_histogram(*parent), _histogram(*child), pairs, matched)


def _histogram(counted: list[list[int]], groups: int, keys: int) -> KeyHistogram:
    return KeyHistogram(tuple((key, count) for key, count in counted), groups, keys)


def write_estimates(estimates: Estimates) -> Json:
    streams = {
        name: {
            "rate": _figure(stream_estimate.rate),
            "round": None if stream_estimate.round is None else _figure(stream_estimate.round),
            "conditions": dict(stream_estimate.conditions),
            "signatures": stream_estimate.signatures,
        }
        for name, stream_estimate in estimates.streams.items()
    }
    sets = [
        [
            _named(identity),
            {
                "selectivity": _figure(set_estimate.selectivity),
                "groups": _figure(set_estimate.groups),
                "cells": _figure(set_estimate.cells),
                "regularity": set_estimate.regularity,
                "spread": set_estimate.spread,
            },
        ]
        for identity, set_estimate in estimates.sets.items()
    ]
    joins = {name: [list(astuple(link_estimate)) for link_estimate in links] for name, links in estimates.joins.items()}
    return {"streams": streams, "sets": sets, "joins": joins}


def read_estimates(about: Mapping[str, Any]) -> Estimates:
    streams = {
        name: StreamEstimate(
            Mean(*stream["rate"]),
            None if stream["round"] is None else Mean(*stream["round"]),
            stream["conditions"],
            stream["signatures"],
        )
        for name, stream in about["streams"].items()
    }
    sets = {
        _identity(named): SetEstimate(
            Mean(*of_set["selectivity"]),
            Mean(*of_set["groups"]),
            Mean(*of_set["cells"]),
            of_set["regularity"],
            of_set["spread"],
        )
        for named, of_set in about["sets"]
    }
    joins = {name: tuple(LinkEstimate(*link) for link in links) for name, links in about["joins"].items()}
    return Estimates(streams, sets, joins)


def write_ongoing(ongoing: Ongoing) -> list[Any]:
    return [ongoing.round_seconds, ongoing.origin.source, ongoing.history_seconds]


def read_ongoing(about: list[Any]) -> Ongoing:
    seconds, source, history = about
    return Ongoing(seconds, Origin(source), history)


def _figure(mean: Mean) -> list[float]:
    return [mean.value, mean.rounds, mean.trend]


def _named(identity: SetIdentity) -> list[Any]:
    return [identity.stream, identity.predicate, list(identity.grouping), list(identity.windows)]


def _identity(named: list[Any]) -> SetIdentity:
    stream, predicate, grouping, windows = named
    return SetIdentity(stream, predicate, tuple(grouping), tuple(windows))
