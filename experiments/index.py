"""The index of all pages, and the table of every figure and table of the five sources: all from the data files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.pages import Absent, Data, Verdict
from experiments.without_page import WITHOUT_PAGE

#: How the sources name what they show, in the order of the table.
_KINDS = ("table", "example", "fig.", "section")
_HEAD = """# Experiments

The experiments of the five papers behind Windloom, repeated with its own strategies, techniques and operators. Source A
is Weave Share (Guirguis et al.), B charts of plans (OM, Kulkarni and Ravishankar), C incremental evaluation in
multi-query plans (Shein and Chrysanthis), D aggregation below joins (Tran and Lee), E sliding-window queries (Golab).
Plans are seeded and come out the same everywhere; times are those of the machine they were measured on.
`make experiments` writes everything here anew; `make experiments ARGS=--quick` tries it on few and small cases and
writes to `build`. Headlines and verdicts are computed from the data files, and a test compares them.
"""
_TABLE = """
## Every figure and table of the sources

*Reproduced*: the values, or the order where the source gives none, come out. *Trend only*: the direction does.
*Differs* and *not run* come with the reason. Values in brackets are the lowest and highest of several seeds. Where a
page is named, `python -m experiments PAGE` repeats it.
"""


def headline_of(name: str, data: Data) -> str:
    """The headline of an experiment, from its data; a quick run may lack the cases that it is about."""
    try:
        return str(import_module(f"experiments.{name}").headline(data))
    except Absent:
        return "A quick run of few and small cases."


def verdicts_of(name: str, data: Data) -> list[Verdict]:
    try:
        found: list[Verdict] = import_module(f"experiments.{name}").verdicts(data)
    except Absent:
        return []
    return found


def index_text(names: Sequence[str], folder: Path) -> str:
    """Of the pages that are there: an experiment may have been skipped."""
    lines, shown = [_HEAD, "| page | what came out |", "|---|---|"], list[tuple[Verdict, str]]()
    for name in names:
        path = folder / f"{name}.md"
        if path.exists():
            data = Data.read(name, folder)
            title = path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
            lines.append(f"| [{title}]({name}.md) | {headline_of(name, data)} |")
            shown += [(verdict, f"[{name}]({name}.md)") for verdict in verdicts_of(name, data)]
    shown += [(verdict, command) for verdict, command in WITHOUT_PAGE]
    lines += [_TABLE, "| shown in | page or command | the source | here | verdict |", "|---|---|---|---|---|"]
    for verdict, where in sorted(shown, key=lambda pair: _place(pair[0].figure)):
        judged = verdict.verdict + (f": {verdict.reason}" if verdict.reason else "")
        lines.append(f"| {verdict.figure} | {where} | {verdict.paper} | {verdict.ours} | {judged} |")
    text = "\n".join(lines) + "\n"
    return text.replace("](../", "](") if folder.parent.name != "docs" else text


def write_index(names: Sequence[str], folder: Path) -> None:
    (folder / "README.md").write_text(index_text(names, folder), encoding="utf-8")


def _place(figure: str) -> tuple[str, int, tuple[float, ...], str]:
    """By source, then what it calls its figure, then its number.

    >>> sorted(["A fig. 10", "A fig. 9", "A table 1", "E fig. 3.10", "E fig. 3.9"], key=_place)
    ['A table 1', 'A fig. 9', 'A fig. 10', 'E fig. 3.9', 'E fig. 3.10']
    """
    source, kind, number = figure.split(" ", 2)
    first = number.split(",")[0].split("–")[0].split(" ")[0]
    return source, _KINDS.index(kind), tuple(float(part) for part in first.split(".")), figure
