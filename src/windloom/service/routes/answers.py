"""Answers of queries: latest, or of a range of time, as JSON, CSV or an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from windloom.engine.results import unknown_query
from windloom.model.formatting import plain
from windloom.service.models import Latest, Name, QueryRows
from windloom.service.service import MayRead, Served, check_parameters
from windloom.service.stored_answers import FORMATS, arrow_pieces, as_rows, csv_bytes

router = APIRouter(tags=["answers"])

Instant = Annotated[str | None, Query(max_length=40, examples=["2026-01-31T12:00:00Z"])]
#: Rows and files that are read for a small chart, and the points that it has.
_TAIL_ROWS, _TAIL_FILES, _POINTS = 2_000, 40, 40


#: As OpenAPI describes parameters whose names are not known beforehand.
_GROUPS = {
    "name": "groups",
    "in": "query",
    "description": "Grouping columns with a wanted value each; a repeated one has several.",
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
}


@router.get(
    "/queries/{name}/answers",
    dependencies=[MayRead],
    response_model=QueryRows,
    openapi_extra={"parameters": [_GROUPS]},
)
def read_answers(
    name: Annotated[Name, Path()],
    service: Served,
    request: Request,
    since: Instant = None,
    until: Instant = None,
    limit: Annotated[int, Query(ge=1, le=1_000_000)] = 1_000,
    format: Annotated[Literal["json", "csv", "arrow"] | None, Query()] = None,
) -> Response:
    """The latest rows of a query, at most `limit`, in order of time.

    `since` and `until` bound the end of their windows, and a grouping column, as in `country=DE`, their group. The
    format is `format`, or the one that `Accept` asks for. Answers of a query that was removed are marked so.
    """
    is_removed = name not in service.loom.queries
    if is_removed and name not in service.loom.removed:
        raise unknown_query(name, list(service.loom.queries))
    marked = {"X-Windloom-Removed": "true"} if is_removed else {}
    groups = check_parameters(request, service.loom.grouping(name))
    with service.working():
        table = service.loom.answers(name, since, until, min(limit, service.limits.rows), groups=groups)
        match format or _accepted(request.headers.get("accept", "")):
            case "csv":
                return Response(csv_bytes(table), media_type=FORMATS["csv"], headers=marked)
            case "arrow":
                return StreamingResponse(arrow_pieces(table), media_type=FORMATS["arrow"], headers=marked)
            case _:
                return JSONResponse({**as_rows(table).model_dump(), "removed": is_removed}, headers=marked)


@router.get("/latest", dependencies=[MayRead])
def read_latest(
    service: Served, query: Annotated[list[Name], Query(min_length=1, max_length=100)]
) -> dict[str, Latest]:
    """The last answer of each named query, and one figure over its latest windows."""
    loom, latest = service.loom, service.latest
    groups = loom.groupings()
    wanted = [name for name in query if name in loom.queries and name in groups]
    if any(name not in latest for name in wanted):
        with service.working():
            for name in wanted:
                if name not in latest:  # many watchers ask the same after every round
                    latest[name] = latest_of(loom.answers(name, None, None, _TAIL_ROWS, _TAIL_FILES), groups[name])
    return {name: latest[name] for name in wanted}


def latest_of(table: pa.Table, groups: Sequence[str]) -> Latest:
    """Return the last row, and the first figure of its group over the windows before it."""
    if not table.num_rows:
        return Latest(row=None, figure=None, points=[])
    last = table.slice(table.num_rows - 1).to_pylist()[0]
    others = [field for field in table.schema if field.name not in ("window_start", "window_end", *groups)]
    figure = next((field.name for field in others if _is_number(field.type)), None)
    return Latest(
        row={name: plain(value) for name, value in last.items()},
        figure=figure,
        points=[] if figure is None else list(_points(table, last, groups, figure))[-_POINTS:],
    )


def _points(table: pa.Table, last: dict[str, Any], groups: Sequence[str], figure: str) -> Iterator[tuple[str, float]]:
    rows = table
    for name in groups:
        kind = table.schema.field(name).type
        if not pa.types.is_nested(kind):
            wanted = pc.is_null(rows[name]) if last[name] is None else pc.equal(rows[name], pa.scalar(last[name], kind))
            rows = rows.filter(wanted)
    ends, values = rows["window_end"], rows[figure].cast(pa.float64())
    for end, value in zip(ends.to_pylist(), values.to_pylist(), strict=True):
        if value is not None and isfinite(value):
            yield str(plain(end)), value


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _accepted(accept: str) -> str:
    return next((name for name, kind in FORMATS.items() if kind.partition(";")[0] in accept), "json")
