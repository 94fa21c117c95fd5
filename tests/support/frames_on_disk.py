"""Frames of a checkpoint, changed as no Windloom of this version writes them."""

from __future__ import annotations

import re


def of_version(data: bytes, version: int) -> bytes:
    """The same frame as another version would have written it."""
    return re.sub(rb'"version": \d+', f'"version": {version}'.encode(), data, count=1)
