"""What adapting has counted and learned, as JSON in the commit of a round: the next start continues with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from windloom.optimizer.adapt.correction import MeasuredRound
from windloom.optimizer.adapt.followed import Adapted, Verdicts
from windloom.optimizer.adapt.round_cost import RoundCost


def write_adapted(adapted: Adapted, measured: MeasuredRound | None) -> dict[str, Any]:
    """The JSON; `measured` is the last round that was learned from, which may be an earlier one."""
    verdicts = adapted.verdicts
    learned = None
    if measured is not None:
        learned = {
            "model": asdict(measured.predicted),
            "seconds": dict(measured.seconds),
            "intake": dict(measured.intake),
            "state_bytes": measured.state_bytes,
        }
    return {
        "moves": adapted.moves,
        "switches": adapted.switches,
        "undecided": adapted.undecided,
        "previews": adapted.previews,
        "verdicts": [verdicts.judged, verdicts.hits, verdicts.same, verdicts.regret],
        "measured": learned,
    }


def read_adapted(commits: Sequence[Mapping[str, Any]]) -> tuple[Adapted, list[MeasuredRound]]:
    """What was counted, and what rounds took, newest first; `commits` are the commits of rounds, oldest first."""
    counted, measured = Adapted(), list[MeasuredRound]()
    for commit in commits:
        about = commit.get("adapted")
        if about is None:
            continue
        verdicts = Verdicts(*about["verdicts"])
        counted = Adapted(about["moves"], about["switches"], verdicts, about["undecided"], about["previews"])
        learned = about["measured"]
        if learned is not None:
            intake = tuple(sorted(learned["intake"].items()))
            model = RoundCost(**learned["model"])
            measured.append(MeasuredRound(model, learned["seconds"], intake, learned["state_bytes"]))
    return counted, measured[::-1]
