"""The indices of source E, chapter 4, with which its experiments are repeated, hold what a plain list holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.expiring_index import History, Kind, measure_current, measure_index
from experiments.partitioned_index import Layout, PartitionedIndex, drawn

LONGEST, KEYS = 12, 5


def contents(records: list[np.void]) -> list[tuple[int, int, bytes]]:
    return sorted((int(record["key"]), int(record["end"]), bytes(record["data"])) for record in records)


@pytest.mark.parametrize("bucket", [None, 4])
@pytest.mark.parametrize(
    ("insertions", "ends", "round_robin"),
    [(2, 2, True), (3, 3, True), (2, 4, True), (3, 2, False), (4, 1, False), (1, 1, False)],
)
def test_an_index_holds_what_a_plain_list_holds(
    insertions: int, ends: int, round_robin: bool, bucket: int | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(insertions * 10 + ends)
    layout = Layout(insertions, ends, round_robin, LONGEST)
    index = PartitionedIndex(tmp_path, layout, bucket)
    batches = {period: drawn(rng, period, 20, LONGEST, KEYS) for period in range(-LONGEST + 1, 1)}
    inserted = np.repeat(list(batches), 20)
    records = np.concatenate(list(batches.values()))
    alive = records["end"] > 0
    index.build(inserted[alive], records[alive], 0)
    held = list(records[alive])
    for period in range(1, 3 * LONGEST):
        new = drawn(rng, period, int(rng.integers(0, 40)), LONGEST, KEYS)
        before = index.traffic.opened
        index.update(period, new)
        held = [record for record in held if record["end"] > period] + list(new)
        assert contents([record for found in index.scan() for record in found]) == contents(held)
        for key in range(KEYS):
            assert index.probe(key) == sum(record["key"] == key for record in held)
        assert index.traffic.opened - before == insertions + ends - 1
    index.close()


def test_a_record_goes_where_the_update_of_its_end_looks_for_it() -> None:
    for layout in (Layout(4, 4, True, 72), Layout(3, 5, False, 72), Layout(9, 1, False, 72)):
        for inserted in range(80):
            for end in range(inserted + 1, inserted + 73):
                part = layout.of(inserted, end)
                assert part in layout.inserting(inserted)
                assert part in layout.ending(end)


def test_what_is_rebuilt_is_written_whole_and_what_is_not_in_part(tmp_path: Path) -> None:
    written = {}
    for bucket in (None, 3):
        rng = np.random.default_rng(3)
        index = PartitionedIndex(tmp_path / str(bucket), Layout(2, 2, True, LONGEST), bucket)
        for period in range(40):
            index.update(period, drawn(rng, period, 50, LONGEST, KEYS))
        written[bucket] = index.traffic.written
        index.close()
    assert 50 * 40 * 1000 < written[3] < written[None]


def test_the_sink_current_holds_the_same_and_writes_less() -> None:
    """Both measurements compare what is there at last with a plain list."""
    history = History.drawn(720, 4)
    rebuilt = measure_index(Kind(2, 2, True, True), history)
    current = measure_current(history)
    assert 0 < current.written < rebuilt.written
