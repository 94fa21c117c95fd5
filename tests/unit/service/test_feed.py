"""The feed of rounds: what watchers are told, and what becomes of slow ones."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

from support.fake_loom import made_round
from windloom.service.feed import RoundFeed


async def _rounds(events: AsyncIterator[bytes], count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        event = await anext(events)
        if b"event: round" in event:
            found.append(json.loads(event.decode().partition("data: ")[2])["round"])
    return found


def test_a_watcher_is_told_what_was_and_what_comes() -> None:
    async def watch() -> None:
        feed = RoundFeed()
        feed.publish(made_round(0))
        feed.publish(made_round(1))
        events = feed.watch()
        assert await _rounds(events, 2) == [0, 1]
        thread = threading.Thread(target=feed.publish, args=(made_round(2),))  # as the thread of a round does
        thread.start()
        assert await _rounds(events, 1) == [2]
        thread.join()
        back = feed.watch(after=1)
        assert await _rounds(back, 1) == [2]
        assert feed.watchers == 2
        feed.close()
        assert [event async for event in events] == []
        assert [event async for event in back] == []
        assert feed.watchers == 0

    asyncio.run(watch())


def test_a_watcher_that_does_not_read_is_let_go_and_holds_up_nobody() -> None:
    async def watch() -> None:
        feed = RoundFeed()
        slow, quick = feed.watch(), feed.watch()
        await anext(slow)
        await anext(quick)
        for number in range(200):
            feed.publish(made_round(number))
            await asyncio.sleep(0)
            assert await _rounds(quick, 1) == [number]
        rest = [event async for event in slow]
        assert len(rest) < 200
        await quick.aclose()  # type: ignore[attr-defined]
        assert feed.watchers == 0

    asyncio.run(watch())


def test_a_change_of_queries_is_announced() -> None:
    async def watch() -> None:
        feed = RoundFeed()
        events = feed.watch()
        await anext(events)
        feed.announce("queries")
        assert (await anext(events)).startswith(b"event: queries\n")

    asyncio.run(watch())


def test_one_who_saw_more_rounds_than_there_are_is_told_all_of_them() -> None:
    async def watch() -> None:
        feed = RoundFeed()
        feed.publish(made_round(0))
        assert await _rounds(feed.watch(after=70), 1) == [0]

    asyncio.run(watch())
