"""`python -m bench.watchers PORT COUNT`: so many event streams of a service at once, and which rounds each was told."""

from __future__ import annotations

import asyncio
import json
import sys


async def watch(port: int) -> list[int]:
    """The rounds of one event stream, until the service ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/v1/rounds/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await writer.drain()
    found = []
    while line := await reader.readline():
        if line.startswith(b"id: "):
            found.append(int(line[4:]))
    writer.close()
    return found


async def main(port: int, count: int) -> None:
    told = await asyncio.gather(*(watch(port) for _ in range(count)))
    complete = sum(1 for rounds in told if rounds and rounds == list(range(rounds[-1] + 1)))
    print(json.dumps({"watchers": len(told), "complete": complete, "rounds": max(len(rounds) for rounds in told)}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
