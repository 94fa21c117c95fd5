"""`make dist`: what the wheel and the sdist hold; and the wheel alone, in an empty environment, runs the demo."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import windloom

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PACKAGES = ("windloom", "windloom_tools")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr or made.stdout
    return place


def test_the_wheel_holds_both_packages_and_nothing_else(dist: Path) -> None:
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        about = opened.read(next(name for name in names if name.endswith("METADATA"))).decode()
        points = opened.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    files = {path for package in PACKAGES for path in (SOURCES / package).rglob("*") if path.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts}
    held = {name for name in names if not re.match(r"windloom-[\d.]+\.dist-info/", name)}
    assert held == {str(path.relative_to(SOURCES)) for path in files}
    assert f"\nVersion: {windloom.__version__}\n" in about
    assert {"all", "delta", "java", "postgres", "serve"} <= set(re.findall(r"^Provides-Extra: (\w+)$", about, re.M))
    assert "windloom = windloom.cli.main:main" in points


def test_the_sdist_holds_what_a_clone_holds(dist: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for name in (
        "pyproject.toml",
        "LICENSE",
        "Makefile",
        "requirements.lock",
        "docs/service.md",
        "examples/trades.cql",
    ):
        assert name in names
    assert "tests/unit/test_wheel.py" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_wheel_runs_the_demo_in_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "env", dist)
    [installed] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    share_kernels(installed / "windloom")
    bare = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "WINDLOOM_CACHE": os.environ.get("WINDLOOM_CACHE") or str(Path(sys.prefix) / "windloom-cache"),
        "SPARK_SUBMIT_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
    }
    command = [str(python.with_name("windloom")), "demo", "--quick", "--memory", "1g", "--out", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "rows equal Spark's own window()" in done.stdout
    assert (tmp_path / "demo" / "report.html").is_file()
    ask = [python, "-c", "import windloom, windloom_tools; print(windloom.__file__, windloom_tools.__file__)"]
    where = subprocess.run(ask, env=bare, capture_output=True, text=True, check=True)
    assert [Path(file).parent for file in where.stdout.split()] == [installed / package for package in PACKAGES]


def empty_environment(place: Path, dist: Path) -> Path:
    """An environment with the wheel, and with the packages that the wheel needs; these are not installed once more."""
    [wheel] = dist.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    # With a checkout on the path, pip would say that Windloom is installed.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(pip, env=clean, check=True, capture_output=True)
    [packages] = (place / "lib").glob("python*/site-packages")
    # A path of a .pth file is searched, but .pth files there are not read: an editable Windloom is not found.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def share_kernels(package: Path) -> None:
    """Kernels that are compiled already are the same here: else compiling them would be most of the test."""
    sources = SOURCES / "windloom"
    for source in sources.rglob("*.py"):
        installed = package / source.relative_to(sources)
        kept = source.stat()
        os.utime(installed, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # Numba looks at this
    for compiled in (*sources.rglob("*.nbi"), *sources.rglob("*.nbc")):
        place = package / compiled.relative_to(sources)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, place)
