"""Parquet: one file a table and round, named by the round, so that a repeated round replaces itself.

`<table>/round-000000042.parquet` appears whole or not at all. `manifest.json` says which table holds which queries, and
which checkpoint the rounds belong to.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.durable.faults import fault
from windloom.durable.storage import Storage
from windloom.engine.streaming.sinks.sink import TableInfo
from windloom.errors import WindloomError

MANIFEST = "manifest.json"
_FORMAT = "windloom-answers/1"


class ParquetSink:
    def __init__(self, storage: Storage, path: str, checkpoint: str) -> None:
        """`checkpoint` is the identity of the checkpoint whose rounds are written here."""
        self._storage = storage
        self._manifest: dict[str, Any] = {"format": _FORMAT, "checkpoint": checkpoint, "tables": {}}
        held = storage.read(MANIFEST)
        if held is None:
            return
        manifest = _parse(held)
        if manifest.get("checkpoint") != checkpoint:
            raise WindloomError(
                f"the output directory '{path}' holds the answers of another run",
                "its rounds belong to another checkpoint, or to a batch run",
                "give a new directory, or the checkpoint these answers were made with",
            )
        self._manifest = manifest

    def write(self, round: int, pieces: Iterable[tuple[str, pa.Table]], tables: Mapping[str, TableInfo]) -> None:
        written: dict[str, tuple[io.BytesIO, pq.ParquetWriter]] = {}
        for name, rows in pieces:
            if name not in written:
                file = io.BytesIO()
                written[name] = (file, pq.ParquetWriter(file, rows.schema, compression="zstd"))
            written[name][1].write_table(rows)
        self._describe(tables)
        for name, (file, writer) in written.items():
            writer.close()
            fault("before sink")
            self._storage.write(f"{name}/round-{round:09d}.parquet", file.getvalue())
            fault("after sink")

    def rows(self, table: str) -> pa.Table | None:
        files = [name for name in self._storage.list(table) if name.endswith(".parquet")]
        found = [self._storage.read(f"{table}/{name}") for name in files]
        tables = [pq.read_table(pa.BufferReader(data)) for data in found if data is not None]
        return pa.concat_tables(tables) if tables else None

    def close(self) -> None:
        """Every round is complete by itself."""

    def _describe(self, tables: Mapping[str, TableInfo]) -> None:
        """Note tables and queries that are new; what a removed query has answered stays described."""
        known = self._manifest["tables"]
        changed = False
        for name, info in tables.items():
            entry = known.setdefault(name, {"columns": dict(info.columns), "queries": []})
            queries = sorted({*entry["queries"], *info.queries})
            changed |= queries != entry["queries"]
            entry["queries"] = queries
        if changed:
            text = json.dumps(self._manifest, indent=2, ensure_ascii=False) + "\n"
            self._storage.write(MANIFEST, text.encode())


def _parse(data: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
        return manifest if isinstance(manifest, dict) else {}
    except ValueError:
        return {}
