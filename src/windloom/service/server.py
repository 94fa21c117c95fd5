"""The HTTP server: an address to listen on, which is checked before anything starts, and a thread that serves there."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import threading
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from windloom.errors import WindloomError
from windloom.service.access import Tokens, read_tokens

#: Seconds that open answers may still take when the server stops.
_GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how to listen; by default, only this machine can connect."""

    host: str = "127.0.0.1"
    port: int = 8470
    token_file: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect, and no proxy is in front of it."""
        return _is_loopback(self.host) and not self.behind_proxy

    @property
    def is_secure(self) -> bool:
        return self.behind_proxy or self.tls_certificate is not None

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_certificate is None else 'https'}://{host}:{self.port}"

    def tokens(self) -> Tokens | None:
        """Return the tokens of the file; refuse an address that others could reach without a token."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise WindloomError(
                "TLS needs a certificate and a key", "one of them is given", "give --tls-cert and --tls-key"
            )
        if self.tls_certificate is not None and self.tls_key is not None:
            _check_tls(self.tls_certificate, self.tls_key)
        if self.token_file is not None:
            tokens = read_tokens(self.token_file)
        elif self.is_local:
            return None
        else:
            raise WindloomError(
                f"'{self.host}' can be reached by others, and no token file is given",
                "without tokens everyone who reaches the service may change its queries",
                "give --token-file FILE, or leave out --host and --behind-proxy to serve this machine only",
            )
        if not self.is_local and not self.is_secure:
            raise WindloomError(
                f"'{self.host}' can be reached by others, and tokens would travel in the clear",
                "neither TLS files nor a proxy that has them is given",
                "give --tls-cert and --tls-key, or --behind-proxy where a proxy speaks TLS for it",
            )
        return tokens

    def open(self) -> socket.socket:
        """Return a listening socket. It is opened before anything else, because ports are often in use."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
            listening.listen(512)
        except OSError as error:
            listening.close()
            what = f"cannot listen on '{self.host}', port {self.port}", str(error), "give an address of this machine"
            if error.errno == errno.EADDRINUSE:
                in_use = f"port {self.port} of '{self.host}' is in use"
                what = in_use, "another program listens there", "stop it, or give another --port"
            elif error.errno == errno.EACCES:
                what = f"port {self.port} needs more rights", "ports below 1024 are the system's", "give --port 8470"
            raise WindloomError(*what) from None
        return listening


def _check_tls(certificate: str, key: str) -> None:
    """Refuse files that the server cannot use: it would notice only later, in a thread of its own."""
    for file in (certificate, key):
        if not os.access(file, os.R_OK):
            raise WindloomError(f"cannot read the TLS file '{file}'", "it is missing, or not readable", "check it")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_refuse_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise WindloomError(
            f"cannot use the certificate '{certificate}' with the key '{key}'",
            str(getattr(error, "reason", None) or error),
            "give PEM files that belong together: --tls-cert with the whole chain, --tls-key without a password",
        ) from None


def _refuse_password() -> str:
    raise ValueError("the key is encrypted")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HttpServer:
    """Serves in a thread of its own, so that the main one can wait for signals."""

    def __init__(self, app: ASGIApp, place: Place, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on the address of the client
            lifespan="off",
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=place.tls_certificate,
            ssl_keyfile=place.tls_key,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="windloom-http", daemon=True
        )

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_GRACE_SECONDS + 5)
