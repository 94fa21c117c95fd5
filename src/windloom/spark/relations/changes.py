"""Finds out whether a relation has changed, from the plans of two frames and their files, without reading a row."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import DataFrame

#: The times at which files were last read, which do not matter.
_READ_TIMES = re.compile(r"access_time=\d+")
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """A frame from which a version was read; `files` are the files it read, None if it read anything else too."""

    frame: DataFrame
    files: str | None

    @classmethod
    def of(cls, frame: DataFrame) -> SeenFrame:
        return cls(frame, _files_of(frame))

    def is_same(self, frame: DataFrame) -> bool:
        """Return whether another frame certainly gives the same rows.

        The same DataFrame does: a relation that changes is given as a new DataFrame. Two DataFrames do if they are the
        same query over the same files, which have neither changed nor moved.
        """
        if frame is self.frame:
            return True
        if self.files is None or self.files != _files_of(frame):
            return False
        try:
            return bool(self.frame.sameSemantics(frame))
        except Exception:  # a remote session does not compare plans
            return False


def _files_of(frame: DataFrame) -> str | None:
    """Return paths, sizes and times of all files that a frame reads; None if it reads anything else, or does not show
    them.
    """
    try:
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        listings = []
        for index in range(leaves.size()):
            leaf = leaves.apply(index)
            relation = leaf.relation() if leaf.nodeName().startswith("LogicalRelation") else None
            if relation is None or relation.getClass().getName() != _FILES:
                return None
            listings.append(str(relation.location().allFiles().mkString("\n")))
    except Exception:  # a remote session does not show its plan, and not every index of files lists them
        return None
    return _READ_TIMES.sub("", "\n\n".join(listings))
