"""Local storage: whole files or none, unfinished ones hidden, one owner at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windloom.checkpoint.staged import StagedStorage
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


def test_a_lock_leaves_no_trace_if_nothing_came_of_it(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "a" / "c")
    storage.lock("me")
    storage.unlock(without_trace=True)
    assert list(tmp_path.iterdir()) == []
    storage.lock("me")
    storage.write("plans/1.json", b"1")
    storage.unlock(without_trace=True)
    assert storage.read("plans/1.json") == b"1"
    (tmp_path / "file").write_text("")
    with pytest.raises(WindloomError, match="cannot write"):
        LocalStorage(tmp_path / "file" / "c").lock("me")


def test_staged_files_are_read_as_if_they_were_written_and_are_written_when_they_are_released(tmp_path: Path) -> None:
    behind = LocalStorage(tmp_path / "c")
    behind.write("log/1", b"old")
    behind.write("log/2", b"old")
    staged = StagedStorage(behind)
    staged.write("log/2", b"newer")
    staged.write("plans/1", b"plan")
    staged.delete("log/1")
    file = staged.create("log/3")
    file.stream.write(b"three")
    file.finish()
    assert (staged.read("log/1"), staged.read("log/2"), staged.read("plans/1")) == (None, b"newer", b"plan")
    assert (staged.list("log"), staged.sizes("log"), staged.list("plans")) == (["2", "3"], {"2": 5, "3": 5}, ["1"])
    assert (behind.list("log"), behind.read("log/2"), behind.list("plans")) == (["1", "2"], b"old", [])
    staged.release()
    assert (behind.list("log"), behind.read("log/2"), behind.list("plans")) == (["2", "3"], b"newer", ["1"])
    staged.write("log/4", b"four")
    staged.delete("log/2")
    assert behind.list("log") == staged.list("log") == ["3", "4"]


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
