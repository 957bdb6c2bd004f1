"""Make the page of all commands from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from manyheads.cli.app import app


def commands_page() -> str:
    """Return the page: each command with its usage, its help, its arguments and its options."""
    main: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "Each command has a `--help` of its own, with the same words.", ""]
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in main.commands.items():
        panels.setdefault(command.rich_help_panel or "Others", []).append(
            (f"course {name}", command)
        )
    for panel, commands in panels.items():
        lines += [f"## {panel}", ""]
        for name, command in commands:
            lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        yield from (f"### {name}", "", _help(command), "")
        for subname, inner in command.commands.items():
            yield from _command(f"{name} {subname}", inner)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
    yield from (f"### {name}", "", f"```text\n{usage}\n```", "", _help(command), "")
    records = [
        parameter.get_help_record(context)
        for parameter in command.params
        if parameter.name != "help"
    ]
    rows = [(names.strip(), words) for names, words in filter(None, records)]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| `{_cell(names)}` | {_cell(words)} |" for names, words in rows)
        yield ""


def _help(command: Any) -> str:
    return (command.help or "").replace("\b", "").strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
