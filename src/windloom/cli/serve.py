"""`windloom serve`: a loom that runs on, with an HTTP API, a page and metrics, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windloom.cli.options import (
    ADAPT_OPTIONS,
    add_relations,
    combined,
    data_options,
    load_loom,
    paths_of,
    plan_options,
    run_options,
    saying_warnings,
    session_options,
    showing_progress,
    sink_options,
    take_plan_options,
    untimed_option,
)
from windloom.cli.rounds import view_of
from windloom.cli.run import BUDGET_OPTIONS, WITHOUT_OPTION, FollowOptions, stop_signals, wait_for_end
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from windloom.engine import Loom
    from windloom.service.service import UnregisteredQuery


_place_options = combined(
    click.option("--behind-proxy", is_flag=True, help="A proxy in front speaks TLS; needs --token-file."),
    click.option("--tls-key", default=None, metavar="FILE", help="Its private key."),
    click.option("--tls-cert", default=None, metavar="FILE", help="Certificate, to serve https."),
    click.option(
        "--token-file", default=None, metavar="FILE", help="Lines 'admin: TOKEN' and 'read: TOKEN'; who may do what."
    ),
    click.option("--port", type=click.IntRange(1, 65535), default=8470, show_default=True, help="Port to listen on."),
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
)


_limit_options = combined(
    click.option("--strict", is_flag=True, help="Refuse a catalog with errors; else its good queries are served."),
    click.option(
        "--time-limit", type=click.FloatRange(0.1), default=30.0, show_default=True, help="Seconds per request."
    ),
    click.option(
        "--max-cost",
        type=click.FloatRange(0, min_open=True),
        default=None,
        metavar="SECONDS",
        help="Refuse queries predicted to add more work per second of event time, such as 0.05.",
    ),
)


_stream_options = combined(
    untimed_option,
    click.option("--idle-after", default=None, metavar="DURATION", help="As of `windloom run --follow`."),
    *ADAPT_OPTIONS,
    *BUDGET_OPTIONS,
    WITHOUT_OPTION,
    click.option("--keep", default=None, metavar="DURATION", help="History kept for questions and queries to come."),
    click.option("--files", type=click.IntRange(min=1), default=None, metavar="N", help="Most new files per round."),
    click.option("--trigger", default=None, metavar="DURATION", help="A round this often; default: as data come."),
    click.option(
        "--checkpoint", default=None, metavar="DIR", help="What a restart needs; by default '_checkpoint' in --out."
    ),
    click.option("--out", required=True, metavar="DIR", help="Directory of the answers, as Parquet."),
)


@click.command(
    epilog="Example: windloom serve trades.cql --stream trades=incoming --out live",
    short_help="Answer streams for as long as wanted, with an HTTP API and a page.",
)
@click.argument("catalog", type=click.Path())
@data_options
@_stream_options
@sink_options
@_place_options
@_limit_options
@plan_options
@run_options
@session_options
def serve(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    out: str,
    host: str,
    port: int,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    max_cost: float | None,
    time_limit: float,
    strict: bool,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    **following: Any,
) -> None:
    """Answer every query of CATALOG as files appear, and serve queries, answers and rounds over HTTP.

    The page is at http://127.0.0.1:8470, the API under /api/v1, figures for Prometheus at /metrics. Only this machine
    is served unless --host says otherwise, which needs tokens and TLS: docs/service.md. SIGTERM and Ctrl-C stop after
    the current round; the same command continues where it stopped.
    """
    try:
        from windloom.service.app import serving
        from windloom.service.server import Place
        from windloom.service.service import Limits, Relay
    except ModuleNotFoundError as error:
        raise WindloomError(
            "`windloom serve` needs packages that are not installed",
            f"'{error.name}' is missing",
            "pip install 'windloom[serve]'",
        ) from None
    plan = take_plan_options(following)
    if "://" in out:
        raise WindloomError(
            f"--out '{out}' is not a directory of this machine",
            "the service reads answers back from it",
            "give a local directory; `windloom run --follow` writes to other file systems",
        )
    others: dict[str, Any] = {"history": (), "handover": None, "finish": False}
    options = FollowOptions.of(streams, relations, out, None, **following, **others)
    place = Place(host, port, token_file, tls_cert, tls_key, behind_proxy)
    limits = Limits(seconds=time_limit, max_cost=max_cost)
    tokens = place.tokens()
    with place.open() as listening:
        loom, rejected = _load(catalog, options, (cores, memory, conf), strict=strict)
        rounds = Relay()
        with stop_signals() as stop, view_of(as_json=False) as view, saying_warnings(view.say):
            rounds.connect(view.show, view.wait)
            handle = loom.start(**options.start, **plan, progress=rounds, waiting=rounds.wait)
            with serving(handle, loom.streams, Path(out), rounds, place, listening, tokens, limits, rejected):
                count = len(handle.queries)
                lines = [f"serving {count:,} {'query' if count == 1 else 'queries'} at {place.address}"]
                lines += [
                    f"left out: {refused.error.message} (the page shows why; --strict would refuse)"
                    for refused in rejected
                ]
                click.echo("\n".join(lines), err=True)
                wait_for_end(handle, stop, view)
    click.echo(f"{'stopped' if stop.is_set() else 'ended'}: {view.totals}")
    click.echo(f"answers are in {options.out}, the checkpoint is {options.checkpoint}: the same command goes on")


def _load(
    catalog: str, options: FollowOptions, session: tuple[str, str | None, tuple[str, ...]], *, strict: bool
) -> tuple[Loom, list[UnregisteredQuery]]:
    """Return a loom of the catalog's streams, with their data, and of those of its queries that are right."""
    from windloom.service.service import load_queries
    from windloom.spark.sources.files import find_file_stream

    with showing_progress() as progress:
        loom = load_loom(catalog, *session, progress, with_queries=False)
        places = paths_of(loom, catalog, options.streams, "--stream")
        file_streams = {name: find_file_stream(loom.streams[name], path) for name, path in places.items()}
        add_relations(loom, catalog, options.relations)
        for name, file_stream in file_streams.items():
            loom.stream(name, file_stream.read(loom.spark, options.files))
        progress("planning")
        return loom, load_queries(loom, catalog, strict=strict)
