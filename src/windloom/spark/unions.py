"""Unions of many frames: with the same columns, or with different columns in slots that they share."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windloom.spark.intake.slots import slot_names


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all rows of frames with the same columns; by halves, because Spark analyses all inputs again for each
    union.
    """
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return union_all(frames[:half]).unionAll(union_all(frames[half:]))


def unite(frames: Sequence[DataFrame], tag: str) -> tuple[DataFrame, list[tuple[str, ...]]]:
    """Return all rows of frames with different columns, and the slots of each frame; the column `tag` is the frame's
    number.

    The union is as wide as its widest part, because columns share slots by type.
    """
    slots = [slot_names(kind for _, kind in frame.dtypes) for frame in frames]
    kinds: dict[str, str] = {}
    for frame, frame_slots in zip(frames, slots, strict=True):
        kinds.update(zip(frame_slots, (kind for _, kind in frame.dtypes), strict=True))

    def column(slot: str, frame_slots: tuple[str, ...]) -> Column:
        return F.col(slot) if slot in frame_slots else F.lit(None).cast(kinds[slot]).alias(slot)

    aligned = [
        frame.toDF(*frame_slots).select(
            F.lit(number).alias(tag), *(column(slot, frame_slots) for slot in sorted(kinds))
        )
        for number, (frame, frame_slots) in enumerate(zip(frames, slots, strict=True))
    ]
    return union_all(aligned), slots
