"""Webhook: the rows of alert queries, posted as letters to an address that takes JSON.

A letter holds the rows of one query and round (or a part of them, if there are many) and has an idempotency key, which
is the same whenever the letter is posted again. After each letter, the checkpoint records which letters of the round
were taken. A receiver that ignores keys it has already seen therefore takes every row once, whatever crashes.

A letter that is refused, or cannot be posted for too long, becomes a dead letter: a file under the checkpoint.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import ClassVar, Self
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from windloom.checkpoint.storage import Storage, fault
from windloom.errors import SinkDownError, WindloomError
from windloom.model.formatting import plain
from windloom.model.time import TICKS_PER_SECOND, parse_duration
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace
from windloom.spark.sources.hadoop import storage_at

#: Refusals that may be temporary: a time limit, a conflict with a copy that is in work, too early, too many requests.
_PASSING = (408, 409, 425, 429)
#: How much of a refusal is shown, in bytes.
_SHOWN = 500
#: The most rows in a letter.
LETTER_ROWS = 500


@dataclass(frozen=True, slots=True)
class PostResult:
    """The outcome of a post: the HTTP status, or None if nobody answered, and words about it."""

    status: int | None
    words: str


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a redirected POST would become a GET without a body."""

    def redirect_request(self, *_: object) -> None:
        return None


