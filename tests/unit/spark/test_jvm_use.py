"""Which modules reach behind Spark's public interface, into the JVM that a session of Spark Connect does not have."""

from __future__ import annotations

import re
from pathlib import Path

import windloom

_JVM = re.compile(r"\b_(jdf|jvm|jsparkSession|jsc)\b|\bsparkContext\b")
#: Modules may leave this list; what else needs the JVM asks one of them.
KNOWN = {
    "spark/collect.py",
    "spark/frames.py",
    "spark/placement.py",
    "spark/plans/classic.py",
    "spark/plans/jvm.py",
    "spark/plans/read.py",
    "spark/relations.py",
    "spark/rows/job.py",
    "spark/session.py",
    "spark/sources/files.py",
    "spark/sources/hadoop.py",
}


def test_no_other_module_reaches_into_the_jvm_and_none_of_the_operator() -> None:
    source = Path(windloom.__file__).parent
    found = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if _JVM.search(path.read_text("utf-8"))
    }
    assert found <= KNOWN
    assert not any(name.startswith("spark/operator/") for name in found)
