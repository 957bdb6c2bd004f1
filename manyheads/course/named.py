"""Which exercise is meant: its id, its file, or its number, with or without a zero before it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from .model import Exercise


def exercises_called(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """The exercises of this name; several where a number stands in several assignments."""
    asked = _plain(Path(name).stem)
    return [each for each in exercises if asked in (each.id, _plain(each.stem), _number(each))]


def unknown(exercises: Sequence[Exercise], name: str) -> str:
    """One sentence on a name that no exercise has, with what may be meant."""
    near = get_close_matches(_plain(Path(name).stem), [n for e in exercises for n in (e.id, _plain(e.stem))], 1)
    meant = next((e.id for e in exercises if near and near[0] in (e.id, _plain(e.stem))), "")
    if meant:
        return f"there is no exercise {name!r}; did you mean {meant}?"
    return f"there is no exercise {name!r}; there are: {', '.join(each.id for each in exercises)}."


def _number(exercise: Exercise) -> str:
    return _plain(exercise.stem.split("_")[0])


def _plain(name: str) -> str:
    """Without zeros before a number: 1_scores for 01_scores."""
    return name.lstrip("0") or name
