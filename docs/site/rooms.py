"""Draw the rooms of the engine: what each is for, how large it is, and which rooms it imports."""

from __future__ import annotations

import ast
from html import escape
from importlib.util import resolve_name
from pathlib import Path

import manyheads

ENGINE = Path(manyheads.__file__).parent
ORDER = (
    "cli",
    "platforms",
    "authoring",
    "report",
    "student",
    "judge",
    "diagnosis",
    "checks",
    "submission",
    "course",
    "box",
)
_WIDE, _HIGH, _GAP = 760, 44, 14


def rooms_picture() -> str:
    """Return the picture as SVG: a room imports those below it, by the lines at its right."""
    top = {room: 10 + row * (_HIGH + _GAP) for row, room in enumerate(ORDER)}
    elements = []
    for row, room in enumerate(ORDER):
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules_of(room))
        y, words = top[room], door_of(room)
        elements.append(
            f'<rect x="10" y="{y}" width="{_WIDE - 220}" height="{_HIGH}" rx="6" class="room"/>'
            f'<text x="22" y="{y + 18}" class="name">{room}</text>'
            f'<text x="{_WIDE - 222}" y="{y + 18}" class="size">{lines:,} lines</text>'
            f'<text x="22" y="{y + 35}" class="door">{escape(words)}</text>'
        )
        for imported in sorted(imported_by(room) & set(ORDER[row + 1 :]), key=ORDER.index):
            start, end = y + _HIGH / 2, top[imported] + _HIGH / 2
            bend = _WIDE - 205 + 15 * (ORDER.index(imported) - row)
            elements.append(
                f'<path d="M{_WIDE - 210},{start} C{bend},{start} {bend},{end} '
                f'{_WIDE - 210},{end}"/>'
            )
    high = 10 + len(ORDER) * (_HIGH + _GAP)
    style = (
        ".room{fill:#f4f4f6;stroke:#777}.name{font:bold 14px sans-serif}.door{font:11px "
        "sans-serif;fill:#333}.size{font:11px "
        "sans-serif;fill:#555;text-anchor:end}path{fill:none;stroke:#888;stroke-width:1}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" width="{_WIDE}" '
        f'height="{high}"><style>{style}</style><rect width="100%" height="100%" '
        f'fill="white"/>{"".join(elements)}</svg>\n'
    )


def modules_of(room: str) -> list[Path]:
    """Return the modules of a room, without the templates of files that it writes."""
    return [
        path for path in sorted((ENGINE / room).rglob("*.py")) if "templates" not in path.parts[:-1]
    ]


def door_of(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    text = (
        ast.get_docstring(ast.parse((ENGINE / room / "__init__.py").read_text(encoding="utf-8")))
        or ""
    )
    return (
        " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".").replace("`", "")
    )


def imported_by(room: str) -> set[str]:
    """Return the other rooms from which a module of this one imports something."""
    names = {name for path in modules_of(room) for name in imports_of(path)}
    return {name.split(".")[1] for name in names if name.startswith(f"{ENGINE.name}.")} - {room}


def imports_of(path: Path) -> set[str]:
    """Return the names of what a module imports, also within a function: modules, and what may be
    modules.
    """
    module_parts = path.relative_to(ENGINE.parent).with_suffix("").parts
    package = ".".join(module_parts[:-1])
    imports = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name(
                "." * node.level + (node.module or ""), package if node.level else None
            )
            imports |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return imports