class Poster:
    """Posts to one address. `place` is its host, for messages: the rest of an address may hold secrets."""

    def __init__(self, url: str, token_file: str | Path | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WindloomError(
                "the address of the webhook cannot be used", f"it is '{url}'", "write it as https://host/path"
            )
        self._url, self._timeout, self.place = url, timeout, parts.netloc.rpartition("@")[2]
        self._token: str | None = None
        if token_file is not None:
            try:
                token = Path(token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is not text"
                message = f"cannot read the token file '{token_file}' of the webhook"
                raise WindloomError(message, why, "give a file that holds one token") from None
            if not token or not token.isascii() or len(token.split()) != 1:
                message = f"the token file '{token_file}' of the webhook holds no token"
                raise WindloomError(message, "it must be one word", "write the token into it")
            self._token = token
        self._opener = urllib.request.build_opener(_NoRedirect)

    def post(self, body: bytes, key: str) -> PostResult:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "windloom"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return PostResult(answer.status, answer.reason or "")
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(_SHOWN).decode(errors="replace")
            return PostResult(error.code, " ".join(f"{error.code} {error.reason}: {said}".split()))
        except (OSError, http.client.HTTPException) as error:  # nobody there, no such host, no answer in time
            reason = getattr(error, "reason", error)
            return PostResult(None, str(reason) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class Letter:
    """One post; `body` is its JSON."""

    key: str
    query: str
    part: int
    body: bytes


class WebhookSink(Sink):
    target: ClassVar[str | None] = "url"

    def __init__(
        self, poster: Poster, storage: Storage, checkpoint: str, queries: Sequence[str], give_up: float | None
    ) -> None:
        """`give_up`: seconds after which a letter that cannot be posted becomes a dead letter; None for never."""
        self._poster, self._storage, self._checkpoint = poster, storage, checkpoint
        self._queries, self._give_up = tuple(queries), give_up
        self._down_since: float | None = None

    @classmethod
    def open(
        cls,
        place: SinkPlace,
        *,
        url: str,
        queries: str | Sequence[str] = "*",
        token_file: str | Path | None = None,
        timeout: str | timedelta = "10 seconds",
        give_up_after: str | timedelta | None = "1 minute",
    ) -> Self:
        """`queries` are names or patterns (a text has them separated by commas); `token_file` holds a bearer token."""
        patterns = [pattern.strip() for pattern in queries.split(",")] if isinstance(queries, str) else list(queries)
        poster = Poster(url, token_file, _seconds("timeout", timeout))
        digest = hashlib.sha256(json.dumps([url, sorted(patterns)]).encode()).hexdigest()[:8]
        storage = storage_at(place.spark, f"{place.checkpoint_path}/webhook-{digest}")
        give_up = None
        if give_up_after is not None and give_up_after != "never":
            give_up = _seconds("give_up_after", give_up_after)
        return cls(poster, storage, place.checkpoint_id, patterns, give_up)

    def write(self, round: int, answers: RoundAnswers) -> Mapping[str, float]:
        # Keys of the round's letters that an earlier attempt has posted or given up.
        data = self._storage.read("round.json")
        noted = {} if data is None else json.loads(data)
        taken, dead = (noted["taken"], noted["dead"]) if noted.get("round") == round else ([], [])
        for letter in self._letters(round, answers):
            if letter.key in taken or letter.key in dead:
                continue
            fault("before sink")
            if self._deliver(round, letter):
                taken.append(letter.key)
            else:
                dead.append(letter.key)
            fault("after sink")
            self._storage.write("round.json", json.dumps({"round": round, "taken": taken, "dead": dead}).encode())
        return {"letters": len(taken), "dead_letters": len(dead)}

    def _deliver(self, round: int, letter: Letter) -> bool:
        """Post a letter; return whether the receiver has taken it. If not, it is a dead letter now."""
        answered = self._poster.post(letter.body, letter.key)
        status = answered.status
        if status is not None and 200 <= status < 300:
            self._down_since = None
            return True
        if status is None or status in _PASSING or status >= 500:
            self._down_since = self._down_since or monotonic()
            if self._give_up is None or monotonic() - self._down_since < self._give_up:
                hint = "start it, or correct the address"
                raise SinkDownError(f"the receiver at {self._poster.place} takes no letter", answered.words, hint)
        slug = re.sub(r"[^\w-]+", "_", letter.query)[:60]
        digest = hashlib.sha256(letter.query.encode()).hexdigest()[:6]
        dead_letter = {
            "key": letter.key,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "status": status,
            "answer": answered.words,
            "letter": json.loads(letter.body),
        }
        name = f"dead/{round:09d}-{slug}-{digest}-{letter.part}.json"
        self._storage.write(name, (json.dumps(dead_letter, indent=2, ensure_ascii=False) + "\n").encode())
        return False

    def _letters(self, round: int, answers: RoundAnswers) -> Iterator[Letter]:
        """Yield the letters of a round, in sorted order, so that a round that comes again has the same letters."""
        by_query: dict[str, list[pa.Table]] = {}
        for _, rows in answers.rows():
            for query in pc.unique(rows["query"]).to_pylist():
                if any(fnmatch.fnmatchcase(query, pattern) for pattern in self._queries):
                    query_rows = rows.filter(pc.equal(rows["query"], query)).drop_columns("query")
                    by_query.setdefault(query, []).append(query_rows)
        for query, tables in sorted(by_query.items()):
            rows = [
                {name: plain(value) for name, value in row.items()} for table in tables for row in table.to_pylist()
            ]
            rows.sort(key=lambda row: json.dumps([row["window_end"], row["window_start"], row], default=str))
            parts = range(0, len(rows), LETTER_ROWS)
            for part, begin in enumerate(parts):
                about = {"loom": self._checkpoint, "round": round, "query": query, "part": part, "parts": len(parts)}
                body = {**about, "rows": rows[begin : begin + LETTER_ROWS]}
                yield Letter(
                    f"{self._checkpoint}-{round}-{hashlib.sha256(query.encode()).hexdigest()[:16]}-{part}",
                    query,
                    part,
                    json.dumps(body, ensure_ascii=False).encode(),
                )


def _seconds(name: str, value: str | timedelta) -> float:
    try:
        ticks = parse_duration(value)
    except WindloomError as error:
        raise WindloomError(f"the sink 'webhook', {name}: {error.message}", error.detail, error.hint) from None
    return ticks / TICKS_PER_SECOND
