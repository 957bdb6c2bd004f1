"""Results as the gradebooks of learning platforms import them: with the ids that they find students by.

Canvas (canvas-lms, lib/gradebook_importer.rb) wants Student and ID first, then SIS User ID and SIS Login ID, then Section last before
the assignments. It finds a student by ID, else by SIS User ID, else by SIS Login ID, else by name, and makes a new one where none fits.
A grade of EX excuses the student from the assignment. A row whose first cell has “Points Possible” in it is about the
assignments; a column whose title has the name of a computed one in it is passed over, and (12) at its end is Canvas' own id.
Moodle (docs.moodle.org, Grade import) lets the instructor say which column identifies the user: e-mail, ID number or username.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..result import Result
from .class_list import NOBODY, ClassList
from .labels import IDS, Labels
from .spreadsheet import number, number_or_blank, table

_POINTS, _NO_POINTS = "    Points Possible", "Points\u00a0Possible"
_ENDS_LIKE_AN_ID = re.compile(r"\(\d+\)\s*$")
_CANVAS = re.compile(
    r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)|"
    r"^\s*(Student|LastName|FirstName|ID|SIS User ID|SIS Login ID|Section|Integration ID|Root Account)\s*$"
)
_MOODLE = re.compile(r"^\s*(Username|ID number|Email address)\s*$", re.IGNORECASE)


def to_canvas(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Canvas' gradebook import: a column for each assignment, a row of points possible, then a row for each student."""
    assignments, most = _assignments(results, labels)
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *_columns(assignments, labels, _CANVAS)]]
    rows.append([_POINTS, "", "", "", "", *(number(most[a]) for a in assignments)])
    for name, cells in _scores(results, assignments, members, "EX"):
        row = members.row_of(name)
        called = (row.name or row.id).replace(_POINTS.strip(), _NO_POINTS)
        rows.append([called, row.canvas_id, row.sis_id, row.login or row.id, row.section, *cells])
    return table(rows)


def to_moodle(results: Sequence[Result], members: ClassList = NOBODY, labels: Labels = IDS) -> str:
    """Moodle's grade import: a column for each way to find a student, and one for each assignment."""
    assignments, _ = _assignments(results, labels)
    rows = [["Username", "ID number", "Email address", *_columns(assignments, labels, _MOODLE)]]
    for name, cells in _scores(results, assignments, members):
        row = members.row_of(name)
        rows.append([row.login or row.id, row.sis_id, row.email, *cells])
    return table(rows)


def _assignments(results: Sequence[Result], labels: Labels) -> tuple[list[str], dict[str, float]]:
    """The assignments of which there are results, in the course's order, and the points of each."""
    most = {result.assignment: result.possible for result in results}
    return labels.in_order([*most]), most


def _columns(assignments: Sequence[str], labels: Labels, taken: re.Pattern[str]) -> list[str]:
    """What stands above each column: the assignment's title, with its id where the title alone would be ambiguous.

    taken: titles that have another meaning there; of such an assignment it is the id.
    """
    titles = [labels.assignment(id_) for id_ in assignments]
    folded = [title.strip().casefold() for title in titles]
    found = []
    for id_, title in zip(assignments, titles, strict=True):
        ambiguous = folded.count(title.strip().casefold()) > 1 or _ENDS_LIKE_AN_ID.search(title)
        found.append(id_ if taken.search(title) else f"{title} [{id_}]" if ambiguous else title)
    return found


def _scores(
    results: Sequence[Result], assignments: Sequence[str], members: ClassList, excused: str = ""
) -> list[tuple[str, list[str]]]:
    """Each student, with the cell of each assignment; those who handed in nothing come last, and who is not on the roster is
    left out: who has dropped the course would be entered anew.

    An assignment has the same points for everybody there: of one that is excused in part, the rest stands for the
    whole.
    excused: the cell of one that is excused as a whole. The cell of one without a total is blank.
    """
    scores = {(r.student, r.assignment): excused if r.is_excused else number_or_blank(r.scaled_score) for r in results}
    every = list(dict.fromkeys(result.student for result in results))
    strangers = members.strangers(every)
    present = [name for name in every if name not in strangers]
    known = {members.called(student) for student in members.roster.students} if members.zero else set()
    return [
        (name, [scores.get((name, assignment), number(0) if name in known else "") for assignment in assignments])
        for name in (*present, *members.absent(present))
    ]
