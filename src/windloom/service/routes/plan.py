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
    # What is inside a picture of ours is our own style, which marks what the pointer is on.
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    with service.working():
        return Response(service.loom.picture(), media_type="image/svg+xml", headers={"Content-Security-Policy": policy})


@router.get("/sharing")
def sharing(service: Served) -> dict[str, Any]:
    """What every set, tree and query is predicted to cost, and what sharing saves."""
    with service.working():
        return dict(service.loom.costs())
