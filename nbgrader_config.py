"""nbgrader on this course: source from solutions/, release to exercises/, autograde in the box.

nbgrader generate_assignment multi_head_attention --force
nbgrader autograde multi_head_attention
nbgrader generate_feedback multi_head_attention
"""

from pathlib import Path

from manyheads.authoring.strip import STUB
from manyheads.course import load_course
from manyheads.gradebook.commands import prepare
from manyheads.gradebook.names import COURSE_ID, SOURCE, companions

root = Path(__file__).parent
course = load_course(root)
c = get_config()  # noqa: F821

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = COURSE_ID
c.CourseDirectory.source_directory = str(SOURCE)
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache"]

# One stripping rule: the stub that `course release` writes.
c.ClearSolutions.begin_solution_delimeter = "BEGIN SOLUTION"
c.ClearSolutions.end_solution_delimeter = "END SOLUTION"
c.ClearSolutions.code_stub = {"python": "\n".join(STUB)}

# Student code runs in the box and nowhere else: no kernel is started for it.
c.Autograde.autograde_preprocessors = [
    "manyheads.gradebook.autograde.BoxGrade",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "manyheads.gradebook.autograde.SaveComments",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# A student's .py stays the student's, and nobody's feedback carries a copy of the fingerprints.
c.Autograde.exclude_overwriting = {assignment.id: companions(assignment) for assignment in course.assignments}

prepare(course)
