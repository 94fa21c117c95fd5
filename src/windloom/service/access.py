"""Access rights: tokens from a file, compared in constant time, and logins for the page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from windloom.errors import WindloomError

COOKIE = "windloom_login"
LOGIN_SECONDS = 12 * 3600
_MOST_LOGINS = 1_000
_SHORTEST_TOKEN = 16
_FORM = "write a line 'admin: TOKEN', and perhaps 'read: TOKEN', with tokens of 16 characters or more"


class AccessLevel(IntEnum):
    NONE = 0
    READ = 1
    ADMIN = 2


@dataclass(frozen=True, slots=True)
class Tokens:
    """The digests of tokens; the tokens themselves are not kept."""

    digests: tuple[tuple[bytes, AccessLevel], ...]

    def level_of(self, token: str) -> AccessLevel:
        """Return the level of a token.

        Every digest is compared, so the time shows neither which was right nor how much of it.
        """
        digest_of_token, best = _digest(token), AccessLevel.NONE
        for digest, level in self.digests:
            if hmac.compare_digest(digest, digest_of_token):
                best = max(best, level)
        return best


def read_tokens(path: str) -> Tokens:
    """Read lines `admin: TOKEN` and `read: TOKEN`; a line with only a token is an admin token."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WindloomError(
            f"cannot read the token file '{path}'",
            str(error),
            "give a file that the user of this process may read; " + _FORM,
        ) from None
    digests = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        word, colon, rest = line.partition(":")
        level = (
            {"admin": AccessLevel.ADMIN, "read": AccessLevel.READ}.get(word.strip().lower())
            if colon
            else AccessLevel.ADMIN
        )
        token = rest.strip() if colon else line
        if level is None or len(token) < _SHORTEST_TOKEN or " " in token:
            raise WindloomError(
                f"line {number} of the token file '{path}' is not a token",
                "it is too short, has spaces, or begins with a word other than 'admin' and 'read'",
                _FORM,
            )
        digests.append((_digest(token), level))
    if not digests:
        raise WindloomError(f"the token file '{path}' holds no token", "nobody could use the service", _FORM)
    return Tokens(tuple(digests))


class Logins:
    """Cookies of those who logged in; kept in memory, so a restart asks for the token again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[AccessLevel, float]] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, level: AccessLevel) -> str:
        login = secrets.token_urlsafe(32)
        with self._lock:
            self._known[_digest(login)] = (level, self._clock() + LOGIN_SECONDS)
            while len(self._known) > _MOST_LOGINS:
                self._known.popitem(last=False)
        return login

    def level_of(self, login: str) -> AccessLevel:
        with self._lock:
            level, until = self._known.get(_digest(login), (AccessLevel.NONE, 0.0))
        return level if self._clock() < until else AccessLevel.NONE

    def close(self, login: str) -> None:
        with self._lock:
            self._known.pop(_digest(login), None)


class Gate:
    """Without tokens, everyone who reaches the service is an administrator; it then listens to this machine only."""

    def __init__(self, tokens: Tokens | None, logins: Logins | None = None) -> None:
        self.tokens, self.logins = tokens, logins or Logins()

    def level_of(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> AccessLevel:
        if self.tokens is None:
            return AccessLevel.ADMIN
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.tokens.level_of(token.strip())
        return self.logins.level_of(cookies.get(COOKIE, ""))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
