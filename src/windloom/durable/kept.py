"""Names and bounds of kept tuples as JSON, for logs and snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windloom.rounds.rows.kept import BroughtTuples, Coverage, KeptTuples, TupleFile


def kept_to_json(kept: KeptTuples) -> dict[str, Any]:
    coverages = [
        [list(coverage.columns), None if coverage.wheres is None else list(coverage.wheres), coverage.since]
        for coverage in kept.coverages
    ]
    return {"files": [_file(tuple_file) for tuple_file in kept.files], "coverages": coverages}


def kept_from_json(about: Mapping[str, Any]) -> KeptTuples:
    coverages = tuple(
        Coverage(tuple(columns), None if wheres is None else tuple(wheres), since)
        for columns, wheres, since in about["coverages"]
    )
    return KeptTuples(tuple(TupleFile(*file) for file in about["files"]), coverages)


def brought_to_json(brought: BroughtTuples) -> dict[str, Any]:
    return {
        "added": [_file(tuple_file) for tuple_file in brought.added],
        "replaced": sorted(brought.replaced),
        "lost": sorted(brought.lost),
    }


def brought_from_json(about: Mapping[str, Any]) -> BroughtTuples:
    added = tuple(TupleFile(*file) for file in about["added"])
    return BroughtTuples(added, frozenset(about["replaced"]), frozenset(about["lost"]))


def _file(file: TupleFile) -> Sequence[Any]:
    return [file.name, file.first, file.last, file.first_round, file.last_round, file.rows, file.bytes]
