"""A plan as a tree of facts, of which text, JSON and the titles of the picture are renderings.

    Set 1: partials of trades             the name of a node
      where         volume > 100          its facts: a label and a text; JSON has the value under the key
      cost          188 µs/s = …
                                          its children, which JSON lists under their own key
      Tree 1.0: 6 queries
        slices        0.122 edges/s

A fact is computed once for all renderings, so that they cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windloom.explain.words import SHOW_ALL, labelled

#: More lines, or more nodes of one kind, are cut short; of nodes, only a few are shown then.
_MANY, _FEW = 12, 6

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about a part of a plan: JSON has `value` under `key`, and a text has `text` after a label.

    A fact without a key is not in JSON, and one without a text only there. The label, which is the key if no other is
    given, stands before the first line of the text. A fact that `is_late` follows the others in a text, wherever JSON
    has it.
    """

    key: str
    value: Any = None
    text: str | Sequence[str] = ()
    label: str | None = None
    is_late: bool = False

    @property
    def lines(self) -> Sequence[str]:
        return (self.text,) if isinstance(self.text, str) else self.text

    @property
    def first_line(self) -> str:
        return next(iter(self.lines), "")

    def labelled_lines(self) -> Iterator[tuple[str, str]]:
        label = self.key if self.label is None else self.label
        for line in self.lines:
            yield label, line
            label = ""


def words_only(label: str, *texts: str, is_late: bool = False) -> Fact:
    """Return a fact that is not in JSON."""
    return Fact("", None, texts, label, is_late)


def json_only(**values: Any) -> list[Fact]:
    """Return facts that no text has."""
    return [Fact(key, value) for key, value in values.items()]


@dataclass(frozen=True, slots=True)
class ExplainNode:
    """A part of a plan: what it is, the facts about it, the reasons why it is not otherwise, and its own parts.

    `children` are listed by the key that JSON has for them; those under a key that begins with `_` are not in JSON.
    A short text shows only the children in `brief`, if it is given, and the line `rest` in place of the others.
    """

    name: str
    facts: Sequence[Fact] = ()
    reasons: Sequence[Fact] = ()
    children: Mapping[str, Sequence[ExplainNode]] = field(default_factory=dict)
    brief: Sequence[ExplainNode] | None = None
    rest: str = ""

    def __getitem__(self, key: str) -> Fact:
        return next(fact for fact in (*self.facts, *self.reasons) if fact.key == key)

    @property
    def shown(self) -> Sequence[ExplainNode]:
        """The children of a short text."""
        return [child for group in self.children.values() for child in group] if self.brief is None else self.brief

    @property
    def in_text_order(self) -> list[Fact]:
        """The facts and reasons as a text has them."""
        return [*sorted(self.facts, key=lambda fact: fact.is_late), *self.reasons]


def node_json(node: ExplainNode) -> Json:
    """Return the facts and the children of a node under their keys."""
    values = {fact.key: fact.value for fact in (*node.facts, *node.reasons) if fact.key}
    return values | {
        key: [node_json(child) for child in children]
        for key, children in node.children.items()
        if not key.startswith("_")
    }


def node_lines(node: ExplainNode, indent: int = 0) -> Iterator[str]:
    """Yield a node's name and facts as lines of text, without its children."""
    yield " " * indent + node.name
    yield from facts_lines(node.in_text_order, indent + 2)


def facts_lines(facts: Iterable[Fact], indent: int = 2) -> Iterator[str]:
    for fact in facts:
        for label, text in fact.labelled_lines():
            yield from labelled(label, text, indent)


def node_title(node: ExplainNode) -> str:
    """Return what the picture shows when a reader points at a node."""
    facts = (pair for fact in node.in_text_order for pair in fact.labelled_lines())
    return "\n".join([node.name, *(f"{label}: {text}" if label else text for label, text in facts)])


def cut_short(lines: Sequence[str], everything: bool, more: str = "more", at_most: int = _MANY) -> list[str]:
    """Return the first few lines, and one that counts the others."""
    shown = lines if everything else lines[:at_most]
    rest = len(lines) - len(shown)
    return [*shown, f"… and {rest:,} {more}"] if rest else list(shown)


def sections_lines(nodes: Sequence[ExplainNode], everything: bool, more: tuple[str, str] = ("", "")) -> Iterator[str]:
    """Yield every node after an empty line; of many, only the first few, and a line that counts the others."""
    shown = nodes if everything or len(nodes) <= _MANY else nodes[:_FEW]
    for node in shown:
        yield ""
        yield from node_lines(node)
    if rest := len(nodes) - len(shown):
        yield ""
        yield f"… and {rest:,} {more[rest > 1]} {SHOW_ALL}"
