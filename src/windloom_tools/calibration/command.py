"""`windloom calibrate`: measures what plans cost on this machine, keeps the constants, shows how well they predict."""

from __future__ import annotations

import json
import os
import platform
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windloom.cli.options import showing_progress, table_lines
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from windloom.optimizer.cost.constants import Constants
    from windloom_tools.calibration.check import Outcome
    from windloom_tools.calibration.fit import Fit
    from windloom_tools.calibration.kernels import Tell


@click.command(
    epilog="Example: windloom calibrate --quick, then: windloom calibrate --check",
    short_help="Measure what plans cost on this machine.",
)
@click.option("--quick", is_flag=True, help="Smaller inputs and fewer repeats: about a minute.")
@click.option("--check", "only_check", is_flag=True, help="Compare estimates with measured times; change no constants.")
@click.option("--no-spark", is_flag=True, help="Do not start Spark; keep the constants of scanning as they are.")
@click.option(
    "--out", default=None, metavar="FILE", help="Write the constants to this file instead of the user's settings."
)
@click.option("--dry-run", is_flag=True, help="Show the constants without keeping them.")
@click.option("--json", "as_json", is_flag=True, help="Print the constants (or the comparison) as JSON.")
def calibrate(quick: bool, only_check: bool, no_spark: bool, out: str | None, dry_run: bool, as_json: bool) -> None:
    """Measure the constants that predict the cost of plans, and keep them for this user.

    Techniques are measured by themselves, the rest of the step through the step itself, scanning by a short Spark job.
    The environment variable WINDLOOM_COSTS names another file to read and write.
    """
    from windloom.optimizer.cost.constants import constants_path, in_force, load_constants, shipped_constants
    from windloom_tools.calibration.check import as_json as outcomes_json
    from windloom_tools.calibration.check import check

    if only_check:
        constants = load_constants()
        with showing_progress(as_json) as tell:
            outcomes = check(constants, quick, tell)
        if as_json:
            click.echo(json.dumps(outcomes_json(outcomes), indent=2))
            return
        click.echo(f"constants: {constants.source}")
        click.echo("\n".join(check_lines(outcomes)))
        return
    path = Path(out) if out else constants_path()
    if not dry_run:
        _check_writable(path)
    so_far, unread = _constants_so_far() if no_spark else (None, None)
    # Measured plans need constants too; those of this user may be what is to be made, or mended.
    with showing_progress(as_json) as tell, in_force(shipped_constants()):
        fits = measure(quick, no_spark, tell)
    constants = _constants(fits, so_far)
    if unread is not None:
        click.echo(f"the constants of scanning are those that ship: {unread.message}", err=True)
    if as_json:
        click.echo(constants.to_json())
    else:
        click.echo("\n".join(fit_lines(fits)))
    if not dry_run:
        _write(path, constants)
        if not as_json:
            click.echo(f"\nkept in {path}; {_use_of(path)}")


def _use_of(path: Path) -> str:
    """Whether plans are made with the constants in this file."""
    from windloom.optimizer.cost.constants import VARIABLE, constants_path

    if path.resolve() == constants_path().resolve():
        return "strategy 'auto' uses them from now on"
    return f"strategy 'auto' uses them where {VARIABLE} names this file: export {VARIABLE}={shlex.quote(str(path))}"


def _constants_so_far() -> tuple[Constants, WindloomError | None]:
    """The constants in force; those that ship if they cannot be read, with the reason."""
    from windloom.optimizer.cost.constants import constants_path, load_constants, shipped_constants

    if not constants_path().exists():
        return shipped_constants(), None
    try:
        return load_constants(), None
    except WindloomError as error:
        return shipped_constants(), error


def measure(quick: bool, no_spark: bool, tell: Tell) -> dict[str, Fit]:
    """Every fit, by the name of what it measures."""
    from windloom_tools.calibration.check import plan_of
    from windloom_tools.calibration.folds import measure_folds
    from windloom_tools.calibration.kernels import measure_techniques
    from windloom_tools.calibration.spark import measure_projection, measure_spark
    from windloom_tools.calibration.step import measure_answering, measure_reading
    from windloom_tools.calibration.woven import measure_weaving

    found: dict[str, Fit] = {
        f"{name} {family}": measure_technique
        for (name, family), measure_technique in measure_techniques(quick, tell).items()
    }
    planned = partial(plan_of, strategy="shared", technique="recalculate")
    found.update(measure_reading(planned, quick, tell))
    found["answers"] = measure_answering(planned, quick, tell)
    found["weaving"] = measure_weaving(quick, tell)
    found.update(measure_folds(quick, tell))
    if not no_spark:
        from windloom.spark.session import local_session

        tell("starting Spark")
        spark = local_session(app="windloom calibrate")
        found["projection"] = measure_projection(spark, quick, tell)
        job = 1e-9 * found["projection"].nanoseconds["job"]
        found["spark"] = measure_spark(spark, quick, tell, job)
    return found


def _techniques(fits: dict[str, Fit]) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, fit in fits.items():
        technique, _, family = name.partition(" ")
        if family:
            found.setdefault(technique, {})[family] = fit.nanoseconds
    return found


def _constants(fits: dict[str, Fit], so_far: Constants | None) -> Constants:
    """What was measured; where scanning was not, with the constants of scanning as they were."""
    from windloom.optimizer.cost.constants import Constants

    runtime = {} if so_far is None else dict(so_far.runtime)
    for name, fit in fits.items():
        if " " not in name:
            runtime.update(fit.nanoseconds)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    deviation = {name: round(fit.mean_deviation, 4) for name, fit in fits.items()}
    return Constants(runtime, _techniques(fits), machine, "measured", deviation)


def fit_lines(fits: dict[str, Fit]) -> list[str]:
    """A row for each fit: how far its estimates lie from the measurements, and its constants."""
    rows = [
        (
            name,
            f"{fit.mean_deviation:.0%}",
            f"{fit.worst_deviation:.0%}",
            ", ".join(f"{term} {value:g}" for term, value in fit.nanoseconds.items()),
        )
        for name, fit in sorted(fits.items(), key=lambda pair: (" " in pair[0], pair[0]))
    ]
    return table_lines(("what", "mean error", "worst error", "nanoseconds"), rows, right=("mean error", "worst error"))


def check_lines(outcomes: list[Outcome]) -> list[str]:
    """A row for each outcome, and a summary."""
    from windloom_tools.calibration.check import summary

    rows = [
        (
            outcome.technique,
            outcome.workload,
            str(outcome.trees),
            f"{outcome.estimated * 1e3:.1f} ms",
            f"{outcome.measured * 1e3:.1f} ms",
            f"{outcome.deviation:+.0%}",
        )
        for outcome in outcomes
    ]
    numbers = ("trees", "estimated", "measured", "deviation")
    return [*table_lines(("technique", "workload", *numbers), rows, right=numbers), "", *summary(outcomes)]


def _check_writable(path: Path) -> None:
    """Raises before anything is measured, which takes a while, if the constants could not be kept afterwards."""
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        _unfinished(path).touch()
        _unfinished(path).unlink()
    except OSError as error:
        raise _cannot_write(path, error) from None


def _write(path: Path, constants: Constants) -> None:
    try:
        unfinished = _unfinished(path)
        unfinished.write_text(constants.to_json(), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".unfinished")


def _cannot_write(path: Path, error: OSError) -> WindloomError:
    return WindloomError(f"cannot write '{path}'", str(error), "choose another file with --out")
