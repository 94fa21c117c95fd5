"""The pages of the docs as Markdown tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt  # comes with rich
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DECISIONS = sorted(ROOT.glob("docs/decisions/*.md"))


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    """Blocks and, below each, what stands in its lines."""
    blocks = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    return tuple(each for block in blocks for each in (block, *(block.children or ())))


def fences(page: Path, language: str) -> list[str]:
    return [token.content for token in tokens(page) if token.type == "fence" and token.info == language]


def code_spans(page: Path) -> Iterator[str]:
    yield from (token.content for token in tokens(page) if token.type == "code_inline")


def links(page: Path) -> Iterator[str]:
    for token in tokens(page):
        target = token.attrGet("href") or token.attrGet("src")
        if target and not re.match(r"[a-z]+:", str(target)):
            yield str(target)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading, text in zip(tokens(page), tokens(page)[1:], strict=False):
        if heading.type == "heading_open":
            found.add(re.sub(r"[^\w\- ]", "", text.content.lower()).strip().replace(" ", "-"))
    return found
