"""The one framing: what is written comes back, and what cannot be trusted is refused by name."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.frames_on_disk import of_version
from windloom.checkpoint.frames import VERSIONS, DamagedError, frame_bytes, frame_pieces, read_frame, read_frames
from windloom.errors import WindloomError

BODY = {"name": 'ä\n"}', "numbers": [1, None, 2.5]}
BLOBS = {"a": b"\n\x00{", "none": b"", "c": pa.py_buffer(b"xyz")}


def test_bodies_and_blobs_come_back_of_every_kind() -> None:
    for kind in VERSIONS:
        found = read_frame(kind, "it", frame_bytes(kind, BODY, BLOBS), "")
        assert found.body == BODY
        assert {name: bytes(blob) for name, blob in found.blobs.items()} == {"a": b"\n\x00{", "none": b"", "c": b"xyz"}


def test_a_frame_without_blobs_is_a_line_of_json() -> None:
    data = frame_bytes("plan", BODY)
    assert data.count(b"\n") == 1
    whole = json.loads(data)
    assert (whole["windloom"], whole["version"], whole["body"]) == ("plan", VERSIONS["plan"], BODY)


def test_frames_follow_each_other_in_a_file() -> None:
    pieces = [piece for number in range(3) for piece in frame_pieces("answers", {"n": number}, {"x": b"\n" * number})]
    data = b"".join(pieces)
    assert [frame.body["n"] for frame in read_frames("answers", "it", data, "")] == [0, 1, 2]
    assert list(read_frames("answers", "it", b"", "")) == []
    with pytest.raises(DamagedError, match="it is damaged"):
        read_frame("answers", "it", data, "hint")


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_any_byte_that_is_lost_or_changed_is_noticed(data: st.DataObject) -> None:
    whole = frame_bytes("log", BODY, BLOBS)
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    for broken in (whole[:place], changed, whole + whole[: place + 1]):
        with pytest.raises(WindloomError, match="the file 'f' is") as error:
            read_frame("log", "the file 'f'", broken, "mend it")
        assert error.value.hint


def test_another_kind_is_refused() -> None:
    with pytest.raises(DamagedError):
        read_frame("plan", "it", frame_bytes("commit", {}), "")


@pytest.mark.parametrize(("version", "way_on"), [(0, "start with a new checkpoint"), (99, "or a newer one")])
def test_another_version_is_refused_and_does_not_count_as_damage(version: int, way_on: str) -> None:
    with pytest.raises(WindloomError, match=f"it is of version {version}") as error:
        read_frame("state", "it", of_version(frame_bytes("state", BODY), version), "")
    assert not isinstance(error.value, DamagedError)
    assert way_on in error.value.hint
