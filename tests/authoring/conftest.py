"""Internal: run the claims of `course verify` in this process, with a box that is already open."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from manyheads.authoring.release_exercises import write_release
from manyheads.authoring.verify import plugin
from manyheads.authoring.verify.run_claims import HERE, Line, run_claims
from manyheads.course import load_course
from manyheads.judge.run_hidden_checks import Catalogue

LinesOf = Callable[..., list[Line]]


def release_course(folder: Path) -> list[str]:
    """Release the course in a folder, and return the paths that were written, relative to it."""
    course = load_course(folder)
    catalogue = Catalogue(course)
    return [str(path.relative_to(folder)) for path in write_release(course, catalogue)]


@pytest.fixture
def claim_lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LinesOf:
    """Return a function that checks claims about the course in a folder.

    Its parameters are the folder; `chosen`, an expression for pytest's `-k`; `pairs`, the number
    of pairs of mutants, None for all; and `named`, the ids of exercises, empty for all.
    """
    monkeypatch.setattr(plugin, "open_box", lambda *_: nullcontext(request.getfixturevalue("box")))

    def lines(
        folder: Path, chosen: str = "", pairs: int | None = 0, named: Sequence[str] = ()
    ) -> list[Line]:
        exercises = [e for e in load_course(folder).exercises if not named or e.id in named]
        arguments = [
            f"--course={folder}",
            "--seeds=2",
            f"--pairs={pairs}",
            "-n0",
            "-k",
            chosen,
            str(HERE),
        ]
        return run_claims(
            [*arguments, *(f"--exercise={e.id}" for e in exercises)], lambda line: None
        )

    return lines
