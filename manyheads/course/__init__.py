"""One truth about a class: course.yaml, its dates and decisions, as frozen models that know where
files lie.
"""

from .load import CourseError, demand_utf8, find_course, load_course
from .model import Assignment, Course, Exercise

__all__ = [
    "Assignment",
    "Course",
    "CourseError",
    "Exercise",
    "demand_utf8",
    "find_course",
    "load_course",
]
