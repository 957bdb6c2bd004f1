"""Make the pictures for `course report`: run wrong attempts again, in the box, on public inputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ..box.names import Level
from ..course import Course, CourseError
from ..result import Result
from ..submission import find_submissions
from .class_members import pseudonyms_in
from .progress import progress

if TYPE_CHECKING:
    from ..tools.bands import Band
    from ..tools.pictures import Key


def draw_class(
    console: Console, course: Course, results: Sequence[Result], submitted: Path
) -> Mapping[Key, Sequence[Band]]:
    """The pictures of each attempt that has any. Raises CourseFault."""
    found = find_submissions(course, submitted)[0]
    if (pseudonyms := pseudonyms_in(course, results)) is not None:
        found = pseudonyms.hide(found)
    folders = {(s.student, s.assignment.id): s.folder for s in found}
    if not any((result.student, result.assignment) in folders for result in results):
        raise CourseError(
            f"{submitted} has no submission of these results. Next: course report --submitted FOLDER_GRADED"
        )
    from ..box.level import open_box
    from ..box.proof import prove
    from ..tools.pictures import Painter, drawable

    wanted, started = drawable(course, results, folders), time.monotonic()
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        prove(box, course)
        painter = Painter(course, box)
        pictures = {}
        with progress(console, len(wanted), 0, doing="drawing", what="attempts") as shown:
            for each in wanted:
                pictures[each.key] = painter.draw(each)
                shown.one_more(stopped=False)
    drawn = {key: bands for key, bands in pictures.items() if bands}
    seconds = time.monotonic() - started
    have = "attempt has" if len(wanted) == 1 else "attempts have"
    others = "; the others raise an error, or differ in nothing that can be drawn" if len(drawn) < len(wanted) else ""
    console.print(
        f"{len(drawn)} of {len(wanted)} wrong {have} pictures, drawn in {seconds:.1f} s{others}", soft_wrap=True
    )
    return drawn
