"""Makes .venv ready to run Windloom from the lock files; does nothing when it is ready already.

Standard library only: it runs before anything is installed.
"""

import hashlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

OLDEST_PYTHON = (3, 11)
if sys.version_info < OLDEST_PYTHON:  # before anything that an older Python could not read
    sys.exit(
        f"Windloom needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}.\n"
        "Install a newer one and name it, for example: make setup PYTHON=python3.12"
    )

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "windloom-setup"
BUILD_LOCK, LOCK, JAVA_LOCK = (ROOT / f"requirements{part}.lock" for part in ("-build", "", "-java"))


def main() -> None:
    if STAMP.exists() and STAMP.read_text() == fingerprint():
        return
    STAMP.unlink(missing_ok=True)
    create_venv()
    install_packages()
    provide_java()
    provide_programs()
    warm_up()
    STAMP.write_text(fingerprint())
    say("ready")


def fingerprint() -> str:
    """Changes with all that decides what .venv holds; the path too, since an editable install points there."""
    digest = hashlib.sha256(f"{ROOT} {venv_version()}".encode())
    for source in (BUILD_LOCK, LOCK, JAVA_LOCK, ROOT / "pyproject.toml", Path(__file__)):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def venv_version() -> str:
    """The version of the Python in .venv; empty when there is none, it does not run or it is too old."""
    ask = f"import sys; print(sys.version if sys.version_info >= {OLDEST_PYTHON} else '')"
    return run(PYTHON, "-c", ask).stdout.strip() if PYTHON.exists() else ""


def create_venv() -> None:
    if venv_version() and run(PYTHON, "-m", "pip", "--version").returncode == 0:
        return
    if find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            f"{sys.executable} cannot make a virtual environment: its 'ensurepip' module is missing.\n"
            f"On Debian and Ubuntu: apt install python{version}-venv. Elsewhere: install a complete Python {version}."
        )
    say("creating .venv …")
    # A dead interpreter is cleared away; a live environment that only lacks pip keeps what it holds.
    flags = [] if venv_version() else ["--clear"]
    must(run(sys.executable, "-m", "venv", *flags, VENV), "could not create .venv")


def install_packages() -> None:
    # The build tools come first and build isolation is off, so that nothing unpinned is fetched to build a package.
    must(pip_install("--require-hashes", "-r", BUILD_LOCK), "could not install the build tools")
    count = len(re.findall(r"^\S+==", LOCK.read_text(), re.MULTILINE))
    say(f"installing {count} locked packages (Spark is some 450 MB: minutes on a slow line) …")
    must(pip_install("--require-hashes", "-r", LOCK), "could not install the locked packages")
    must(pip_install("--no-deps", "-e", ROOT), "could not install Windloom itself")


def provide_java() -> None:
    answer = look_for_java()
    if answer.returncode:
        say("no Java 17 or newer here: installing a runtime into .venv …")
        pip_install("--require-hashes", "-r", JAVA_LOCK)
        answer = look_for_java()
    must(answer, "Spark cannot run without Java")
    say(answer.stdout.strip())


def provide_programs() -> None:
    """What some tests need of the system; without it they are skipped, and everything else works."""
    wanted = [
        (("chromium", "chromium-driver"), has_browser(), "a browser, in which the service's page is tested"),
        (("postgresql",), has_postgres(), "PostgreSQL, which its sink is tested against"),
    ]
    missing = [(packages, purpose) for packages, is_there, purpose in wanted if not is_there]
    if not missing:
        return
    may_install = which("apt-get") is not None and os.geteuid() == 0
    if may_install:
        run("apt-get", "-qq", "update")
    for packages, purpose in missing:
        command = ("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *packages)
        if may_install:
            say(f"installing {purpose} …")
        if not may_install or run(*command).returncode:
            say(f"not here: {purpose}. To install it: apt-get install {' '.join(packages)}")


def has_browser() -> bool:
    return all(which(program) for program in ("chromium", "chromedriver"))


def has_postgres() -> bool:
    return which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def warm_up() -> None:
    """Kernels compiled and Spark's classes archived now are not waited for later; without either all works."""
    done = subprocess.run([PYTHON, "-m", "windloom", "warm"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        say(f"the first runs will take longer, since the rehearsal failed:\n{done.stderr.strip()[-2_000:]}")


def look_for_java() -> "subprocess.CompletedProcess[str]":
    return run(PYTHON, "-m", "windloom.spark.session")


def pip_install(*arguments: object) -> "subprocess.CompletedProcess[str]":
    options = ("-qq", "--disable-pip-version-check", "--no-input", "--no-build-isolation", "--use-pep517")
    return run(PYTHON, "-m", "pip", "install", *options, *arguments)


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, errors="replace")


def must(result: "subprocess.CompletedProcess[str]", failure: str) -> None:
    if result.returncode:
        sys.exit(f"{failure}:\n{(result.stderr or result.stdout).strip()}")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
