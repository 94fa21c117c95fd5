"""What adapting has counted and learned, as JSON in the commit of a round: the next start goes on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from windloom.optimizer.adapt.adapter import Adapted, Verdicts
from windloom.optimizer.adapt.correction import MeasuredRound
from windloom.optimizer.adapt.round_cost import RoundCost


def write_adapted(adapted: Adapted, model: RoundCost | None, intake: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """`model` is what was predicted of the round, for what came; `intake` how that was taken in."""
    verdicts = adapted.verdicts
    return {
        "moves": adapted.moves,
        "switches": adapted.switches,
        "verdicts": [verdicts.judged, verdicts.hits, verdicts.regret],
        "model": None if model is None else asdict(model),
        "intake": dict(intake),
    }


def read_adapted(commits: Sequence[Mapping[str, Any]]) -> tuple[Adapted, list[MeasuredRound]]:
    """From the commits of rounds, oldest first: what was counted, and what rounds took, newest first."""
    counted, measured = Adapted(), []
    for commit in commits:
        about = commit.get("adapted")
        if about is None:
            continue
        counted = Adapted(about["moves"], about["switches"], Verdicts(*about["verdicts"]))
        if about["model"] is not None and commit["events"]:
            intake = tuple(sorted(about["intake"].items()))
            model = RoundCost(**about["model"])
            measured.append(MeasuredRound(model, commit["seconds"], intake, commit["state_bytes"]))
    return counted, measured[::-1]
