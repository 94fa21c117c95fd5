"""The plan that the next round will run: as data, as a picture, and what sharing saves."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from windloom.service.service import MayRead, Served

router = APIRouter(tags=["plan"], dependencies=[MayRead])


@router.get("/plan")
def plan(service: Served) -> dict[str, Any]:
    """Streams, scans, sets, trees and queries, as `windloom explain --json` prints them."""
    return dict(service.loom.plan())


@router.get("/plan.svg", response_class=Response)
def picture(service: Served) -> Response:
    """The plan as a picture."""
    # The picture contains a style of its own, which highlights the part under the pointer.
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    with service.working():
        return Response(service.loom.picture(), media_type="image/svg+xml", headers={"Content-Security-Policy": policy})


@router.get("/sharing")
def sharing(service: Served) -> dict[str, Any]:
    """The predicted cost of every set, tree and query, and what sharing saves."""
    with service.working():
        return dict(service.loom.costs())
