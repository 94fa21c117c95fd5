"""The manifest of answers in Parquet: which table holds which queries, and which checkpoint they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from windloom.engine.sinks.sink import TableInfo

MANIFEST = "manifest.json"
_FORMAT = "windloom-answers/1"


class Manifest:
    """`checkpoint` is the identity of the checkpoint whose rounds the files hold; None for a batch run."""

    def __init__(self, checkpoint: str | None, tables: Mapping[str, Any] | None = None) -> None:
        self.checkpoint = checkpoint
        self._tables: dict[str, dict[str, Any]] = dict(tables or {})

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest | None:
        """Read a manifest; None if the data are not a manifest."""
        try:
            fields = json.loads(data)
            return cls(fields["checkpoint"], fields["tables"]) if fields["format"] == _FORMAT else None
        except (ValueError, LookupError, TypeError):
            return None

    @property
    def tables(self) -> list[str]:
        return list(self._tables)

    def to_bytes(self) -> bytes:
        whole = {"format": _FORMAT, "checkpoint": self.checkpoint, "tables": self._tables}
        return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()

    def describe(self, tables: Mapping[str, TableInfo]) -> bool:
        """Add new tables and queries; return whether there were any. Removed queries stay, as their answers do."""
        changed = False
        for name, info in tables.items():
            entry = self._tables.setdefault(name, {"columns": dict(info.columns), "queries": []})
            queries = sorted({*entry["queries"], *info.queries})
            changed |= queries != entry["queries"]
            entry["queries"] = queries
        return changed
