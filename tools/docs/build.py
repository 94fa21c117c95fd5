"""`make docs`: the documentation as a site that can be searched, in build/docs; nothing of it is loaded from elsewhere.

Sphinx is given a copy of the pages, so that the project holds no file that only Sphinx needs beside them. Added are the
contents, the reference of the Python API (from docstrings), of the commands (from their help) and of HTTP requests.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
#: Pages at the root of the project, and folders that pages link to.
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
_FOLDERS = ("docs", "examples")
#: The pages of the contents that come first; the others follow by name.
_CONTENTS = {
    "Using it": (
        *("tutorial", "language", "emit", "windows", "semantics", "joins", "relations", "rows"),
        *("streaming", "scheduling", "sinks", "service"),
    ),
    "How it works": (
        *("how_it_works", "architecture", "explain", "sharing", "cost", "adapting", "intake", "kernels", "glossary"),
    ),
}


def main(target: Path = ROOT / "build" / "docs") -> int:
    source = target.with_name(target.name + "-source")
    stage(source)
    shutil.rmtree(target, ignore_errors=True)
    from sphinx.cmd.build import build_main

    failed = build_main(["-b", "html", "-c", str(HERE), "-W", "--keep-going", "-q", str(source), str(target)])
    if failed:
        return failed
    shutil.copy(target / "README.html", target / "index.html")
    print(f"the documentation is in {target / 'index.html'}")
    return 0


def stage(source: Path) -> None:
    """A folder with everything that Sphinx reads."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in _PAGES:
        shutil.copy(ROOT / name, source / name)
    for folder in _FOLDERS:
        shutil.copytree(ROOT / folder, source / folder)
    shutil.copytree(HERE / "api", source / "api")
    (source / "api" / "commands.md").write_text("\n".join(command_lines()), encoding="utf-8")
    (source / "api" / "http.md").write_text("\n".join(http_lines()), encoding="utf-8")
    readme = source / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8") + "\n".join(contents_lines(source)), encoding="utf-8")


def contents_lines(source: Path) -> Iterator[str]:
    """What stands at the side of every page."""
    pages = sorted(page.stem for page in (source / "docs").glob("*.md"))
    named = {name for names in _CONTENTS.values() for name in names}
    parts = {title: [f"docs/{name}" for name in names if name in pages] for title, names in _CONTENTS.items()}
    parts["How it works"] += [f"docs/{name}" for name in pages if name not in named]
    parts["Reference"] = ["api/python", "api/commands", "api/http"]
    for title, folder in (("Experiments", "experiments"), ("Decisions", "decisions")):
        found = sorted(page.stem for page in (source / "docs" / folder).glob("*.md"))
        parts[title] = [f"docs/{folder}/{name}" for name in sorted(found, key=lambda name: name != "README")]
    parts["Project"] = ["CONTRIBUTING", "CHANGELOG"]
    for title, names in parts.items():
        yield from ("", "```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```", "")


def command_lines() -> Iterator[str]:
    """The help of every command."""
    import click

    from windloom.cli.main import cli

    yield from ("# Commands", "", "What `windloom COMMAND --help` says.", "")
    for name, command in sorted(cli.commands.items()):
        context = click.Context(command, info_name=f"windloom {name}", max_content_width=100, terminal_width=100)
        yield from (f"## windloom {name}", "", "```text", command.get_help(context), "```", "")


def http_lines() -> Iterator[str]:
    """Requests and models of the service, from what it says of itself."""
    from windloom.service.app import described

    found = described()
    yield from ("# HTTP", "", "What [the service](../docs/service.md) answers; a running one shows it at `/api`.", "")
    for path, methods in found["paths"].items():
        for method, request in methods.items():
            yield from (f"## {method.upper()} {path}", "", request.get("description", request["summary"]), "")
            yield from _parameters(request)
    yield from ("## Models", "")
    for name, schema in found["components"]["schemas"].items():
        if "properties" in schema and not re.match("HTTPValidation|Validation", name):
            yield from (f"### {name}", "", schema.get("description", ""), "", "| field | type |", "|---|---|")
            yield from (f"| `{field}` | {_type(property_)} |" for field, property_ in schema["properties"].items())
            yield ""


def _parameters(request: dict[str, Any]) -> Iterator[str]:
    rows = [
        (parameter["name"], parameter["in"], _type(parameter["schema"])) for parameter in request.get("parameters", ())
    ]
    body = request.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    rows += [] if body is None else [("body", "JSON", _type(body))]
    if rows:
        yield from ("| parameter | in | type |", "|---|---|---|")
        yield from (f"| `{name}` | {place} | {kind} |" for name, place, kind in rows)
        yield ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
