"""Panes (Li et al.): slices of equal length gcd(range, slide), so a window has range/gcd partials."""

from __future__ import annotations

from math import gcd

from windloom.model.windows import Window
from windloom.slicing.edges import EdgeClass


class Panes:
    name = "panes"

    def edges(self, window: Window) -> tuple[EdgeClass, ...]:
        return (EdgeClass(gcd(window.range_ticks, window.slide_ticks), window.offset_ticks),)

    def marks(self, window: Window) -> tuple[EdgeClass, ...]:
        return ()
