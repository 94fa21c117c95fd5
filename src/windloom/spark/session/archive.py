"""An archive of Spark's classes as a JVM holds them in memory (AppCDS): a session that maps it starts much sooner.

Set-up makes it: when a JVM with the right option exits, it writes the classes it has loaded. An archive fits only the
same JVM and jars, so it is named after both, and another JVM does not find it. If a JVM finds an archive that does not
fit, it silently continues without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from windloom.cache import cache_folder
from windloom.spark.session.java import JavaHome

#: The first Java that can write an archive of an application's classes at exit, and map it.
OLDEST_MAJOR = 13
#: Silences a JVM's messages about an archive that does not fit, which do not help users.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


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
    """Return options with which a JVM maps its archive, if there is one; with `archive_to`, it writes one there at
    exit.
    """
    if archive_to is not None:
        return [f"-XX:ArchiveClassesAtExit={archive_to}", _QUIET]
    archive = archive_path(java)
    if not _fits_an_option(archive) or not archive.is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _QUIET]


def can_archive(java: JavaHome) -> bool:
    return java.major >= OLDEST_MAJOR and _fits_an_option(archive_path(java))


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


def _fits_an_option(path: Path) -> bool:
    """Return whether a path can be part of a JVM option: Spark splits these at spaces."""
    return " " not in str(path)
