"""Local storage: whole files or none, unfinished ones hidden, one owner at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windloom.checkpoint.storage import LocalStorage, watched
from windloom.errors import WindloomError

TESTS = Path(__file__).resolve().parents[2]


class CrashError(BaseException):
    pass


def crash(_: str) -> None:
    raise CrashError


def test_what_is_written_is_read_listed_replaced_and_deleted(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "c")
    assert storage.read("log/2") is None
    assert storage.list("log") == []
    for name in ("log/2", "log/1"):
        storage.write(name, name.encode())
    storage.write("log/2", b"again")
    assert storage.list("log") == ["1", "2"]
    assert storage.read("log/2") == b"again"
    storage.delete("log/2")
    storage.delete("log/2")
    assert storage.list("log") == ["1"]


def test_a_crash_while_writing_leaves_the_old_file_and_nothing_in_the_list(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write("log/1", b"old")
    for name in ("log/1", "log/2"):
        with pytest.raises(CrashError), watched(crash):
            storage.write(name, b"new")
    assert storage.list("log") == ["1"]
    assert storage.read("log/1") == b"old"
    storage.write("log/2", b"new")
    assert len(list((tmp_path / "log").iterdir())) == 3  # the other's unfinished file, until it is written again


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where a folder is wanted")
    with pytest.raises(WindloomError, match=r"cannot write '.*log/1'") as error:
        LocalStorage(tmp_path).write("log/1", b"")
    assert "nothing is lost" in error.value.hint


def test_a_second_owner_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    first, second = LocalStorage(tmp_path / "c"), LocalStorage(tmp_path / "c")
    first.lock("process 1 on host h, since noon")
    with pytest.raises(WindloomError, match="in use") as error:
        second.lock("me")
    assert "process 1 on host h, since noon" in error.value.detail
    second.unlock()  # of one that has no lock: frees nothing
    with pytest.raises(WindloomError, match="in use"):
        second.lock("me")
    first.unlock()
    second.lock("me")
    second.unlock()


_HOLD = """
import os, sys, time
from pathlib import Path
from windloom.checkpoint.storage import LocalStorage
LocalStorage(Path(sys.argv[1])).lock(f"process {os.getpid()} on host here")
print("locked", flush=True)
sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_is_gone_however_it_goes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
    first = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout is not None
    assert first.stdin is not None
    assert first.stdout.readline() == b"locked\n"
    storage = LocalStorage(tmp_path)
    with pytest.raises(WindloomError, match="in use") as error:
        storage.lock("me")
    assert f"process {first.pid} on host" in error.value.detail
    first.kill()
    first.wait()
    first.stdin.close()
    first.stdout.close()
    storage.lock("me")
    storage.unlock()
