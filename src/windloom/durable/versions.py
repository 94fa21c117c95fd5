"""The refusal of bytes that another version of Windloom wrote: one format is read, and every other one is named."""

from __future__ import annotations

from windloom.errors import WindloomError


def other_version(what: str, version: object, readable: int) -> WindloomError:
    """`what` names the file or the bytes, as the subject of a sentence."""
    is_older = isinstance(version, int) and version < readable
    return WindloomError(
        f"{what} is of version {version}",
        f"this Windloom reads version {readable} only",
        "go on with the Windloom that wrote it, or start with a new checkpoint and give what came before as history"
        if is_older
        else "use the Windloom that wrote it, or a newer one",
    )
