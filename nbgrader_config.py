"""nbgrader on this course: source from solutions/, release to exercises/, autograde in the box.

nbgrader generate_assignment multi_head_attention --force
nbgrader autograde multi_head_attention
nbgrader generate_feedback multi_head_attention
"""

import sys
from pathlib import Path

from grader.authoring.strip import STUB
from grader.course import load_course
from grader.gradebook.autograde import BoxGrade, RestoreCells, place_notebooks
from grader.gradebook.source import FOLDER, build_source

root = Path(__file__).parent
course = load_course(root)
c = get_config()  # noqa: F821

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = "manyheads"
c.CourseDirectory.source_directory = str(FOLDER)
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache"]

# One stripping rule: the stub that `course release` writes.
c.ClearSolutions.begin_solution_delimeter = "BEGIN SOLUTION"
c.ClearSolutions.end_solution_delimeter = "END SOLUTION"
c.ClearSolutions.code_stub = {"python": "\n".join(STUB)}

# Student code runs in the box and nowhere else: no kernel is started for it.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    RestoreCells,
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    BoxGrade,
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# A student's .py stays the student's.
c.Autograde.exclude_overwriting = {a.id: [f"{a.stem(e)}.py" for e in a.exercises] for a in course.assignments}

if "generate_assignment" in sys.argv:
    build_source(course)
if "autograde" in sys.argv:
    place_notebooks(root / "submitted")
