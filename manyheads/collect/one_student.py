"""What one student handed in, as a folder or an archive, laid out for grading: of whom it is, is known."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path, PurePath

from ..course import Course
from ..submission import ENDINGS, shown
from .collect import Collected
from .exercise import Exercises, NotPlaced, Reading, place_of
from .found import Found, own_name
from .lay_out import Candidate, State, digest_of, lay_out
from .memory import Memory, Origin
from .read import Reader


def collect_one(course: Course, handed_in: Path, out: Path, student: str) -> Collected:
    """Lay out every script and notebook in a folder, however deep, also in archives. Raises CourseFault.

    A file that has the exercise's own name, in its own folder at that, comes before others of the same exercise.
    """
    reader, done, exercises, reading = Reader(), Collected(), Exercises(course), Reading()
    candidates: dict[str, list[Candidate]] = defaultdict(list)
    found = reader.read(handed_in)
    done.not_taken += [f"{_path(each)} {each.closed}" for each in found if each.closed]
    found = [each for each in found if not each.closed]
    for file in (each for each in found if _ending(each) in ENDINGS):
        try:
            candidate = _candidate(file, exercises, student, reading)
        except NotPlaced as reason:
            done.not_taken.append(f"{_path(file)} {reason}")
        else:
            candidates[candidate.stem].append(candidate)
    done.not_taken += [f"{'/'.join(map(shown, each.path))} {each.reason}" for each in reader.refused]
    memory = Memory()
    for each in sorted(candidates):
        done.laid += lay_out(candidates[each], out, memory)
    done.not_taken += [
        f"{each.origin.path} is not graded: another file is of the same exercise"
        for each in done.laid
        if each.state is State.OLDER
    ]
    if others := sum(_ending(each) not in ENDINGS for each in found):
        done.said.append(f"{others} other {'file is' if others == 1 else 'files are'} no script and no notebook")
    return done


def _candidate(file: Found, exercises: Exercises, student: str, reading: Reading) -> Candidate:
    """Raises NotPlaced."""
    ending, content = _ending(file), file.content or b""
    assignment, stem = place_of(exercises.of(own_name(file.name), content, reading))
    own = file.name == f"{stem}{ending}"
    in_place = own and file.path[-2:-1] == (assignment.id,)
    origin = Origin(
        platform="",
        order=own + in_place,
        modified=file.modified,
        digest=digest_of(content),
        download="",
        path=_path(file),
    )
    return Candidate(student, assignment, stem, ending, content, origin)


def _ending(file: Found) -> str:
    return PurePath(own_name(file.name)).suffix.lower()


def _path(file: Found) -> str:
    return "/".join(map(shown, file.path))
