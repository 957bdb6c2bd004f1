"""Load a course: course.yaml, the due dates, and the decisions of its instructors.

Input: the folder of a course. Output: a `Course`, or a CourseError that names the file and the line
of a mistake.

1. `find_course` finds the folder, and `load_course` reads course.yaml (`model`).
2. `course_yaml_schema` validates its content, and parses dates and signatures.
3. The `Course` has assignments and exercises, which know the paths of their files.
4. After grading, `final_scores` applies due dates and overrides.yaml to a result.

For example, load_course(root).exercises[0].script is the path of the first exercise's stub.
"""

from .model import Assignment, Course, CourseError, Exercise, demand_utf8, find_course, load_course

__all__ = [
    "Assignment",
    "Course",
    "CourseError",
    "Exercise",
    "demand_utf8",
    "find_course",
    "load_course",
]
