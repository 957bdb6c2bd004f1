"""docs/performance.md: each table stands between two marks, and a new measurement takes its place."""

from __future__ import annotations

import re
from pathlib import Path

from ..places import REPOSITORY

PAGE = REPOSITORY / "docs" / "performance.md"


def rewrite(name: str, text: str, page: Path = PAGE) -> None:
    """Put the text between the marks of that name. Raises LookupError where the page has none."""
    begin, end = f"<!-- measured: {name} -->", "<!-- end -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    old = page.read_text(encoding="utf-8")
    new, count = pattern.subn(lambda _: f"{begin}\n\n{text}\n\n{end}", old)
    if count != 1:
        raise LookupError(f"{page.name} has {count} sections {begin}")
    page.write_text(new, encoding="utf-8")
