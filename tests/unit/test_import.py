"""What `import windloom` does and leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_TELL = "import sys, os, windloom; print('pyarrow' in sys.modules, os.environ['MIMALLOC_PURGE_DELAY'])"


@pytest.mark.parametrize(("given", "kept"), [(None, "60000"), ("10", "10")])
def test_arrow_is_told_how_long_to_keep_freed_memory_before_it_is_imported(given: str | None, kept: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    if given is not None:
        environment["MIMALLOC_PURGE_DELAY"] = given
    asked = [sys.executable, "-c", _TELL]
    told = subprocess.run(asked, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert told.split() == ["False", kept]


def test_the_tools_are_imported_when_one_of_their_commands_is_used() -> None:
    loaded = "'windloom_tools' in sys.modules"
    asked = f"import sys; from windloom.cli.main import cli; print({loaded}, cli.commands['demo'].name, {loaded})"
    told = subprocess.run([sys.executable, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert told.split() == ["False", "demo", "True"]


def test_what_only_some_calls_need_is_imported_by_them() -> None:
    count = "sum(name.startswith('windloom') for name in sys.modules)"
    command = [sys.executable, "-c", f"import sys, windloom; windloom.Loom; print({count})"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(printed) <= 300
