"""How much property tests draw."""

from __future__ import annotations

import os

#: Of the examples that a test asks for, the share that is drawn: half, so that the suite takes no longer than it may.
#: WINDLOOM_EXAMPLES=20 looks for what is rare, for an hour or so.
_SHARE = float(os.environ.get("WINDLOOM_EXAMPLES", "0.5"))


def examples(asked: int) -> int:
    """The number of examples for a test that asks for so many."""
    return max(3, round(asked * _SHARE))
