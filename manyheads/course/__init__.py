"""One truth about a class: course.yaml, its dates and decisions, as frozen models that know where
files lie.
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
