"""Split the page of all misconceptions, which `course release` writes as one: a page for each exercise, and one that leads to them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ID = re.compile(r"^\| \[`(\w+)`\]", re.MULTILINE)
_EXERCISE = re.compile(r"\[(\w+)\]\(#\1\)")


def misconception_pages(text: str) -> dict[str, str]:
    """Return the pages, by name. Of an entry each has what is said of its own exercise."""
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    *exercises, changes = parts
    title, *told = re.split(r"^### ", changes, flags=re.MULTILINE)
    entries = dict(each.split("\n", 1) for each in told)
    tables = dict(each.split("\n", 1) for each in exercises)
    pages, listed = {}, {}
    for exercise, table in tables.items():
        listed[exercise] = set(_ID.findall(table))
    for exercise, table in tables.items():
        own = {name: _said(entries[name], exercise) for name in dict.fromkeys(_ID.findall(table)) if name in entries}
        rest = "".join(f"### {name}\n{_linked(words, name, listed)}" for name, words in own.items())
        jumps = "[The bank](misconceptions.md) · [its checks](#its-checks) · [what each one changes](#what-each-one-changes)"
        table = table.replace("\n| check |", "\n## Its checks\n\n| check |", 1)
        pages[_page(exercise)] = f"# {exercise}\n\n{jumps}\n{table}\n## {title.strip()}\n\n{rest}"
    everywhere = [name for name, words in entries.items() if not any(name in ids for ids in listed.values())]
    rows = "".join(
        f"| `{name}` | {_links(name, (exercise for exercise, ids in listed.items() if name in ids))} |\n"
        for name in sorted(set(entries) - set(everywhere))
    )
    pages["misconceptions"] = (
        _EXERCISE.sub(lambda found: f"[{found[1]}]({_page(found[1])}.md)", head)
        + "## By id\n\n| id | what it changes, in |\n|---|---|\n"
        + rows
        + "\n## In any exercise\n\n"
        + "".join(f"### {name}\n{entries[name]}" for name in everywhere)
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(map(_page, tables))
        + "\n```\n"
    )
    return pages


def _page(exercise: str) -> str:
    return f"misconceptions-{exercise}"


def _links(name: str, exercises: Iterable[str]) -> str:
    return ", ".join(f"[{exercise}]({_page(exercise)}.md#{name})" for exercise in exercises)


def _said(entry: str, exercise: str) -> str:
    """Return the paragraphs of an entry that are about this exercise; all of them if none names an exercise."""
    before, *about = re.split(r"^(?=\*\*)", entry, flags=re.MULTILINE)
    own = [each for each in about if f"(#{exercise})" in each]
    return before + "".join(own or about)


def _linked(words: str, name: str, listed: dict[str, set[str]]) -> str:
    """Return the paragraphs with each other exercise's name leading to the same misconception there."""

    def link(found: re.Match[str]) -> str:
        return _links(name, [found[1]]) if name in listed.get(found[1], ()) else found[1]

    return _EXERCISE.sub(link, words)
