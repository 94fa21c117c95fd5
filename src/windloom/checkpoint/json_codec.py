"""Values as JSON and back, by the types of their fields: what a checkpoint holds beside cells, tuples and tables.

| value                         | JSON                                                            |
|-------------------------------|-----------------------------------------------------------------|
| a dataclass                   | an object with its fields; a list of them if it is in `_LISTED` |
| a mapping of names            | an object                                                       |
| any other mapping             | a list of pairs                                                 |
| a tuple; a frozenset          | a list; a sorted list                                           |

So the names and the order of fields are part of the format of files. A new field needs a default, with which older
files are read; a class in `_LISTED` gets it at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from windloom.model.stream import Version
from windloom.plan.costs import Choices, TreeChoice
from windloom.state.tuple_store import Coverage, TupleFile
from windloom.statistics.observations import KeyHistogram, LinkEstimate, LinkRound
from windloom.statistics.set_statistics import Mean, Ongoing, Origin, SetIdentity, SetRound

if TYPE_CHECKING:
    from windloom.optimizer.adapt.replan import AdaptCounts
    from windloom.optimizer.adapt.round_cost import MeasuredRound


def write_adapted(counts: AdaptCounts, measured: MeasuredRound | None) -> dict[str, Any]:
    """Return what adapting has counted and learned, for the commit of a round: the next start continues with it.

    `measured` is the last round that was learned from, which may be an earlier one.
    """
    verdicts = counts.verdicts
    learned = None
    if measured is not None:
        learned = {
            "model": asdict(measured.predicted),
            "seconds": dict(measured.seconds),
            "intake": dict(measured.intake),
            "state_bytes": measured.state_bytes,
        }
    return {
        "moves": counts.moves,
        "switches": counts.switches,
        "undecided": 0,  # this and previews were counted by earlier versions, which read them
        "previews": 0,
        "verdicts": [verdicts.judged, verdicts.hits, verdicts.same, verdicts.regret],
        "measured": learned,
    }


def read_adapted(commits: Sequence[Mapping[str, Any]]) -> tuple[AdaptCounts, list[MeasuredRound]]:
    """Return what was counted, and what rounds took, newest first; `commits` are those of rounds, oldest first."""
    # Streams that follow the data have imported these; nothing else needs them.
    from windloom.optimizer.adapt.replan import AdaptCounts, Verdicts
    from windloom.optimizer.adapt.round_cost import MeasuredRound, RoundCost

    counted, measured = AdaptCounts(), list[MeasuredRound]()
    for commit in commits:
        about = commit.get("adapted")
        if about is None:
            continue
        verdicts = Verdicts(*about["verdicts"])
        counted = AdaptCounts(about["moves"], about["switches"], verdicts)
        learned = about["measured"]
        if learned is not None:
            intake = tuple(sorted(learned["intake"].items()))
            model = RoundCost(**learned["model"])
            measured.append(MeasuredRound(model, learned["seconds"], intake, learned["state_bytes"]))
    return counted, measured[::-1]


Value = TypeVar("Value")

_PLAIN = {bool, float, int, str}
_LISTED = {Coverage, KeyHistogram, LinkEstimate, LinkRound, Mean, SetIdentity, SetRound, TupleFile, Version}


def to_json(kind: Any, value: Any) -> Any:
    """Return a value of this type as values that `json.dumps` takes."""
    if value is None or kind in _PLAIN:
        return value
    kind, args = _parts(kind)
    if kind in _OWN:
        return _OWN[kind][0](value)
    if (fields := _fields(kind)) is not None:
        written = {name: to_json(of, getattr(value, name)) for name, of in fields.items()}
        return list(written.values()) if kind in _LISTED else written
    if kind is Mapping and args[0] is str:
        return {name: to_json(args[1], each) for name, each in value.items()}
    if kind is Mapping:
        return [[to_json(args[0], key), to_json(args[1], each)] for key, each in value.items()]
    if kind is tuple:
        return [to_json(of, each) for of, each in zip(args, value, strict=False)]
    return sorted(value) if kind is frozenset else value


def from_json(kind: type[Value], about: Any) -> Value:
    """Return the value that `to_json` has turned into this JSON."""
    value: Value = _read(kind, about)
    return value


def _read(kind: Any, about: Any) -> Any:
    if about is None or kind in _PLAIN:
        return about
    kind, args = _parts(kind)
    if kind in _OWN:
        return _OWN[kind][1](about)
    if (fields := _fields(kind)) is not None:
        named = dict(zip(fields, about, strict=False)) if kind in _LISTED else about
        return kind(**{name: _read(fields[name], each) for name, each in named.items()})
    if kind is Mapping and args[0] is str:
        return {name: _read(args[1], each) for name, each in about.items()}
    if kind is Mapping:
        return {_read(args[0], key): _read(args[1], each) for key, each in about}
    if kind is tuple:
        return tuple(_read(of, each) for of, each in zip(args, about, strict=False))
    return frozenset(about) if kind is frozenset else about


@cache
def _parts(kind: Any) -> tuple[Any, Any]:
    """Return a type without its parameters, and these, repeated for `X, ...`; of `X | None`, those of X."""
    if get_origin(kind) is UnionType:
        [kind] = (each for each in get_args(kind) if each is not NoneType)
    args = get_args(kind)
    return get_origin(kind) or kind, repeat(args[0]) if args[1:] == (Ellipsis,) else args


@cache
def _fields(kind: Any) -> dict[str, Any] | None:
    """Return the types of the fields of a dataclass, in their order; None for other types."""
    return get_type_hints(kind) if is_dataclass(kind) else None


def _write_choices(choices: Choices) -> dict[str, Any]:
    options: dict[str, dict[str, str]] = {}
    for switch, about, option in choices.options:
        options.setdefault(switch, {})[about] = option
    trees = [{"queries": list(tree.queries), "techniques": dict(tree.techniques)} for tree in choices.trees]
    return {"trees": trees, "options": options}


def _read_choices(about: Mapping[str, Any]) -> Choices:
    trees = (TreeChoice(tuple(tree["queries"]), tuple(sorted(tree["techniques"].items()))) for tree in about["trees"])
    return Choices.of(trees, about["options"])


#: Classes with a layout of their own: how they are written and read.
_OWN: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    Choices: (_write_choices, _read_choices),
    Ongoing: (
        lambda ongoing: [ongoing.round_seconds, ongoing.origin.source, ongoing.history_seconds],
        lambda about: Ongoing(about[0], Origin(about[1]), about[2]),
    ),
}
