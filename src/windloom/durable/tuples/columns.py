"""Names of columns, folders and files in the tuple store."""

from __future__ import annotations

import hashlib
import re
from uuid import uuid4

from windloom.model.stream import Stream

FOLDER = "tuples"
TICK, ROUND = "__tick", "__round"


def column_name(stream: Stream, column: str) -> str:
    """Return the name of a column of the stream in files."""
    return f"c{list(stream.columns).index(column)}"


def folder_of(stream: str) -> str:
    """Return the folder of a stream: a name that is safe as a directory, and different for different streams."""
    slug = re.sub(r"[^a-z0-9]+", "_", stream.lower()).strip("_")[:40]
    return f"{FOLDER}/{slug}-{hashlib.sha256(stream.encode()).hexdigest()[:6]}"


def new_file(stream: str, round: int) -> str:
    """Return a file name that no other attempt has."""
    return f"{folder_of(stream)}/{round:09d}-{uuid4().hex}.parquet"
