"""Spark's failures as errors users can act on; what is not theirs to fix passes unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ArithmeticException, PySparkException

from windloom.errors import WindloomError


@contextmanager
def as_windloom_errors(what: str = "the streams") -> Iterator[None]:
    """Errors in the user's data or expressions become WindloomErrors that carry Spark's own words."""
    try:
        yield
    except (AnalysisException, ArithmeticException) as error:
        raise WindloomError(f"Spark cannot evaluate {what}", _first_line(error), _HINT) from error
    except PySparkException as error:
        condition = error.getCondition() or ""
        ours = re.search(r"windloom\.errors\.(?:Windloom|Query)Error: (.*)", str(error))
        if ours:
            raise WindloomError(ours.group(1)) from error
        if condition.startswith(("CAST_", "DIVIDE_BY_ZERO", "INVALID_", "ARITHMETIC_", "PATH_NOT_FOUND", "NUMERIC_")):
            raise WindloomError(f"Spark cannot evaluate {what}", _first_line(error), _HINT) from error
        raise


_HINT = "correct the expression or the data; Spark's try_… functions give NULL instead of an error"


def _first_line(error: PySparkException) -> str:
    return str(error).strip().split("\n", 1)[0]
