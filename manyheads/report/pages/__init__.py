"""Write results as self-contained HTML pages: one for the class and one for each student.

The pages load no other files. Each page is written completely or not at all. All inserted text is
escaped.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from ...files import os_error_as_fault, write_whole
from ...printable_text import visible
from ...result import Result
from ...submission import NotGraded
from ...submission.roster_and_times import fold_case
from .. import class_summary, report_content
from ..class_summary import ClassView
from ..report_content import file_stems

if TYPE_CHECKING:
    from jinja2 import Environment

    from ...student.pictures import Key, Picture

CLASS = "index.html"
STUDENTS = "students"  # the folder of the students' pages
WITHOUT_NAMES = "without-names.html"  # the class page to show in class
GENERATOR = "manyheads course report"
_HERE = Path(__file__).parent


def write_pages(
    view: ClassView,
    folder: Path,
    drawn: Mapping[Key, Sequence[Picture]] = {},
    left_out: Sequence[str] = (),
    *,
    not_graded: Sequence[NotGraded] = (),
    of_class: Collection[str] = (),
) -> Path:
    """Write the pages of the class and of each student, and return the path of the class page.

    The class has a second page without names.

    Pages in `folder` that an earlier report wrote for other students are deleted.

    Args:
        view: The class.
        folder: The folder to write to.
        drawn: Pictures of attempts for students' pages, by student, assignment and exercise.
        left_out: A sentence for each file that could not be read.
        not_graded: Submitted files that are not graded.
        of_class: Also students without results in this report, such as those of another section:
            their pages stay.

    Raises:
        CourseFault: A page cannot be written.
    """
    students = [*dict.fromkeys([*view.by_student, *of_class])]
    pages = _environment(view, drawn)
    stem_of = file_stems(sorted(students))
    names = {student: f"{stem_of(student)}.html" for student in students}
    sections = {view.members.row_of(student).section for student in view.by_student} - {""}
    context = {
        "page_of": names.__getitem__,
        "sections": sorted(sections),
        "left_out": left_out,
        "not_graded": not_graded,
        "WITHOUT_NAMES": WITHOUT_NAMES,
    }
    with os_error_as_fault(folder, "course report --html ANOTHER_FOLDER"):
        for student, results in view.by_student.items():
            write_whole(folder / STUDENTS / names[student], _of_student(pages, results).encode())
        class_page = pages.get_template("class.html.j2").render(context, with_names=True)
        write_whole(folder / CLASS, class_page.encode())
        nameless = pages.get_template("without_names.html.j2").render(context, with_names=False)
        write_whole(folder / WITHOUT_NAMES, nameless.encode())
        for path in (folder / STUDENTS).glob("*.html"):
            if path.name not in names.values() and _is_page(path):
                path.unlink()
    return folder / CLASS


def _is_page(path: Path) -> bool:
    """Return whether an earlier report wrote this page, so that it may be deleted."""
    mark = f'<meta name="generator" content="{GENERATOR}">'.encode()
    return path.is_file() and not path.is_symlink() and mark in path.read_bytes()


def student_page(view: ClassView, results: Sequence[Result]) -> str:
    """Return the page of one student with these results, in the course's order.

    The page stands alone and has no pictures.
    """
    return _of_student(_environment(view), results)


def _of_student(pages: Environment, results: Sequence[Result]) -> str:
    return pages.get_template("student.html.j2").render(student=results[0].student, results=results)


def pictures_page(title: str, drawn: Sequence[Picture]) -> str:
    """Return the page of `course plot`, on which the pictures take the full width."""
    from markupsafe import Markup

    pages = _environment(ClassView(()), {("", "", title): drawn})
    if drawn:
        from ...student import pictures  # imports torch

        pages.globals["svg"] = lambda picture, panel: Markup(
            pictures.svg(picture, panel, pictures.page_scale(picture))
        )
    return pages.get_template("plot.html.j2").render(
        title=title, drawn=drawn, generator="course plot"
    )


def pages_folder(results: Path, students: Collection[str]) -> Path:
    """Return the folder of the pages within a folder of results.

    Its name differs from the folder name of every student.
    """
    used_names = {fold_case(student) for student in students}
    name = "report"
    while name in used_names:
        name += "-pages"
    return results / name


def _environment(view: ClassView, drawn: Mapping[Key, Sequence[Picture]] = {}) -> Environment:
    """Return a Jinja2 environment with autoescape, in which undefined names are errors.

    Args:
        view: The class that the pages are about.
        drawn: Pictures of attempts, by student, assignment and exercise.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    css = (_HERE / "style.css").read_text(encoding="utf-8")
    script = (_HERE / "class.js").read_text(encoding="utf-8")
    pages = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Markup is another type; only we make it
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    # functions for the texts about results
    pages.globals |= vars(report_content) | vars(class_summary)
    pages.globals |= {
        "css": Markup(css),
        "script": Markup(script),
        "script_digest": f"sha256-{_digest(script)}",
        # Allow only this style and images in the page itself, and on the class page its one script.
        # Nothing else is loaded or run, even if a page contains other code.
        "policy": f"default-src 'none'; style-src 'sha256-{_digest(css)}'; img-src data:",
        "generator": GENERATOR,
        "view": view,
        "labels": view.labels,
        "person_of": view.members.row_of,
        "pictures_of": lambda *key: drawn.get(key, ()),
    }
    if drawn:
        from ...student import pictures  # imports torch

        pages.globals |= {
            "svg": lambda *args: Markup(pictures.svg(*args)),
            "legend": pictures.legend,
        }
    pages.tests["has"] = lambda outcomes, id_: id_ in outcomes
    pages.filters |= {
        "points": report_content.points,
        "score": report_content.score_words,
        "day": lambda day: f"{day.day} {day:%B %Y}",
        "moment": lambda when: f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }
    return pages


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()
