"""How much property tests draw."""

from __future__ import annotations

import os

#: Of the examples that a test asks for, the share that is drawn: a third, or else the suite would take too long.
#: WINDLOOM_EXAMPLES=20 looks for what is rare, for an hour or so.
_SHARE = float(os.environ.get("WINDLOOM_EXAMPLES", "0.33"))


def examples(asked: int) -> int:
    """The number of examples for a test that asks for so many."""
    return max(3, round(asked * _SHARE))
