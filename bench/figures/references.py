"""The course's own references, which compute the numbers of the figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from manyheads.checks.local import namespace_of
from manyheads.course import Course, Exercise, load_course

from ..places import REPOSITORY


@cache
def course() -> Course:
    """This repository's course."""
    return load_course(REPOSITORY)


def exercise(id_: str) -> Exercise:
    """An exercise by its id."""
    return next(each for each in course().exercises if each.id == id_)


def reference(id_: str, name: str) -> Callable[..., Any]:
    """A function or class of an exercise's solution."""
    return cast("Callable[..., Any]", namespace_of(exercise(id_).solution)[name])
