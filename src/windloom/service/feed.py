"""Sends rounds to all watchers as they are done: encoded once, handed to each, without waiting for anyone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator

from windloom.engine.running.progress import RoundProgress

#: Rounds that a new watcher, or one that was away, is sent at once.
HISTORY = 100
#: Rounds that a watcher may be behind before it is disconnected; it reconnects and is sent the rounds it missed.
_BEHIND = 64
#: If no round comes for this long, a comment is sent, because proxies close silent connections.
_SILENCE_SECONDS = 15.0
_END = None


class RoundFeed:
    """`publish` is called by the thread of a round; everything else by the loop that serves."""

    def __init__(self, most_watchers: int = 1_000, history: int = HISTORY) -> None:
        self.most_watchers = most_watchers
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=history)
        self._watchers: dict[asyncio.Queue[bytes | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def publish(self, done: RoundProgress) -> None:
        event = _event("round", done.as_dict(), done.round)
        with self._lock:
            self._recent.append((done.round, event))
            watchers = list(self._watchers.items())
        self._hand(watchers, event)

    def announce(self, what: str) -> None:
        """Send an event that something other than a round has changed: `queries`."""
        with self._lock:
            watchers = list(self._watchers.items())
        self._hand(watchers, _event(what, {}, None))

    def close(self) -> None:
        """Tell all watchers that the feed is over, so that the server can stop without waiting for them."""
        with self._lock:
            self._is_closed = True
            watchers = list(self._watchers.items())
        self._hand(watchers, _END)

    async def watch(self, after: int | None = None) -> AsyncIterator[bytes]:
        """Yield server-sent events: the rounds after `after` that are remembered, then those to come."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_BEHIND + len(self._recent) + 1)
        with self._lock:
            # A watcher that saw more rounds than there are has watched another loom at this address.
            known = after if after is not None and self._recent and after <= self._recent[-1][0] else -1
            for number, event in self._recent:
                if number > known:
                    queue.put_nowait(event)
            if self._is_closed:
                queue.put_nowait(_END)
            self._watchers[queue] = asyncio.get_running_loop()
        try:
            yield b"retry: 2000\n\n"
            while True:
                try:
                    event_or_end = await asyncio.wait_for(queue.get(), _SILENCE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if event_or_end is _END:
                    return
                yield event_or_end
        finally:
            with self._lock:
                self._watchers.pop(queue, None)

    def _hand(
        self, watchers: list[tuple[asyncio.Queue[bytes | None], asyncio.AbstractEventLoop]], event: bytes | None
    ) -> None:
        # One call per loop, however many watch, so that the thread of a round continues at once.
        for loop in {loop for _, loop in watchers}:
            queues = [queue for queue, loop_of_queue in watchers if loop_of_queue is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put_all, queues, event)


def _put_all(queues: list[asyncio.Queue[bytes | None]], event: bytes | None) -> None:
    for queue in queues:
        if queue.full():
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(_END)
        else:
            queue.put_nowait(event)


def _event(name: str, data: object, number: int | None) -> bytes:
    identity = "" if number is None else f"id: {number}\n"
    return f"{identity}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
