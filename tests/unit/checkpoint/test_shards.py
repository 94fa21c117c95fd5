"""Checkpoints whose state earlier revisions kept in shards on executors."""

from __future__ import annotations

from pathlib import Path

import pytest

from windloom.checkpoint.recovery import refuse_sharded
from windloom.checkpoint.storage import LocalStorage
from windloom.errors import WindloomError


def test_a_checkpoint_with_shards_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    refuse_sharded(storage, str(tmp_path))
    storage.write("placement.json", b"{}")
    with pytest.raises(WindloomError, match="is in shards on executors") as raised:
        refuse_sharded(storage, str(tmp_path))
    assert str(tmp_path) in raised.value.message
    assert "a new checkpoint, and what came before as history" in raised.value.hint
    assert "loom.answers().writeStream" in raised.value.hint
