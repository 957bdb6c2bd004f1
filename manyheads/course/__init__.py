"""Load a course: course.yaml, the due dates, and the decisions of its instructors.

`course_yaml_schema` has the models of course.yaml and parses the signatures in it, and `model`
loads it into a `Course`. Its assignments and exercises know the paths of their files.
`final_scores` applies due dates and overrides.yaml to a result. For example,
load_course(root).exercises[0].script is the stub of the first exercise.
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
