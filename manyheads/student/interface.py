"""Say which name, argument or return value differs, by what was seen; and read the other words of hints.yaml."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..result import Diagnosed, ExerciseResult
from ..submission.standing import INTERFACE


def which_of(named: Diagnosed, result: ExerciseResult) -> Diagnosed:
    """Return a misconception in the words of its kind, where what was seen in its function says more than its title."""
    row = _row(named, result)
    return named.model_copy(update={"title": row["title"], "hint": row["hints"][0]}) if row else named


def hints_to(named: Diagnosed, result: ExerciseResult) -> tuple[str, ...]:
    """Return the steps of the hint to that kind, none where there is none."""
    return tuple(_row(named, result).get("hints", ()))


def _row(named: Diagnosed, result: ExerciseResult) -> Any:
    if named.id != INTERFACE:
        return {}
    own = [f.evidence for f in result.functions if named.function and named.function in (f.name, f.waits_for)]
    seen = " ".join(own or [check.evidence for check in result.checks])
    return next((row for row in _texts()["interface"] if re.search(row["seen"], seen)), {})


def steps_to(what: str) -> tuple[str, ...]:
    """Return the steps of a hint to what has no name."""
    return tuple(_texts()["steps"][what])


@cache
def _texts() -> Any:
    path = Path(__file__).with_name("hints.yaml")
    return yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
