"""The webhook sink: letters with idempotency keys, retries, dead letters; every row reaches the receiver once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.answers import TABLES, Given, piece, place
from support.micro_batches import CrashError, ManualClock, crash_after
from support.receiver import Receiver
from windloom.checkpoint.storage import watched
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks import webhook
from windloom.sinks.webhook import WebhookSink

GIVEN = Given([piece(("a", 20, "y", 3), ("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES)


def opened(folder: Path, receiver: Receiver, **options: Any) -> WebhookSink:
    return WebhookSink.open(place(folder), url=receiver.url, **options)


def rows(receiver: Receiver) -> list[tuple[str, int, int]]:
    found = receiver.letters.values()
    return sorted((letter["query"], letter["round"], row["n"]) for letter in found for row in letter["rows"])


def dead(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("checkpoint/webhook-*/dead/*.json"))]


def test_each_query_and_round_is_a_letter_with_a_key_of_its_own(tmp_path: Path, receiver: Receiver) -> None:
    token = tmp_path / "token"
    token.write_text("a-secret-token\n")
    sink = opened(tmp_path, receiver, token_file=token)
    assert sink.write(0, GIVEN) == {"letters": 2, "dead_letters": 0}
    assert sink.write(0, GIVEN) == {"letters": 2, "dead_letters": 0}
    assert opened(tmp_path, receiver).write(0, GIVEN) == {"letters": 2, "dead_letters": 0}
    assert receiver.posts == 2, "what was taken is not posted again"
    assert sink.write(1, Given([], TABLES)) == {"letters": 0, "dead_letters": 0}
    sink.write(2, GIVEN)
    assert receiver.posts == len(receiver.letters) == 4
    first = next(iter(receiver.letters.values()))
    assert first == {
        "loom": "c1",
        "round": 0,
        "query": "a",
        "part": 0,
        "parts": 1,
        "rows": [
            {"window_start": 0, "window_end": 10, "k": "x", "n": 1},
            {"window_start": 10, "window_end": 20, "k": "y", "n": 3},
        ],
    }
    assert {sent["Authorization"] for sent in receiver.headers} == {"Bearer a-secret-token"}
    assert {sent["Content-Type"] for sent in receiver.headers} == {"application/json"}


def test_only_the_queries_that_are_named_are_posted(tmp_path: Path, receiver: Receiver) -> None:
    opened(tmp_path / "1", receiver, queries="b*, c").write(0, GIVEN)
    assert rows(receiver) == [("b", 0, 2)]
    opened(tmp_path / "2", receiver, queries=["a"]).write(1, GIVEN)
    assert rows(receiver) == [("a", 1, 1), ("a", 1, 3), ("b", 0, 2)]


def test_many_rows_are_several_letters_the_same_ones_whenever_they_come(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "LETTER_ROWS", 2)
    many = [("a", 10 * i, "x", i) for i in range(5)]
    opened(tmp_path / "1", receiver).write(0, Given([piece(*many)], TABLES))
    opened(tmp_path / "2", receiver).write(0, Given([piece(*many[3:]), piece(*many[2::-1])], TABLES))
    assert receiver.posts == 6
    assert [(letter["part"], letter["parts"], len(letter["rows"])) for letter in receiver.letters.values()] == [
        (0, 3, 2),
        (1, 3, 2),
        (2, 3, 1),
    ]


@pytest.mark.parametrize("trouble", [503, 429, 409, "before", "after"])
def test_a_receiver_that_is_down_is_waited_for(tmp_path: Path, receiver: Receiver, trouble: int | str) -> None:
    receiver.behaviour = lambda post: trouble if post == 2 else 200
    sink = opened(tmp_path, receiver)
    with pytest.raises(SinkDownError) as caught:
        sink.write(0, GIVEN)
    assert "secret" not in str(caught.value), "an address may hold one"
    assert sink.write(0, GIVEN) == {"letters": 2, "dead_letters": 0}
    assert receiver.posts == 3
    assert rows(receiver) == [("a", 0, 1), ("a", 0, 3), ("b", 0, 2)]
    assert dead(tmp_path) == []


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_letter_that_is_refused_is_kept_on_disk_and_the_others_go_on(
    tmp_path: Path, receiver: Receiver, status: int
) -> None:
    receiver.behaviour = lambda post: status if post == 1 else 200
    sink = opened(tmp_path, receiver)
    for _ in range(2):
        assert sink.write(0, GIVEN) == {"letters": 1, "dead_letters": 1}
    assert rows(receiver) == [("b", 0, 2)]
    (held,) = dead(tmp_path)
    assert held["status"] == status
    assert "said so" in held["answer"]
    assert [row["n"] for row in held["letter"]["rows"]] == [1, 3]
    assert held["key"].startswith("c1-0-")


def test_when_it_is_down_for_too_long_letters_die_without_holding_up_rounds(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(webhook, "monotonic", clock)
    receiver.behaviour = lambda post: 503
    sink = opened(tmp_path, receiver, give_up_after="30 seconds")
    for clock.now in (100.0, 115.0, 129.0):
        with pytest.raises(SinkDownError):
            sink.write(0, GIVEN)
    clock.now = 130.0
    assert sink.write(0, GIVEN) == {"letters": 0, "dead_letters": 2}
    assert sink.write(1, GIVEN) == {"letters": 0, "dead_letters": 2}, "one attempt each, while it is down"
    receiver.behaviour = lambda post: 200
    assert sink.write(2, GIVEN) == {"letters": 2, "dead_letters": 0}
    receiver.behaviour = lambda post: 503
    clock.now = 200.0
    with pytest.raises(SinkDownError):  # down anew, and waited for anew
        sink.write(3, GIVEN)
    assert [(dead_letter["letter"]["round"], dead_letter["letter"]["query"]) for dead_letter in dead(tmp_path)] == [
        (0, "a"),
        (0, "b"),
        (1, "a"),
        (1, "b"),
    ]


def test_a_crash_at_any_point_loses_no_letter_and_an_honest_receiver_takes_none_twice(
    tmp_path: Path, receiver: Receiver
) -> None:
    passed: list[str] = []
    with watched(passed.append):
        opened(tmp_path / "whole", receiver).write(0, GIVEN)
    assert len(passed) >= 6
    whole = rows(receiver)
    for number in range(len(passed)):
        receiver.letters.clear()
        folder = tmp_path / str(number)
        with pytest.raises(CrashError), crash_after(number):
            opened(folder, receiver).write(0, GIVEN)
        opened(folder, receiver).write(0, GIVEN)
        assert rows(receiver) == whole


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://example.com/x"}, "the address of the webhook cannot be used"),
        ({"url": "https:///x"}, "the address of the webhook cannot be used"),
        ({"url": "http://127.0.0.1/", "timeout": "soon"}, "the sink 'webhook', timeout: "),
        ({"url": "http://127.0.0.1/", "give_up_after": "x"}, "the sink 'webhook', give_up_after: "),
        ({"url": "http://127.0.0.1/", "token_file": "nowhere"}, "cannot read the token file 'nowhere'"),
        ({"url": "http://127.0.0.1/", "token_file": "/dev/null"}, "holds no token"),
    ],
)
def test_options_that_cannot_be_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(WindloomError) as caught:
        WebhookSink.open(place(tmp_path), **options)
    assert words in caught.value.message
    assert caught.value.hint


def test_nobody_there_is_down(tmp_path: Path) -> None:
    sink = WebhookSink.open(place(tmp_path), url="http://127.0.0.1:1/x", give_up_after="never")
    with pytest.raises(SinkDownError, match=r"the receiver at 127.0.0.1:1 takes no letter") as caught:
        sink.write(0, GIVEN)
    assert "Connection refused" in caught.value.detail
