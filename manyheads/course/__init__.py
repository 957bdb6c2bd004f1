"""Read course.yaml into frozen models, which know where the course keeps its files."""

from .load import CourseError, find_course, load_course
from .model import Assignment, Course, Exercise

__all__ = ["Assignment", "Course", "CourseError", "Exercise", "find_course", "load_course"]
