"""Write the pages: one for the class and one for each student. Each file is written whole or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...judge.changed_points import ChangedPoints
from ...result import Result
from ...submission import NotGraded
from ...submission.roster import folded
from ...whole import write_whole
from ..came_back import came_back
from ..class_rows import NOBODY, ClassList
from ..labels import IDS, Labels, file_stems
from ..overview import overviews
from ..writing import told_where
from .environment import environment, is_ours, picture

if TYPE_CHECKING:
    from ...student.bands import Band
    from ...student.wrong_pictures import Key

CLASS, STUDENTS = "index.html", "students"
_NOTHING: Mapping[Key, Sequence[Band]] = MappingProxyType({})


def write_pages(
    results: Sequence[Result],
    left_out: Sequence[str],
    folder: Path,
    drawn: Mapping[Key, Sequence[Band]] = _NOTHING,
    not_graded: Sequence[NotGraded] = (),
    absent: Mapping[str, Sequence[str]] = MappingProxyType({}),
    points_changed: Sequence[ChangedPoints] = (),
    labels: Labels = IDS,
    members: ClassList = NOBODY,
) -> Path:
    """Write the class page and a page for each student. Returns the path of the class page. Raises CourseFault.

    left_out: a sentence for each file that could not be read; the class page shows them.
    not_graded, absent: what was handed in and not graded, and who handed in nothing, by assignment; for the class page.
    points_changed: whose points the last run changed; for the class page.
    members: whose names and sections the class page shows.
    drawn: the pictures of attempts for students' pages, by student, assignment and exercise.
    """
    pages = environment(labels)
    stem_of = file_stems({result.student for result in results})

    def page_of(student: str) -> str:
        return f"{stem_of(student)}.html"

    pages.globals["page_of"] = page_of
    pages.globals["person_of"] = members.row_of
    pages.globals["sections"] = sorted({section for r in results if (section := members.row_of(r.student).section)})
    pages.globals["pictures_of"] = lambda *key: [picture(band) for band in drawn.get(key, ())]
    of_student: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        of_student[result.student].append(result)
    with told_where(folder, "course report --html ANOTHER_FOLDER"):
        one = pages.get_template("student.html.j2")
        for student, own in of_student.items():
            page = one.render(student=student, results=_in_order(own, labels))
            write_whole(folder / STUDENTS / page_of(student), page.encode())
        text = pages.get_template("class.html.j2").render(
            parts=overviews(results, labels),
            again=came_back(results, labels),
            left_out=left_out,
            not_graded=not_graded,
            absent=absent,
            points_changed=points_changed,
        )
        write_whole(folder / CLASS, text.encode())
        _remove_others(folder / STUDENTS, {page_of(student) for student in of_student})
    return folder / CLASS


def student_page(student: str, results: Sequence[Result], labels: Labels = IDS) -> str:
    """Return a student's page by itself, without pictures."""
    pages = environment(labels)
    pages.globals["pictures_of"] = lambda *key: []
    return pages.get_template("student.html.j2").render(student=student, results=_in_order(results, labels))


def _in_order(results: Sequence[Result], labels: Labels) -> list[Result]:
    return [result for _, own in labels.by_assignment(results) for result in own]


def pages_folder(results: Path, students: Collection[str]) -> Path:
    """Return where the pages go within a folder of results: where no student's results are, whatever students are called."""
    taken, name = {folded(student) for student in students}, "report"
    while name in taken:
        name += "-pages"
    return results / name


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Remove pages of other students, if an earlier report wrote them."""
    for path in folder.glob("*.html"):
        if path.name not in kept and path.is_file() and not path.is_symlink() and is_ours(path):
            path.unlink()
