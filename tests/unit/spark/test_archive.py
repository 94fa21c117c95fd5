"""Archives of Spark's classes: which file is whose, and what a JVM is told. No JVM is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windloom.spark import session as archive_module
from windloom.spark.session import JavaHome, archive_options, archive_path, can_archive, draft_of, fingerprint

JAVA = JavaHome(Path("/opt/java/bin/java"), 17, "PATH", 'openjdk version "17.0.15" 2025-04-15')


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two jars, and a cache of the test's own."""
    made = [tmp_path / "jars" / name for name in ("a.jar", "b.jar")]
    made[0].parent.mkdir()
    for jar in made:
        jar.write_text("classes")
        os.utime(jar, ns=(1, 1))
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive_module, "jar_files", lambda: made)
    return made


def test_an_archive_is_named_after_the_java_and_the_jars(jars: list[Path]) -> None:
    before = fingerprint(JAVA.version, jars)
    assert fingerprint(JAVA.version, jars) == before
    assert fingerprint(JAVA.version.replace("15", "16"), jars) != before
    assert fingerprint(JAVA.version, jars[:1]) != before
    jars[1].write_text("other classes")
    changed = fingerprint(JAVA.version, jars)
    assert changed != before
    os.utime(jars[1], ns=(2, 2))
    assert fingerprint(JAVA.version, jars) != changed


def test_a_jvm_maps_the_archive_that_is_there_and_no_other(jars: list[Path]) -> None:
    assert archive_options(JAVA) == []
    archive = archive_path(JAVA)
    archive.parent.mkdir()
    archive.with_name("spark-of-another.jsa").touch()
    assert archive_options(JAVA) == []
    archive.touch()
    options = archive_options(JAVA)
    assert options[0] == f"-XX:SharedArchiveFile={archive}"
    assert "-Xshare:auto" in options, "an archive that does not fit must not keep Spark from starting"


def test_a_jvm_that_records_maps_no_archive(jars: list[Path], tmp_path: Path) -> None:
    archive_path(JAVA).parent.mkdir()
    archive_path(JAVA).touch()
    options = archive_options(JAVA, tmp_path / "draft")
    assert options[0] == f"-XX:ArchiveClassesAtExit={tmp_path / 'draft'}"
    assert not any("SharedArchiveFile" in option for option in options)


def fail_halfway(archive: Path) -> None:
    with draft_of(archive) as draft:
        draft.write_text("half of it")
        raise RuntimeError


def test_a_draft_becomes_the_archive_whole_or_not_at_all(jars: list[Path]) -> None:
    archive = archive_path(JAVA)
    with pytest.raises(RuntimeError):
        fail_halfway(archive)
    assert list(archive.parent.iterdir()) == []
    with draft_of(archive) as draft:
        pass  # a JVM that cannot archive writes nothing
    assert not archive.exists()
    with draft_of(archive) as draft:
        draft.write_text("all of it")
    assert archive.read_text() == "all of it"
    assert list(archive.parent.iterdir()) == [archive]


def test_spark_would_cut_a_path_with_spaces_in_two(
    jars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert can_archive(JAVA)
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path / "my cache"))
    assert not can_archive(JAVA)
    archive_path(JAVA).parent.mkdir()
    archive_path(JAVA).touch()
    assert archive_options(JAVA) == []
