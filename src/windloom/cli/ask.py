"""`windloom ask`: a question to a served loom, answered once over what it keeps."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import click

from windloom.cli.options import table_lines
from windloom.errors import WindloomError


@click.command(epilog="Example: windloom ask 'SELECT count(*) FROM trades [TUMBLE 1 hour]' --latest")
@click.argument("text", metavar="QUERY")
@click.option("--url", default="http://127.0.0.1:8470", show_default=True, help="Where `windloom serve` serves.")
@click.option(
    "--latest", is_flag=True, help="Answer as of the newest committed round when the answer is given, or fail."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ask(text: str, url: str, latest: bool, as_json: bool) -> None:
    """Ask a service QUERY once; it is not registered, and no round waits for it.

    The answer reflects all of one committed round. If the service wants a token, it is taken from WINDLOOM_TOKEN.
    """
    answer = _asked(url, {"text": text, "latest": latest})
    if as_json:
        click.echo(json.dumps(answer))
        return
    cells = [["NULL" if value is None else str(value) for value in row] for row in answer["rows"]]
    click.echo("\n".join(table_lines(answer["columns"], cells)))
    since = "" if answer["complete_from"] is None else f"; complete from {answer['complete_from']}"
    click.echo(f"\nas of round {answer['round']}, committed {answer['staleness']:.1f} s ago{since}")


def _asked(url: str, question: dict[str, Any]) -> dict[str, Any]:
    if urlsplit(url).scheme not in ("http", "https"):
        raise WindloomError(f"'{url}' is no address of a service", "", "for example --url http://127.0.0.1:8470")
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("WINDLOOM_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = Request(f"{url.rstrip('/')}/api/v1/ask", json.dumps(question).encode(), headers)
    try:
        with urlopen(request) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except HTTPError as error:
        try:
            said = json.load(error)["error"]
        except (ValueError, KeyError, TypeError):
            raise WindloomError(
                f"'{url}' is not served by Windloom", f"it answers {error.code} {error.reason}"
            ) from None
        raise WindloomError(said["message"], said.get("detail", ""), said.get("hint", "")) from None
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise WindloomError(
            f"no service answers at '{url}'", str(reason), "start one with `windloom serve`, or give its --url"
        ) from None
