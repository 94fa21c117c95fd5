"""The one form of everything that is kept: a line of JSON with kind, version and checksum, then the blobs it names.

    {"windloom": "log", "version": 1, "checksum": "5f1c2a9e", "bytes": 4711, "body": {…}, "sizes": {"cells": 4096}}

The line begins exactly as shown. `bytes` counts the bytes that follow that number, up to the end of the frame;
`checksum` is their CRC-32. `sizes` names the blobs after the line, in order. A file is one frame or, if it is written
part by part, several; a file without blobs is a JSON file. There is one version of each kind, and no other is read.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windloom.errors import WindloomError

#: The kinds of frames, each with the version that is written, which is also the only one that is read.
VERSIONS = {
    "answers": 1,
    "begun": 2,
    "checkpoint": 1,
    "commit": 3,
    "emitted": 1,
    "log": 3,
    "placement": 1,
    "plan": 2,
    "snapshot": 2,
    "state": 2,
}

_HEAD = re.compile(rb'\{"windloom": "(\w+)", "version": (\d+), "checksum": "([0-9a-f]{8})", "bytes": (\d+), ')
#: How files began when each kind had a form of its own.
_OLDER = re.compile(rb'WINDLOOM|WLOOM[A-Z]{3}|\{\s+"windloom"')


class DamagedError(WindloomError):
    """The bytes were not written whole, or were changed since."""


@dataclass(frozen=True, slots=True)
class Frame:
    body: dict[str, Any]
    blobs: Mapping[str, memoryview]


def frame_pieces(kind: str, body: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> list[Any]:
    """Return a frame as bytes and views to be written one after another; `blobs` are bytes or buffers."""
    views = {name: memoryview(blob).cast("B") for name, blob in (blobs or {}).items()}
    fields = {"body": dict(body)} | ({"sizes": {name: len(view) for name, view in views.items()}} if views else {})
    # Without the opening brace, which is in the head.
    line = json.dumps(fields, ensure_ascii=False)[1:].encode() + b"\n"
    size, checksum = len(line), zlib.crc32(line)
    for view in views.values():
        size, checksum = size + len(view), zlib.crc32(view, checksum)
    head = f'{{"windloom": "{kind}", "version": {VERSIONS[kind]}, "checksum": "{checksum:08x}", "bytes": {size}, '
    return [head.encode() + line, *views.values()]


def frame_bytes(kind: str, body: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> bytes:
    return b"".join(frame_pieces(kind, body, blobs))


def read_frames(kind: str, what: str, data: bytes | memoryview, hint: str) -> Iterator[Frame]:
    """Yield the frames of a file, one after another; raise if one is damaged, cut short, or of another kind or version.

    `what` names the file as the subject of a sentence, `hint` says what to do if it is damaged.
    """
    view, offset = memoryview(data), 0
    while offset < len(view):
        head = _HEAD.match(view, offset)
        if head is None:
            raise _not_a_frame(kind, what, view, offset, hint)
        found_kind, version, checksum, size = head[1].decode(), int(head[2]), int(head[3], 16), int(head[4])
        if found_kind == kind and version != VERSIONS[kind]:
            readable = VERSIONS[kind]
            raise WindloomError(
                f"{what} is of version {version}",
                f"this Windloom reads version {readable} only",
                _OF_OLDER if version < readable else "use the Windloom that wrote it, or a newer one",
            )
        rest = view[head.end() : head.end() + size]
        if found_kind != kind or len(rest) != size or zlib.crc32(rest) != checksum:
            raise damaged(what, f"at byte {offset:,} it is cut short or changed: its checksum does not fit", hint)
        yield _frame(rest)
        offset = head.end() + size


def read_frame(kind: str, what: str, data: bytes | memoryview, hint: str) -> Frame:
    """Return the only frame of a file."""
    frames = list(read_frames(kind, what, data, hint))
    if len(frames) != 1:
        raise damaged(what, f"{len(data)} bytes hold {len(frames)} frames, and not one", hint)
    return frames[0]


def _frame(rest: memoryview) -> Frame:
    # The checksum fits, so the bytes are as they were written.
    line_end = re.compile(b"\n").search(rest)
    assert line_end is not None, "a frame begins with a line"
    line = bytes(rest[: line_end.end()])
    about = json.loads(b"{" + line)
    blobs, offset = {}, len(line)
    for name, size in about.get("sizes", {}).items():
        blobs[name] = rest[offset : offset + size]
        offset += size
    return Frame(about["body"], blobs)


def _not_a_frame(kind: str, what: str, view: memoryview, offset: int, hint: str) -> WindloomError:
    if _OLDER.match(view, offset):
        return WindloomError(
            f"{what} is of an older format",
            f"each kind of file had a form of its own, and this Windloom reads version {VERSIONS[kind]} of one for all",
            _OF_OLDER,
        )
    return damaged(what, f"what follows byte {offset:,} of {len(view):,} does not begin as Windloom writes it", hint)


_OF_OLDER = "go on with the Windloom that wrote it, or start with a new checkpoint and give what came before as history"


def damaged(what: str, why: str, hint: str) -> DamagedError:
    return DamagedError(f"{what} is damaged", why, hint)
