"""Add decisions to overrides.yaml. What people wrote there stays as it is, but for rows that say something else now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..errors import CourseFault
from ..whole import write_whole
from .overrides import Override, Row, read_overrides

HEADER = "# What a human decides: docs/decisions.md. It names people: keep it out of what students get.\n"


@dataclass
class Added:
    """What became of the decisions that were to be added."""

    new: int = 0
    changed: int = 0
    same: int = 0


def add_overrides(path: Path, overrides: Sequence[Override]) -> Added:
    """Add these rows at the end; rows about the same that decide otherwise go. Written whole or not at all.

    Raises CourseFault.
    """
    rows, done = read_overrides(path), Added()
    known = {_key(row.override): row for row in rows}
    gone: list[Row] = []
    new: list[Override] = []
    for each in overrides:
        before = known.get(_key(each))
        if before is not None and _decides(before.override) == _decides(each):
            done.same += 1
            continue
        if before is not None:
            gone.append(before)
            done.changed += 1
        else:
            done.new += 1
        new.append(each)
    if new:
        _write(path, gone, new)
    return done


def _write(path: Path, gone: Sequence[Row], new: Sequence[Override]) -> None:
    left_out = {line for row in gone for line in range(row.lines[0], row.lines[1] + 1)}
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [HEADER.rstrip()]
        kept = "".join(f"{line}\n" for i, line in enumerate(lines, 1) if i not in left_out)
        text = kept + "".join(_text(each) for each in new)
        yaml.safe_load(text)
        write_whole(path, text.encode())
    except (OSError, yaml.YAMLError):
        said = f"{path} cannot be added to. Next: write it as a list, a row a decision, then course overrides"
        raise CourseFault(said) from None


def _text(override: Override) -> str:
    row = override.model_dump(exclude_none=True, exclude_defaults=True)
    if checks := row.get("check"):
        row["check"] = checks[0] if len(checks) == 1 else list(checks)
    return yaml.safe_dump([row], sort_keys=False, allow_unicode=True, width=1_000)


def _key(override: Override) -> tuple[object, ...]:
    """What a row is about. A comment by nbgrader replaces none that a person wrote here."""
    by = override.by if override.kind == "comment" else ""
    return override.kind, override.student, override.exercise or override.assignment, frozenset(override.check), by


def _decides(override: Override) -> tuple[object, ...]:
    return override.score, override.extra_credit, override.comment if override.kind == "comment" else ""
