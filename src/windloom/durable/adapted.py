"""What adapting has counted and learned, as JSON in the commit of a round: the next start continues with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from windloom.optimizer.adapt.replan import AdaptCounts, Verdicts
from windloom.optimizer.adapt.round_cost import MeasuredRound, RoundCost


def write_adapted(counts: AdaptCounts, measured: MeasuredRound | None) -> dict[str, Any]:
    """The JSON; `measured` is the last round that was learned from, which may be an earlier one."""
    verdicts = counts.verdicts
    learned = None
    if measured is not None:
        learned = {
            "model": asdict(measured.predicted),
            "seconds": dict(measured.seconds),
            "intake": dict(measured.intake),
            "state_bytes": measured.state_bytes,
        }
    return {
        "moves": counts.moves,
        "switches": counts.switches,
        "undecided": 0,  # this and previews were counted by earlier versions, which read them
        "previews": 0,
        "verdicts": [verdicts.judged, verdicts.hits, verdicts.same, verdicts.regret],
        "measured": learned,
    }


def read_adapted(commits: Sequence[Mapping[str, Any]]) -> tuple[AdaptCounts, list[MeasuredRound]]:
    """What was counted, and what rounds took, newest first; `commits` are the commits of rounds, oldest first."""
    counted, measured = AdaptCounts(), list[MeasuredRound]()
    for commit in commits:
        about = commit.get("adapted")
        if about is None:
            continue
        verdicts = Verdicts(*about["verdicts"])
        counted = AdaptCounts(about["moves"], about["switches"], verdicts)
        learned = about["measured"]
        if learned is not None:
            intake = tuple(sorted(learned["intake"].items()))
            model = RoundCost(**learned["model"])
            measured.append(MeasuredRound(model, learned["seconds"], intake, learned["state_bytes"]))
    return counted, measured[::-1]
