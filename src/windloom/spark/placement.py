"""Where a batch run makes its answers: on the driver while there are few cells, otherwise in the Spark operator."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame

from windloom.errors import WindloomError

PLACEMENTS = ("auto", "driver", "executors")

#: Inputs that Spark estimates at less than this cannot yield more cells than the driver can hold.
SMALL_INPUT_BYTES = 1 << 30
#: The driver holds at least this many bytes of cells, and up to a quarter of the machine's memory.
DRIVER_BYTES = 2 << 30


def check_placement(placement: str, buckets: object = None) -> None:
    if placement not in PLACEMENTS:
        raise WindloomError(
            f"unknown placement '{placement}'",
            "it says where the final step runs",
            "use one of: " + ", ".join(PLACEMENTS),
        )
    if buckets is not None and (not isinstance(buckets, int) or buckets < 1):
        raise WindloomError(
            f"the number of buckets cannot be {buckets!r}",
            "the groups of a bucket are answered by one task",
            "give a positive number",
        )


def inputs_are_small(frames: Mapping[str, DataFrame]) -> bool:
    """Return whether inputs are small, by Spark's own estimate before anything runs; False if Spark has no estimate."""
    try:
        sizes = [
            int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) for frame in frames.values()
        ]
    except Exception:  # a remote session does not show its plan: then the cells are counted
        return False
    return sum(sizes) < SMALL_INPUT_BYTES


def driver_bytes() -> int:
    """Return how many bytes of cells the driver holds at once."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # the system does not report its memory
        machine = 0
    return max(DRIVER_BYTES, machine // 4)
