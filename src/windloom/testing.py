"""A kit for testing streaming queries without Spark: an oracle that answers by definition, and slowly."""

from windloom_tools.oracle.answers import answer
from windloom_tools.oracle.joins import answer_join
from windloom_tools.oracle.rows import answer_rows

__all__ = ["answer", "answer_join", "answer_rows"]
