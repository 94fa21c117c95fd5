"""Posts JSON over HTTP: what a receiver answers, and whether to try again."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from windloom.errors import WindloomError

#: Refusals that may be temporary: a time limit, a conflict with a copy that is in work, too early, too many requests.
_PASSING = (408, 409, 425, 429)
_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of a post: the HTTP status, or None if nobody answered, and words about it."""

    status: int | None
    words: str

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_pass(self) -> bool:
        return self.status is None or self.status in _PASSING or self.status >= 500


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a redirected POST would become a GET without a body."""

    def redirect_request(self, *_: object) -> None:
        return None


class Poster:
    """Posts to one address. `place` is its host, for messages: the rest of an address may hold secrets."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self._url, self._token, self._timeout = url, token, timeout
        self.place = urlsplit(url).netloc.rpartition("@")[2]
        self._opener = urllib.request.build_opener(_NoRedirect)

    @classmethod
    def of(cls, url: str, token_file: str | Path | None, timeout: float) -> Poster:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WindloomError(
                "the address of the webhook cannot be used", f"it is '{url}'", "write it as https://host/path"
            )
        return cls(url, None if token_file is None else _read_token(token_file), timeout)

    def post(self, body: bytes, key: str) -> Answered:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "windloom"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return Answered(answer.status, answer.reason or "")
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(_SHOWN).decode(errors="replace")
            return Answered(error.code, " ".join(f"{error.code} {error.reason}: {said}".split()))
        except (OSError, http.client.HTTPException) as error:  # nobody there, no such host, no answer in time
            reason = getattr(error, "reason", error)
            return Answered(None, str(reason) or type(error).__name__)


def _read_token(file: str | Path) -> str:
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is not text"
        raise WindloomError(
            f"cannot read the token file '{file}' of the webhook", why, "give a file that holds one token"
        ) from None
    if not token or not token.isascii() or len(token.split()) != 1:
        raise WindloomError(
            f"the token file '{file}' of the webhook holds no token", "it must be one word", "write the token into it"
        )
    return token
